"""How each client is told where the gateway is: by variables, by arguments, or by both."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from urllib.parse import urlsplit

import msgspec
import yaml
from msgspec import Struct

from lowwater.gateway.options import ANTHROPIC, OPENAI

OPENROUTER = "https://openrouter.ai/api/v1"

_OWN = ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL")
_PROXIES = frozenset({"http_proxy", "https_proxy", "all_proxy"})
_TOOL_SEARCH = "ENABLE_TOOL_SEARCH"
_ANTHROPIC_HOST = "anthropic.com"


class Started(Struct, frozen=True, kw_only=True):
    """A client's command line and the variables it is run with."""

    command: tuple[str, ...]
    env: dict[str, str]


def client_of(command: Sequence[str]) -> str:
    """Return the name of the client that a command starts."""
    return PurePath(command[0]).name.removesuffix(".exe") if command else ""


class Upstream(Struct, frozen=True, kw_only=True):
    """Where requests of each format go."""

    anthropic: str
    openai: str


def upstream_in(env: Mapping[str, str], client: str = "") -> Upstream:
    """Return where a client would have gone by itself: the gateway goes there for it."""
    anthropic, openai = (env.get(name, "").strip() for name in _OWN)
    if client == "hermes":
        openai = _hermes_goes(env) or openai
    return Upstream(anthropic=anthropic or ANTHROPIC, openai=openai or OPENAI)


def started(command: Sequence[str], url: str, env: Mapping[str, str]) -> Started:
    """Return a client's command and variables such that all its requests go to the gateway at `url`."""
    versioned = f"{url}/v1"
    told = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_BASE": url,
        "OPENAI_BASE_URL": versioned,
        "OPENAI_API_BASE": versioned,
    }
    told |= _around_proxies(url, env)
    arguments: tuple[str, ...] = ()
    match client_of(command):
        case "claude":
            told |= _claude(env)
        case "codex":
            arguments = _codex(versioned, env)
        case "opencode":
            told["OPENCODE_CONFIG_CONTENT"] = _opencode(versioned, env.get("OPENCODE_CONFIG_CONTENT", ""))
        case "hermes":
            told |= {"CUSTOM_BASE_URL": versioned, "OPENROUTER_BASE_URL": versioned}
        case _:
            pass
    return Started(command=(command[0], *arguments, *command[1:]), env=told)


def _around_proxies(url: str, env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that keep a client from asking a proxy for the gateway; nothing where it has no proxy.

    Some clients take the proxy for HTTPS for every URL, and ask it for 127.0.0.1.
    """
    if not any(value and name.lower() in _PROXIES for name, value in env.items()):
        return {}
    host = urlsplit(url).hostname or ""
    before = env.get("no_proxy") or env.get("NO_PROXY") or ""
    listed = ",".join(each for each in (before.strip(), host) if each)
    return {"NO_PROXY": listed, "no_proxy": listed}


def _claude(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables by which Claude Code asks as it does without a gateway.

    Behind a URL that is not Anthropic's it turns its tool search off and sends all its tools, unless this is set. Where
    its user sends it to another provider it has done so by itself, and that provider may not know the search's blocks.
    """
    host = urlsplit(upstream_in(env, "claude").anthropic).hostname or ""
    is_anthropic = host == _ANTHROPIC_HOST or host.endswith(f".{_ANTHROPIC_HOST}")
    return {_TOOL_SEARCH: "true"} if is_anthropic and _TOOL_SEARCH not in env else {}


def _codex(url: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the settings by which Codex uses a provider of its own; its key or its login goes along."""
    provider = {"name": "lowwater", "base_url": url, "wire_api": "responses"}
    has_key = bool(env.get("OPENAI_API_KEY"))
    auth = 'env_key="OPENAI_API_KEY"' if has_key else "requires_openai_auth=true"
    table = ",".join(
        [*(f"{name}={msgspec.json.encode(value).decode()}" for name, value in provider.items()), auth]
    )
    return ("-c", f"model_providers.lowwater={{{table}}}", "-c", 'model_provider="lowwater"')


def _hermes_goes(env: Mapping[str, str]) -> str:
    """Return where Hermes asks OpenAI-speaking models: what its settings name, or else what they leave to the environment."""
    path = Path(env.get("HERMES_HOME") or Path(env.get("HOME", "~"), ".hermes").expanduser(), "config.yaml")
    try:
        settings = yaml.safe_load(path.read_text())
    except (OSError, ValueError, yaml.YAMLError):
        settings = None
    model = settings.get("model") if isinstance(settings, dict) else None
    told = model if isinstance(model, dict) else {}
    provider, url = (str(told.get(name) or "").strip() for name in ("provider", "base_url"))
    match provider or env.get("HERMES_INFERENCE_PROVIDER", "auto"):
        case "custom":
            return env.get("CUSTOM_BASE_URL", "") or url
        case "auto" | "openrouter":
            return url or env.get("OPENROUTER_BASE_URL", "") or OPENROUTER
        case _:
            return ""


def _opencode(url: str, given: str) -> str:
    """Return opencode's settings with the URL of both providers, beside what the user has set there."""
    try:
        settings = msgspec.json.decode(given, type=dict[str, object]) if given else {}
    except msgspec.MsgspecError:
        settings = {}
    providers = settings.get("provider")
    together = dict(providers) if isinstance(providers, dict) else {}
    for name in ("anthropic", "openai"):
        before = together.get(name)
        own = dict(before) if isinstance(before, dict) else {}
        options = own.get("options")
        own["options"] = {**(options if isinstance(options, dict) else {}), "baseURL": url}
        together[name] = own
    return msgspec.json.encode({**settings, "provider": together}).decode()


def written(command: Sequence[str]) -> str:
    """Return a command as one would type it."""
    return shlex.join(command)
