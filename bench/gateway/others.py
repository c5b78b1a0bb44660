"""Other projects' proxies, each from PyPI in an environment of its own."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import yaml
from msgspec import Struct

from bench.gateway.conversations import MODEL
from bench.gateway.processes import Running, free_port, running
from bench.peers.environment import Unavailable, python_with

Start = Callable[[ExitStack, Path, str], Running]


class Missing(Struct, frozen=True, kw_only=True):
    """A proxy that could not be measured."""

    name: str
    why: str


class Other(Struct, frozen=True, kw_only=True):
    """A proxy, and how it is started in front of an upstream."""

    name: str
    start: Start


def _litellm(stack: ExitStack, folder: Path, upstream: str) -> Running:
    python = _python("litellm", "litellm[proxy]==1.106.2")
    config, port = folder / "litellm.yaml", free_port()
    model = {
        "model_name": MODEL,
        "litellm_params": {"model": f"anthropic/{MODEL}", "api_base": upstream, "api_key": "sk-bench"},
    }
    config.write_text(yaml.safe_dump({"model_list": [model]}))
    command = [
        str(python.parent / "litellm"),
        "--config",
        str(config),
        "--port",
        str(port),
        "--host",
        "127.0.0.1",
    ]
    env = {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_TELEMETRY": "False",
        "LITELLM_LOG": "ERROR",
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
    }
    return stack.enter_context(running(command, port, env=env, log=folder / "litellm.log"))


def _headroom(stack: ExitStack, folder: Path, upstream: str) -> Running:
    python, port = _python("headroom", "headroom-ai[proxy]"), free_port()
    command = [
        str(python.parent / "headroom"),
        "proxy",
        "--port",
        str(port),
        "--no-rate-limit",
        "--no-telemetry",
    ]
    env = {
        "ANTHROPIC_TARGET_API_URL": upstream,
        "OPENAI_TARGET_API_URL": upstream,
        "HOME": str(folder),
        "HF_HUB_OFFLINE": "1",
    }
    return stack.enter_context(running(command, port, env=env, log=folder / "headroom.log"))


def _python(name: str, *requirements: str) -> Path:
    try:
        return python_with(name, *requirements)
    except Unavailable as error:
        raise RuntimeError(str(error)) from None


OTHERS: tuple[Other, ...] = (
    Other(name="litellm proxy", start=_litellm),
    Other(name="headroom proxy", start=_headroom),
)
