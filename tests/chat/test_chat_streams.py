"""Answers as real servers send them on bad days: errors inside a stream, no stream at all, nothing that makes sense."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import httpx2
import msgspec
import pytest

from lowwater.chat.upstream import HttpUpstream
from lowwater.core.formats.codec import decode_response
from lowwater.core.messages import Format
from lowwater.errors import AnswerFailed
from lowwater.summarizers.endpoint import endpoint_for

STREAM, JSON = "text/event-stream", "application/json"
OVERLOADED = (
    b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
)
WHOLE = {
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "All at once."}}
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 3},
}


def chunk(text: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return b"data: " + msgspec.json.encode({"choices": [choice]}) + b"\n\n"


@contextmanager
def served(*answers: tuple[str, bytes]) -> Iterator[str]:
    """A server that gives these answers one after the other."""
    left = iter(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            kind, body = next(left)
            self.send_response(200)
            self.send_header("content-type", kind)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


def asked(url: str, format: Format = "openai_chat") -> tuple[str, str, list[str]]:
    """What the model said in the end, what was shown, and what was noted."""
    notes: list[str] = []
    shown: list[str] = []
    endpoint = endpoint_for("m", base_url=url, format=format)
    with httpx2.Client() as client:
        upstream = HttpUpstream(endpoint, client, base_url=url, note=notes.append, sleep=lambda _: None)
        fields = {"messages": [{"role": "user", "content": "hi"}]}
        answer = upstream.ask(fields, max_tokens=100, show=shown.append)
    return decode_response(answer).message.text, "".join(shown), notes


def test_an_error_before_any_text_is_asked_again() -> None:
    start = b'event: message_start\ndata: {"type":"message_start","message":{"role":"assistant","content":[]}}\n\n'
    good = (
        start
        + b'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n'
        + b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Fine."}}\n\n'
        + b'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}\n\n'
        + b'data: {"type":"message_stop"}\n\n'
    )
    with served((STREAM, start + OVERLOADED), (STREAM, good)) as url:
        said, shown, notes = asked(url, "anthropic")
    assert said == shown == "Fine."
    assert len(notes) == 1
    assert "Overloaded" in notes[0]


def test_an_error_after_some_text_keeps_the_text() -> None:
    events = chunk("Half ") + chunk("an ") + b'data: {"error":{"message":"gone"}}\n\n'
    with served((STREAM, events)) as url, pytest.raises(AnswerFailed, match=r"broke off.*gone") as failed:
        asked(url)
    assert failed.value.text == "Half an "


def test_a_server_that_closes_without_its_end_mark_has_answered_if_it_said_why_it_ended() -> None:
    with served((STREAM, b": keep-alive\n\n" + chunk("Done") + chunk(".", "stop"))) as url:
        assert asked(url)[:2] == ("Done.", "Done.")


def test_a_server_that_does_not_stream_has_answered_too() -> None:
    with served((JSON, msgspec.json.encode(WHOLE))) as url:
        assert asked(url)[:2] == ("All at once.", "All at once.")


def test_what_makes_no_sense_is_given_up_with_one_sentence() -> None:
    with (
        served(*[(JSON, b"<html>hello</html>")] * 4) as url,
        pytest.raises(AnswerFailed, match="cannot be read"),
    ):
        asked(url)


def test_nobody_at_the_address_is_one_sentence() -> None:
    with served() as url:
        pass
    with pytest.raises(AnswerFailed, match="the connection failed"):
        asked(url)
