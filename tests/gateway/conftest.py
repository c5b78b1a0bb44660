"""A gateway in front of the rules-checking provider, both real servers."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx2
import pytest
from msgspec import Struct

from lowwater.gateway.app import Gateway
from lowwater.gateway.options import GatewayOptions
from lowwater.gateway.server import served
from lowwater.protocols import Store
from lowwater.stores.memory import MemoryStore
from lowwater.testing.provider import Call, CallTools, Provider, Say, Seen

MODEL = "claude-opus-4-5"
ANTHROPIC_TOOLS = [
    {
        "name": "read",
        "description": "Reads a file.",
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
    }
]


class Through(Struct, frozen=True, kw_only=True):
    """A provider, a gateway in front of it, and its store."""

    provider: Provider
    url: str
    store: Store

    def post(
        self, body: dict[str, Any] | bytes, path: str = "/v1/messages", **headers: str
    ) -> httpx2.Response:
        """Send one request."""
        named = {"x-api-key": "sk-one", "anthropic-version": "2023-06-01"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        given: dict[str, Any] = {"content": body} if isinstance(body, bytes) else {"json": body}
        given["headers"] = named | {"content-type": "application/json"}
        return httpx2.post(self.url + path, timeout=60, **given)


Starting = Callable[..., Through]


def eventually(holds: Callable[[], Any], *, seconds: float = 20) -> bool:
    """Whether it comes to hold: a gateway counts and logs a request after its last byte has left."""
    until = time.monotonic() + seconds
    while not (held := bool(holds())) and time.monotonic() < until:
        time.sleep(0.01)
    return held


@pytest.fixture
def start() -> Iterator[Starting]:
    """Start a provider by a script and a gateway by options; everything stops with the test."""
    with ExitStack() as stack:

        def started(
            script: Any = (), *, store: Store | None = None, provider: Provider | None = None, **options: Any
        ) -> Through:
            told = {
                name: options.pop(name)
                for name in ("default_context", "context_lengths", "now")
                if name in options
            }
            serving = provider or stack.enter_context(Provider(script, **told))
            kept = store or MemoryStore()
            given = {
                "anthropic_upstream": serving.anthropic_base_url,
                "openai_upstream": serving.anthropic_base_url,
            } | options
            url = stack.enter_context(served(Gateway(GatewayOptions(**given), kept)))
            return Through(provider=serving, url=url, store=kept)

        yield started


def calls_a_tool(seen: Seen) -> CallTools:
    """Answer every request by a call, with an id of its own."""
    number = len(seen.body.get("messages", seen.body.get("input", ())))
    return CallTools(calls=(Call(name="read", arguments={"path": f"src/file_{number}.py"}),))


def working(
    through: Through, turns: int, *, size: int = 1_200, key: str = "sk-one", **body: Any
) -> list[Any]:
    """Work as an agent does that keeps its whole list; return that list."""
    messages: list[Any] = [{"role": "user", "content": "Find the defect."}]
    for turn in range(turns):
        answer = through.post(
            {
                "model": MODEL,
                "max_tokens": 1_000,
                "system": "You work.",
                "tools": ANTHROPIC_TOOLS,
                "messages": messages,
                **body,
            },
            x_api_key=key,
        )
        assert answer.status_code == 200, answer.text
        content = answer.json()["content"]
        messages.append({"role": "assistant", "content": content})
        use = next((block for block in content if block["type"] == "tool_use"), None)
        said = f"line {turn} of the file\n" * size
        messages.append(
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use["id"], "content": said}]}
            if use
            else {"role": "user", "content": f"go on {turn}"}
        )
    return messages


__all__ = ["ANTHROPIC_TOOLS", "MODEL", "Say", "Starting", "Through", "calls_a_tool", "working"]
