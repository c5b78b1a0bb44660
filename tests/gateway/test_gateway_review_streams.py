"""What a client that goes away leaves behind, and replicas and summaries that meet in one conversation."""

import socket
import threading
from typing import Any

import httpx2
import msgspec
import pytest

from lowwater.stores.memory import MemoryStore
from lowwater.testing.provider import Answer, Provider, Say, Seen
from tests.gateway.canned_upstream import canned
from tests.gateway.conftest import ANTHROPIC_TOOLS, MODEL, Starting, Through, calls_a_tool, working
from tests.gateway.test_gateway_compaction import CEILING, SUMMARY
from tests.gateway.test_gateway_faults import HEADERS, body, connected, head_of
from tests.gateway.test_gateway_review_retries import idle


class SlowStore(MemoryStore):
    """Cannot note anything until it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may = threading.Event()

    def record_fingerprint(self, fingerprint: Any, /) -> None:
        """Wait, then note."""
        assert self.may.wait(60)
        super().record_fingerprint(fingerprint)


@pytest.mark.parametrize("status", [b"200 OK", b"500 No"], ids=["answer", "refusal"])
@pytest.mark.parametrize("recall", [False, True], ids=["plain", "with recall"])
def test_the_provider_is_let_go_before_anything_is_noted(
    start: Starting, status: bytes, recall: bool
) -> None:
    begun, gone, store = threading.Event(), threading.Event(), SlowStore()
    said = b"HTTP/1.1 " + status + b"\r\ncontent-type: text/event-stream\r\n\r\nevent: ping\ndata: "

    def upstream(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            connection.settimeout(30)
            connection.recv(65_536)
            connection.sendall(said)
            begun.set()
            while connection.recv(65_536):
                pass
            gone.set()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=upstream, args=(listening,), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        through = start(store=store, anthropic_upstream=url, recall=recall)
        raw = msgspec.json.encode(body("hello", stream=True) | {"tools": ANTHROPIC_TOOLS})
        with connected(through.url) as client:
            client.sendall(head_of(len(raw)) + raw)
            assert begun.wait(30)
            if status.startswith(b"200"):
                assert client.recv(15) == b"HTTP/1.1 200 OK"
        try:
            assert gone.wait(8), "the store may take its time, the provider may not"
        finally:
            store.may.set()
        thread.join()
        idle(through)


STREAM = [
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant",'
    b'"model":"claude-opus-4-5","content":[],"stop_reason":null,"usage":{"input_tokens":9,"output_tokens":1}}}\n\n',
    b'event: content_block_start\ndata: {"type":"content_block_start","index":0,'
    b'"content_block":{"type":"text","text":""}}\n\n',
    b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,'
    b'"delta":{"type":"text_delta","text":"Hello."}}\n\n',
    b'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n',
    b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},'
    b'"usage":{"output_tokens":3}}\n\n',
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
]


def test_an_answer_that_comes_at_once_waits_for_the_store_with_its_last_event_only(start: Starting) -> None:
    store = SlowStore()
    with canned() as upstream:
        upstream.kind, upstream.body = "text/event-stream", b"".join(STREAM)
        through = start(store=store, anthropic_upstream=upstream.url)
        with httpx2.stream(
            "POST", f"{through.url}/v1/messages", json=body("hello", stream=True), headers=HEADERS
        ) as answer:
            got = b""
            for piece in answer.iter_bytes():
                got += piece
                if got == b"".join(STREAM[:-1]):
                    assert not store.may.is_set()
                    store.may.set()
            assert got == b"".join(STREAM)
            assert store.may.is_set(), "the end was not passed on before the answer was recorded"
    (session,) = through.store.sessions()
    assert session.messages == 2


ASKED: dict[str, Any] = {"model": MODEL, "tools": ANTHROPIC_TOOLS, "system": "You work."}


def turn(through: Through, messages: list[Any]) -> None:
    """Ask, and do what the model calls for."""
    content = through.post(ASKED | {"messages": messages, "max_tokens": 900}).json()["content"]
    said = f"line {len(messages)} of the file\n" * 600
    results = [{"type": "tool_result", "tool_use_id": block["id"], "content": said} for block in content]
    messages += [{"role": "assistant", "content": content}, {"role": "user", "content": results}]


@pytest.mark.moves_prefix(reason="a ceiling compacts")
def test_a_replica_counts_by_what_another_has_compacted(start: Starting) -> None:
    store = MemoryStore()
    with Provider(calls_a_tool) as provider:
        one, two = (start(provider=provider, store=store, settings=CEILING) for _ in range(2))
        messages: list[Any] = [{"role": "user", "content": "Find the defect."}]
        for through in (one, two, *[one] * 20):
            turn(through, messages)
        assert store.sessions()[0].compactions
        counted = [
            through.post(ASKED | {"messages": messages}, "/v1/messages/count_tokens").json()["input_tokens"]
            for through in (two, one)
        ]
    assert counted[0] == counted[1]


@pytest.mark.moves_prefix(reason="the window is smaller than anybody said")
def test_a_clients_own_compaction_that_is_too_long_goes_on_all_the_same(start: Starting) -> None:
    question = "Your task is to create a detailed summary of the conversation so far."

    def answer(seen: Seen) -> Answer:
        return Say(text=SUMMARY) if seen.body["messages"][-1]["content"] == question else calls_a_tool(seen)

    through = start(answer, context_lengths={MODEL: 30_000}, joins_by_summary=True)
    messages = working(through, 3, size=1_000)
    asked = ASKED | {"max_tokens": 900}
    messages += [
        {"role": "assistant", "content": "I have read it."},
        {"role": "user", "content": "word " * 20_000},
        {"role": "assistant", "content": "And that."},
        {"role": "user", "content": question},
    ]
    sent = through.post(asked | {"messages": messages})
    assert sent.status_code == 200, sent.text
    assert [seen.status for seen in through.provider.requests[-2:]] == [400, 200]
    summary = sent.json()["content"][0]["text"].partition("<summary>")[2].removesuffix("</summary>")
    through.post(asked | {"messages": [{"role": "user", "content": f"Go on from here.\n{summary}"}]})
    assert len(through.store.sessions()) == 1
