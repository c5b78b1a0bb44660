"""Mutated requests and mutated answers by the thousand: no failure of our own, and what the provider said arrives."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest
from aiohttp import web

from lowwater.core.formats.codec import decode_response
from lowwater.core.formats.streams import answer_in_events
from lowwater.core.messages import Message
from lowwater.core.reconcile import says_the_same
from lowwater.gateway.app import Gateway
from lowwater.gateway.options import GatewayOptions
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.stores.memory import MemoryStore
from tests.gateway.mutations import chunked, mutated, odd_beside_content

pytestmark = [pytest.mark.full, pytest.mark.moves_prefix(reason="nothing sent here is a conversation")]

SEED = 14
REQUESTS = 500
"""For each path, as it comes and with recall."""
ANSWERS = 300
"""For each format, whole and streamed, as it comes and with recall."""

_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
ANTHROPIC: dict[str, Any] = {
    "model": "claude-opus-4-5",
    "max_tokens": 99,
    "system": [{"type": "text", "text": "You work.", "cache_control": {"type": "ephemeral"}}],
    "tools": [{"name": "read", "description": "Reads.", "input_schema": _SCHEMA}],
    "thinking": {"type": "enabled", "budget_tokens": 2_000},
    "metadata": {"user_id": "user_1_session_0123456789abcdef0123"},
    "messages": [
        {"role": "user", "content": "Find the defect."},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                {"type": "text", "text": "I read."},
                {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.py", "n": 1.5}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [{"type": "text", "text": "x = 1"}],
                },
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="},
                },
                {"type": "novelty", "value": {"a": [1, "b"]}},
            ],
        },
    ],
}
CHAT: dict[str, Any] = {
    "model": "gpt-5.5",
    "max_completion_tokens": 99,
    "tools": [{"type": "function", "function": {"name": "read", "parameters": _SCHEMA}}],
    "messages": [
        {"role": "system", "content": "You work."},
        {"role": "user", "content": [{"type": "text", "text": "Find"}, {"type": "novelty", "value": "x"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "read", "arguments": '{"path": "a.py"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "x = 1"},
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}],
        },
    ],
}
RESPONSES: dict[str, Any] = {
    "model": "gpt-5.5",
    "instructions": "You work.",
    "prompt_cache_key": "one",
    "store": False,
    "tools": [{"type": "function", "name": "read", "parameters": _SCHEMA}],
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Find."}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "Z0E="},
        {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": '{"path": "a.py"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "x = 1"},
        {"type": "novelty", "value": {"a": [1, "b"]}},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go on."}]},
    ],
}
BODIES = {
    "/v1/messages": ANTHROPIC,
    "/v1/messages/count_tokens": ANTHROPIC,
    "/v1/chat/completions": CHAT,
    "/v1/responses": RESPONSES,
}

SAID: dict[str, dict[str, Any]] = {
    "/v1/messages": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-5",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
            {"type": "text", "text": "Found it."},
            {"type": "tool_use", "id": "toolu_2", "name": "read", "input": {"path": "b.py"}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 9,
            "output_tokens": 5,
            "cache_read_input_tokens": 0,
            "cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 0},
            "iterations": [{"type": "message", "input_tokens": 9, "output_tokens": 5}],
        },
    },
    "/v1/chat/completions": {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "gpt-5.5",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": "Found it.",
                    "tool_calls": [
                        {
                            "id": "call_2",
                            "type": "function",
                            "function": {"name": "read", "arguments": '{"path": "b.py"}'},
                        }
                    ],
                },
            }
        ],
        "usage": {
            "prompt_tokens": 9,
            "completion_tokens": 5,
            "total_tokens": 14,
            "prompt_tokens_details": {"cached_tokens": 3},
        },
    },
    "/v1/responses": {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "model": "gpt-5.5",
        "output": [
            {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "Z0E="},
            {
                "type": "message",
                "id": "msg_2",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Found it.", "annotations": []}],
            },
            {
                "type": "function_call",
                "id": "fc_2",
                "call_id": "call_2",
                "name": "read",
                "arguments": '{"path": "b.py"}',
            },
        ],
        "usage": {
            "input_tokens": 9,
            "output_tokens": 5,
            "total_tokens": 14,
            "input_tokens_details": {"cached_tokens": 3},
        },
    },
}


def streamed(path: str) -> list[dict[str, Any]]:
    """Return the events of a stream that says what `SAID` says."""
    said = SAID[path]
    if path == "/v1/messages":
        start = {
            "type": "message_start",
            "message": {**said, "content": [], "usage": {"input_tokens": 9, "output_tokens": 1}},
        }
        text = [
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Found it."}},
            {"type": "content_block_stop", "index": 0},
        ]
        opened = {"type": "tool_use", "id": "toolu_2", "name": "read", "input": {}}
        piece = {"type": "input_json_delta", "partial_json": '{"path": "b.py"}'}
        called = [
            {"type": "content_block_start", "index": 1, "content_block": opened},
            {"type": "content_block_delta", "index": 1, "delta": piece},
            {"type": "content_block_stop", "index": 1},
        ]
        delta = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}}
        return [start, {"type": "ping"}, *text, *called, delta, {"type": "message_stop"}]
    if path == "/v1/chat/completions":
        base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "gpt-5.5"}
        call = {"index": 0, **said["choices"][0]["message"]["tool_calls"][0]}
        deltas: list[dict[str, Any]] = [
            {"role": "assistant", "content": ""},
            {"content": "Found it."},
            {"tool_calls": [call]},
        ]
        chunks = [
            {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
        ]
        last = {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
        return [*chunks, last, {**base, "choices": [], "usage": said["usage"]}]
    begun = {**said, "status": "in_progress", "output": [], "usage": None}
    items: list[dict[str, Any]] = []
    for index, item in enumerate(said["output"]):
        items.append({"type": "response.output_item.added", "output_index": index, "item": item})
        items.append({"type": "response.output_item.done", "output_index": index, "item": item})
    text_delta = {
        "type": "response.output_text.delta",
        "output_index": 1,
        "content_index": 0,
        "delta": "Found it.",
    }
    return [
        {"type": "response.created", "response": begun},
        *items[:2],
        items[2],
        text_delta,
        *items[3:],
        {"type": "response.completed", "response": said},
    ]


def stream_of(path: str, random: Random) -> bytes:
    """Return a stream whose events are mutated, left out, doubled or in another order."""
    events = streamed(path)
    for _ in range(random.randrange(3)):
        at = random.randrange(len(events))
        kind = random.randrange(3)
        if kind == 0:
            events.pop(at)
        elif kind == 1:
            events.insert(at, events[random.randrange(len(events))])
        else:
            events[at], events[-1] = events[-1], events[at]
    hit = random.randrange(len(events))
    pieces = []
    for index, event in enumerate(events):
        data = mutated(event, random) if index == hit or random.random() < 0.1 else json.dumps(event).encode()
        name = f"event: {event['type']}\n".encode() if isinstance(event.get("type"), str) else b""
        pieces.append(name + b"data: " + data + random.choice((b"\n\n", b"\n\n", b"\r\n\r\n")))
    if path == "/v1/chat/completions" and random.random() < 0.8:
        pieces.append(b"data: [DONE]\n\n")
    return b"".join(pieces)


class Upstream:
    """A provider that says what it is told to, and remembers the last body it got."""

    def __init__(self) -> None:
        self.url = ""
        self.chunks: list[bytes] = []
        self.kind = "application/json"
        self.got: bytes | None = None

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        self.got = await request.read()
        response = web.StreamResponse(headers={"content-type": self.kind})
        await response.prepare(request)
        for chunk in self.chunks:
            await response.write(chunk)
        await response.write_eof()
        return response

    def says(self, data: bytes, *, kind: str = "application/json", random: Random | None = None) -> None:
        """Say this from now on."""
        self.chunks = [data] if random is None else chunked(data, random)
        self.kind = kind


class Got:
    """An answer as the client gets it."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.body = b""
        self.is_whole = False

    @property
    def is_ours(self) -> bool:
        """Whether the gateway refused by itself."""
        return self.headers.get(b"x-lowwater") == b"refused"


async def ask(gateway: Gateway, path: str, body: bytes) -> Got:
    """Put one request to the application, in this process."""
    got, waiting = Got(), [{"type": "http.request", "body": body, "more_body": False}]
    forever = asyncio.Event()

    async def receive() -> dict[str, Any]:
        if waiting:
            return waiting.pop()
        await forever.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            got.status, got.headers = message["status"], dict(message["headers"])
        else:
            got.body += message.get("body", b"")
            got.is_whole = not message.get("more_body")

    headers = [
        (b"host", b"127.0.0.1"),
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"x-api-key", b"k"),
        (b"authorization", b"Bearer k"),
        (b"anthropic-version", b"2023-06-01"),
    ]
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
        "client": ("127.0.0.1", 5),
    }
    await asyncio.wait_for(gateway(scope, receive, send), 60)
    return got


@asynccontextmanager
async def standing(
    *, recall: bool, store: MemoryStore | None = None
) -> AsyncIterator[tuple[Gateway, Upstream]]:
    """Run an upstream and a gateway in front of it."""
    upstream = Upstream()
    app = web.Application(client_max_size=2**30)
    app.router.add_route("*", "/{path:.*}", upstream.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    upstream.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    options = GatewayOptions(anthropic_upstream=upstream.url, openai_upstream=upstream.url, recall=recall)
    gateway = Gateway(options, store or MemoryStore())
    await gateway.open()
    try:
        yield gateway, upstream
    finally:
        await gateway.close()
        await runner.cleanup()


def odd_stream(path: str, random: Random) -> bytes:
    """Return a whole stream with odd values beside the content of an event or two."""
    events = streamed(path)
    hit = random.sample(range(len(events)), random.choice((1, 2)))
    pieces = [
        odd_beside_content(event, random) if at in hit else json.dumps(event).encode()
        for at, event in enumerate(events)
    ]
    done = [b"[DONE]"] if path == "/v1/chat/completions" else []
    return b"".join(b"data: " + piece + b"\n\n" for piece in [*pieces, *done])


def number(at: int) -> str:
    return f"This is conversation {at}."


def numbered(path: str, at: int, *, stream: bool) -> dict[str, Any]:
    """Return a request that begins a conversation of its own."""
    body: dict[str, Any] = json.loads(json.dumps(BODIES[path]))
    messages = body["input" if path == "/v1/responses" else "messages"]
    first = next(message for message in messages if message.get("role") == "user")
    kind = "input_text" if path == "/v1/responses" else "text"
    first["content"] = [{"type": kind, "text": number(at)}]
    return body | {"stream": stream, "metadata": {"user_id": f"n{at}"}, "prompt_cache_key": f"n{at}"}


def says_what_was_said(path: str, body: bytes) -> bool:
    """Return whether a mutated answer still has the content it had, and is no failure."""

    def content(tree: Any) -> Any:
        if path == "/v1/chat/completions":
            return [
                {name: value for name, value in choice["message"].items() if name != "role"}
                for choice in tree["choices"][:1]
            ]
        return tree["content" if path == "/v1/messages" else "output"]

    try:
        tree = json.loads(body.decode())
        return bool(content(tree) == content(SAID[path]) and tree.get("error") is None)
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return False


def assert_recorded(path: str, store: MemoryStore, expected: dict[str, bytes]) -> None:
    """Assert that each conversation of `expected` ends with what the provider said."""
    whole = decode_response(json.dumps(SAID[path]).encode()).message
    streaming = decode_response(
        answer_in_events([json.dumps(event).encode() for event in streamed(path)])
    ).message
    found: dict[str, Message] = {}
    for listed in store.sessions():
        messages = internals(Lowwater(model="gpt-5.5", store=store).session(listed.name)).ledger.view.messages
        begin = next(message.text for message in messages if message.role == "user")
        found[begin] = messages[-1]
    for begin, said in expected.items():
        assert begin in found, f"{begin} {said!r} was not stored"
        is_kept = any(says_the_same(found[begin], each) for each in (whole, streaming))
        assert is_kept, f"{found[begin]} was recorded of {said!r}"


def is_json(body: bytes) -> bool:
    try:
        json.loads(body.decode())
    except (ValueError, RecursionError):
        return False
    return True


def told(what: str, tried: int, differing: int | None = None) -> None:
    odd = "" if differing is None else f", {differing:,} of them not JSON any more"
    print(f"{what}: {tried:,} inputs{odd} (seed {SEED})")  # noqa: T201 - the counts belong to the test's report


def defects(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what the gateway logged of defects."""
    return [said for record in caplog.records if "defect" in (said := record.getMessage())]


def running(work: Callable[[], Any]) -> None:
    asyncio.run(asyncio.wait_for(work(), 600))


@pytest.mark.parametrize("recall", [False, True], ids=["as it comes", "with recall"])
@pytest.mark.parametrize("path", sorted(BODIES))
def test_mutated_requests_are_answered_or_go_on_as_they_came(
    path: str, recall: bool, caplog: pytest.LogCaptureFixture
) -> None:
    random = Random(f"{SEED} {path} {recall}")
    plain = {"input_tokens": 12} if path.endswith("count_tokens") else SAID[path]
    answer = json.dumps(plain).encode()
    unreadable = 0

    async def work() -> None:
        nonlocal unreadable
        async with standing(recall=recall) as (gateway, upstream):
            upstream.says(answer)
            for at in range(REQUESTS):
                body = mutated(BODIES[path], random)
                upstream.got = None
                got = await ask(gateway, path, body)
                named = f"input {at} of {path}: {body[:3_000]!r}"
                assert (got.status, got.is_ours, got.is_whole) == (200, False, True), (
                    f"{got.body!r} for {named}"
                )
                assert (got.body == answer) if not recall else json.loads(got.body) == plain, named
                if not is_json(body):
                    unreadable += 1
                    assert upstream.got == body, named
            first = await ask(gateway, path, json.dumps(BODIES[path]).encode())
            assert first.status == 200

    running(work)
    told(f"requests to {path}", REQUESTS, unreadable)
    assert 0.05 < unreadable / REQUESTS < 0.8
    assert defects(caplog) == []


@pytest.mark.parametrize("recall", [False, True], ids=["as it comes", "with recall"])
@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("path", sorted(SAID))
def test_mutated_answers_arrive_as_the_provider_sent_them(
    path: str, is_streamed: bool, recall: bool, caplog: pytest.LogCaptureFixture
) -> None:
    random = Random(f"{SEED} {path} {is_streamed} {recall}")
    unreadable = 0

    expected: dict[str, bytes] = {}
    store = MemoryStore()

    async def work() -> None:
        nonlocal unreadable
        async with standing(recall=recall, store=store) as (gateway, upstream):
            for at in range(ANSWERS):
                asked = numbered(path, at, stream=is_streamed)
                said = stream_of(path, random) if is_streamed else mutated(SAID[path], random)
                kind = "text/event-stream" if is_streamed else "application/json"
                upstream.says(said, kind=kind, random=random)
                got = await ask(gateway, path, json.dumps(asked).encode())
                named = f"answer {at} of {path}: {said!r}"
                assert (got.status, got.is_ours, got.is_whole) == (200, False, True), (
                    f"{got.body!r} for {named}"
                )
                # What is hidden from a client that knows nothing of recall is written anew; the rest is not.
                if not recall or (not is_streamed and not is_json(said)):
                    assert got.body == said, named
                unreadable += not is_json(said)
                if not is_streamed and says_what_was_said(path, said):
                    expected[number(at)] = said

    running(work)
    kind = "streamed" if is_streamed else "whole"
    told(f"answers of {path}, {kind}", ANSWERS, None if is_streamed else unreadable)
    assert_recorded(path, store, expected)
    assert is_streamed or len(expected) > ANSWERS / 10
    assert defects(caplog) == []


@pytest.mark.parametrize("recall", [False, True], ids=["as it comes", "with recall"])
@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("path", sorted(SAID))
def test_what_is_odd_beside_the_content_of_an_answer_loses_none(
    path: str, is_streamed: bool, recall: bool, caplog: pytest.LogCaptureFixture
) -> None:
    random = Random(f"{SEED} beside {path} {is_streamed} {recall}")
    expected: dict[str, bytes] = {}
    store = MemoryStore()

    async def work() -> None:
        async with standing(recall=recall, store=store) as (gateway, upstream):
            for at in range(ANSWERS):
                said = odd_stream(path, random) if is_streamed else odd_beside_content(SAID[path], random)
                upstream.says(said, kind="text/event-stream" if is_streamed else "application/json")
                got = await ask(gateway, path, json.dumps(numbered(path, at, stream=is_streamed)).encode())
                assert (got.status, got.is_ours, got.is_whole) == (200, False, True), (
                    f"{got.body!r} for {said!r}"
                )
                expected[number(at)] = said

    running(work)
    told(f"answers of {path} with odd values beside their content", len(expected))
    assert_recorded(path, store, expected)
    assert defects(caplog) == []
