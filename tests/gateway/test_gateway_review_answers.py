"""Whatever an upstream says, the client gets it: also where recall is hidden, and where the request line is odd."""

import socket
import threading
from typing import Any

import pytest

from lowwater.testing.provider import Say
from tests.gateway.canned_upstream import canned, raw_get
from tests.gateway.conftest import ANTHROPIC_TOOLS, MODEL, Starting, Through
from tests.gateway.test_gateway_sessions import USER

PATHS = ["/v1/messages", "/v1/chat/completions", "/v1/responses"]
ODD = {
    "nothing": b"",
    "null": b"null",
    "a number": b"5",
    "a list": b"[]",
    "no JSON": b"<html>busy</html>",
    "compressed": b"\x1f\x8b\x08\x00abc",
    "an error": b'{"error":{"message":"busy"}}',
    "no content": b'{"content":5}',
    "no block": b'{"content":[5]}',
    "a call without arguments": b'{"content":[{"type":"tool_use","id":"a","name":"lowwater_search"}]}',
    "no choice": b'{"choices":[]}',
    "no message": b'{"choices":[{"message":null}]}',
    "no call": b'{"choices":[{"message":{"role":"assistant","tool_calls":[null]}}]}',
    "no item": b'{"output":[1]}',
    "no output": b'{"output":null}',
    "half a character": b'{"content":[{"type":"text","text":"\\ud800"}]}',
    "nested": b"[" * 3_000,
}


def asked(path: str, *, stream: bool) -> dict[str, Any]:
    listed = "input" if path == "/v1/responses" else "messages"
    return {"model": MODEL, "max_tokens": 9, "stream": stream, "tools": ANTHROPIC_TOOLS, listed: [USER]}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("recall", [False, True], ids=["plain", "with recall"])
def test_an_answer_that_is_none_goes_to_the_client_as_it_is(start: Starting, path: str, recall: bool) -> None:
    with canned() as upstream:
        through = start(anthropic_upstream=upstream.url, openai_upstream=upstream.url, recall=recall)
        for name, body in ODD.items():
            upstream.body = body
            answer = through.post(asked(path, stream=False), path)
            assert (name, answer.status_code, answer.content) == (name, 200, body)


ERRORS = {
    "/v1/messages": b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n',
    "/v1/chat/completions": b'data: {"error":{"message":"busy","code":502}}\n\n',
    "/v1/responses": b'event: error\ndata: {"type":"error","code":"server_error","message":"busy"}\n\n',
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("recall", [False, True], ids=["plain", "with recall"])
@pytest.mark.parametrize(
    "odd", [b"", b"data: busy\n\n", b"data: 5\n\n", b'data: {"type":5,"choices":[5]}\n\n']
)
def test_an_error_inside_a_stream_reaches_the_client_and_the_stream_ends_as_the_providers_did(
    start: Starting, path: str, recall: bool, odd: bytes
) -> None:
    with canned() as upstream:
        through = start(anthropic_upstream=upstream.url, openai_upstream=upstream.url, recall=recall)
        upstream.kind, upstream.body = "text/event-stream", odd + ERRORS[path]
        answer = through.post(asked(path, stream=True), path)
        assert answer.status_code == 200
        assert odd in answer.content
        assert "busy" in answer.text.replace(odd.decode(), "", 1)


@pytest.mark.parametrize("target", ["/v1/files/a%2Fb%41?x=a%20b&y=%2F+c", "/v1/a/../b", "/v1/x?a=%e9&b"])
def test_what_a_client_encoded_is_not_encoded_anew(start: Starting, target: str) -> None:
    with canned() as upstream:
        through = start(openai_upstream=upstream.url)
        raw_get(through.url, target)
        assert upstream.targets == [target]


def counts(through: Through, body: dict[str, Any]) -> int:
    answer: int = through.post(body, "/v1/messages/count_tokens").json()["input_tokens"]
    return answer


def test_counting_counts_the_recall_tools_that_are_sent_along(start: Starting) -> None:
    through = start(recall=True)
    body = {"model": MODEL, "messages": [USER], "tools": ANTHROPIC_TOOLS}
    counts(through, body)
    counted = through.provider.requests[-1].body["tools"]
    through.post(body | {"max_tokens": 9})
    assert counted == through.provider.requests[-1].body["tools"]


def test_a_request_for_several_answers_gets_no_recall_tools(start: Starting) -> None:
    through = start(lambda _: Say(text="one"), recall=True)
    tools = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]
    body = {"model": "gpt-5.5", "messages": [USER], "tools": tools, "n": 2}
    through.post(body, "/v1/chat/completions", authorization="Bearer k")
    assert through.provider.requests[-1].body["tools"] == tools


def test_requests_under_way_are_counted(start: Starting) -> None:
    through = start()
    shown = raw_get(through.url, "/metrics").decode()
    assert "lowwater_gateway_under_way 1.0" in shown, "the one that asks is under way itself"


HEADS = {
    "no body": (b"304 Not Modified\r\ncontent-length: 50", b"HTTP/1.1 304 "),
    "a long header": (b"200 OK\r\nx-long: " + b"a" * 20_000 + b"\r\ncontent-length: 0", b"HTTP/1.1 200 "),
    "no status": (b"999 Odd\r\ncontent-length: 0", b"HTTP/1.1 502 "),
}


@pytest.mark.parametrize("head", list(HEADS))
def test_odd_heads_of_answers_are_passed_on_or_refused(
    start: Starting, head: str, caplog: pytest.LogCaptureFixture
) -> None:
    said, expected = HEADS[head]

    def upstream(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 " + said + b"\r\nconnection: close\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=upstream, args=(listening,), daemon=True)
        thread.start()
        through = start(openai_upstream=f"http://127.0.0.1:{listening.getsockname()[1]}")
        assert raw_get(through.url, "/v1/models").startswith(expected)
        thread.join()
    assert "defect" not in caplog.text
