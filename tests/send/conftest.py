"""Requests for summaries, and a server without manners."""

import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress

import pytest

from lowwater.testing.sessions import generate_session
from lowwater.values.message import Format, Message
from lowwater.values.summaries import Riding, SummaryRequest
from lowwater.wire.formats import decode_messages

SESSION = generate_session("coding", seed=5, target_tokens=8_000)
MODELS: dict[Format, str] = {"anthropic": "claude-sonnet-4-5", "openai_chat": "gpt-4.1"}


def raws_of(format: Format) -> list[bytes]:
    """The beginning of the session as it is sent; there is no thinking in it that somebody else signed."""
    raws = SESSION.as_anthropic().messages if format == "anthropic" else SESSION.as_openai_chat()
    return list(raws)[:16]


def body_of(raws: Sequence[bytes], format: Format, **others: object) -> bytes:
    """A request as a client sends it: with blanks and escapes of its own, and the limit before the messages."""
    body: dict[str, object] = {"model": MODELS[format], "max_tokens": 4_000, "stream": True}
    if format == "anthropic":
        body["system"] = [
            {"type": "text", "text": "Bé brief.\u2028", "cache_control": {"type": "ephemeral"}},
        ]
    body["tools"] = json.loads(SESSION.tools_json(format))
    body["messages"] = [json.loads(raw) for raw in raws]
    return json.dumps({**body, "temperature": 1.0, **others}, indent=1).encode()


def request_of(
    format: Format = "anthropic", *, riding: Riding | None = None, count: int = 16
) -> SummaryRequest:
    """A request to condense the first messages of the session."""
    messages: list[Message] = decode_messages(raws_of(format)[:count], format)
    return SummaryRequest(messages=tuple(messages), max_tokens=600, riding=riding)


DRIP = b"drip:"
"""In front of an answer: its head is sent, and then blanks, one after the other, for ever."""


class RudeServer:
    """Answers each connection with the next bytes of its script, the last for ever, and hangs up."""

    def __init__(self, *answers: bytes) -> None:
        self.seen: list[bytes] = []
        self._answers = answers
        self._closing = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = "http://{}:{}".format(*self._socket.getsockname())
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._closing.set()
        # A closed socket does not wake the thread that waits for it; a last connection does.
        with suppress(OSError), socket.create_connection(self._socket.getsockname(), timeout=1):
            pass
        self._thread.join(timeout=5)
        self._socket.close()

    def _serve(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            with connection, suppress(OSError):
                request = _read(connection)
                if not request:
                    return
                self.seen.append(request)
                self._answer(connection, self._answers[min(len(self.seen), len(self._answers)) - 1])

    def _answer(self, connection: socket.socket, answer: bytes) -> None:
        if not answer.startswith(DRIP):
            connection.sendall(answer)
            return
        head, blank, _ = answer.removeprefix(DRIP).partition(b"\r\n\r\n")
        connection.sendall(head + blank)
        while not self._closing.wait(0.02):
            connection.sendall(b" ")


def _read(connection: socket.socket) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received:
        piece = connection.recv(65_536)
        if not piece:
            return b""
        received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1]) for line in head.splitlines() if line.lower().startswith(b"content-length")
    )
    while len(body) < length:
        body += connection.recv(65_536)
    return head + b"\r\n\r\n" + body


@pytest.fixture
def rude() -> Iterator[type[RudeServer]]:
    """Make servers that are closed behind the test."""
    made: list[RudeServer] = []

    class Kept(RudeServer):
        def __init__(self, *answers: bytes) -> None:
            super().__init__(*answers)
            made.append(self)

    yield Kept
    for server in made:
        server.close()


def http(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    """A whole HTTP answer."""
    lines = [
        f"HTTP/1.1 {status}",
        "content-type: application/json",
        f"content-length: {len(body)}",
        *headers,
    ]
    return "\r\n".join([*lines, "connection: close", "", ""]).encode() + body
