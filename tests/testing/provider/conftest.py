"""A legal request in each format, ways to break it, and plain HTTP to send it."""

import http.client
import json
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from lowwater.testing.provider import Provider
from lowwater.testing.provider.anthropic import MessagesDialect, Signer, pieces
from lowwater.testing.provider.openai import ChatDialect
from lowwater.testing.provider.prompt import Ids

Json = dict[str, Any]
SMALL = 50_000


class Got(NamedTuple):
    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


class Draft:
    """A request that can be changed before it is sent; places in its body are named by dotted paths."""

    def __init__(self, path: str, headers: dict[str, str], body: Json) -> None:
        self.path, self.headers, self.body = path, headers, body
        self.raw = b""

    def at(self, path: str) -> Any:
        held: Any = self.body
        for step in path.split(".") if path else []:
            held = held[int(step)] if isinstance(held, list) else held[step]
        return held

    def put(self, path: str, value: object) -> None:
        holder, _, last = path.rpartition(".")
        held = self.at(holder)
        held[int(last) if isinstance(held, list) else last] = value

    def drop(self, path: str) -> Any:
        holder, _, last = path.rpartition(".")
        held = self.at(holder)
        return held.pop(int(last) if isinstance(held, list) else last)

    def insert(self, path: str, value: object) -> None:
        holder, _, last = path.rpartition(".")
        self.at(holder).insert(int(last), value)

    def mark(self, *paths: str, **control: str) -> None:
        for path in paths:
            self.at(path)["cache_control"] = {"type": "ephemeral", **control}

    def think(self, path: str = "messages.1.content.0", **changed: object) -> None:
        """Put thinking at a path as the provider would have signed it there, then change it."""
        before = int(path.split(".")[1])
        prompt = pieces({**self.body, "messages": self.body["messages"][:before]})
        signature = Signer(b"lowwater").sign(self.body["model"], "Hm.", prompt)
        self.insert(path, {"type": "thinking", "thinking": "Hm.", "signature": signature} | changed)


@pytest.fixture
def messages_draft() -> Draft:
    calls = [
        {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": "ls"}},
        {"type": "tool_use", "id": "toolu_2", "name": "read", "input": {"path": "a"}},
    ]
    results = [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "a b"},
        {"type": "tool_result", "tool_use_id": "toolu_2", "content": [{"type": "text", "text": "x"}]},
    ]
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 2_000,
        "system": [{"type": "text", "text": "Be brief."}],
        "tools": [{"name": name, "input_schema": {"type": "object"}} for name in ("bash", "read")],
        "messages": [
            {"role": "user", "content": "List the files."},
            {"role": "assistant", "content": [{"type": "text", "text": "Looking."}, *calls]},
            {"role": "user", "content": [*results, {"type": "text", "text": "Go on."}]},
            {"role": "assistant", "content": "There are two."},
            {"role": "user", "content": "Thanks."},
        ],
    }
    return Draft("/v1/messages", {"x-api-key": "sk-secret", "anthropic-version": "2023-06-01"}, body)


@pytest.fixture
def chat_draft() -> Draft:
    calls = [
        {"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": '{"command":"ls"}'}},
        {"id": "call_2", "type": "function", "function": {"name": "read", "arguments": "{}"}},
    ]
    body = {
        "model": "gpt-5.5",
        "max_completion_tokens": 1_000,
        "tools": [{"type": "function", "function": {"name": name}} for name in ("bash", "read")],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "List the files."}]},
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": "call_1", "content": "a b"},
            {"role": "tool", "tool_call_id": "call_2", "content": ""},
            {"role": "assistant", "content": "There are two."},
            {"role": "user", "content": "Thanks."},
        ],
    }
    return Draft("/v1/chat/completions", {"authorization": "Bearer sk-secret"}, body)


Send = Callable[..., Got]


@pytest.fixture(scope="session")
def send() -> Send:
    """Sends one request as plain HTTP, outside any SDK."""

    def plain(
        provider: Provider,
        path: str,
        body: object = b"",
        headers: dict[str, str] | None = None,
        method: str = "POST",
    ) -> Got:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection = http.client.HTTPConnection(urlsplit(provider.anthropic_base_url).netloc, timeout=30)
        try:
            connection.request(method, path, body=data, headers=headers or {})
            response = connection.getresponse()
            return Got(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    return plain


@pytest.fixture(scope="module")
def small() -> Iterator[Provider]:
    """One server for a file's worth of requests; its models have a context length of 50,000 tokens."""
    with Provider(default_context=SMALL) as running:
        yield running


@pytest.fixture
def send_draft(small: Provider, send: Send) -> Callable[[Draft], Got]:
    return lambda draft: send(small, draft.path, draft.raw or draft.body, draft.headers)


@pytest.fixture
def refused(small: Provider, send_draft: Callable[[Draft], Got]) -> Callable[..., Json]:
    """Sends a draft, checks which rule refuses it and what it says, and returns the error."""

    def check(draft: Draft, rule: str, says: str, status: int = 400) -> Json:
        got = send_draft(draft)
        refusal = small.requests[-1].refusal
        assert refusal is not None, got.raw[:300]
        assert refusal.rule == rule, got.raw[:300]
        assert got.status == status
        error: Json = got.body["error"]
        assert says in error["message"]
        return error

    return check


@pytest.fixture(scope="session")
def rules_in() -> Callable[[ModuleType], set[str]]:
    """Tells the names of the rules that one module adds to a provider's."""
    rules = (*MessagesDialect(ids=Ids(), key=b"").rules, *ChatDialect(ids=Ids()).rules)
    return lambda module: {rule.__name__ for rule in rules if rule.__module__ == module.__name__}
