"""Requests for summaries, and a server without manners."""

import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress

import httpx2
import pytest

from lowwater.core.formats.codec import decode_messages, encode_messages, list_field
from lowwater.core.messages import Format, Message
from lowwater.core.summary.request import CachedPrefix, SummaryRequest
from lowwater.summarizers.endpoint import endpoint_for
from lowwater.summarizers.model import ModelSummarizer
from lowwater.testing.provider import Provider
from tests.generated import generate_session

SESSION = generate_session("coding", seed=5, target_tokens=8_000)
MODELS: dict[Format, str] = {
    "anthropic": "claude-sonnet-4-5",
    "openai_chat": "gpt-4.1",
    "openai_responses": "gpt-5.2",
}


def raws_of(format: Format) -> list[bytes]:
    """The beginning of the session as it is sent; there is no thinking in it that somebody else signed."""
    if format == "openai_responses":
        return encode_messages(SESSION.messages, format)[:16]
    raws = SESSION.as_anthropic().messages if format == "anthropic" else SESSION.as_openai_chat()
    return list(raws)[:16]


def base_url(provider: Provider, format: Format) -> str:
    """The provider's URL, as the format's clients take it."""
    return provider.anthropic_base_url if format == "anthropic" else provider.openai_base_url


def body_of(raws: Sequence[bytes], format: Format, **others: object) -> bytes:
    """A request as a client sends it: with blanks and escapes of its own, and the limit before the messages."""
    limit = "max_output_tokens" if format == "openai_responses" else "max_tokens"
    body: dict[str, object] = {"model": MODELS[format], limit: 4_000, "stream": True}
    if format == "openai_responses":
        body |= {"instructions": "Bé brief.\u2028", "prompt_cache_key": "mine", "store": False}
    if format == "anthropic":
        body["system"] = [
            {"type": "text", "text": "Bé brief.\u2028", "cache_control": {"type": "ephemeral"}},
        ]
    body["tools"] = json.loads(SESSION.tools_json(format))
    body[list_field(format)] = [json.loads(raw) for raw in raws]
    return json.dumps({**body, "temperature": 1.0, **others}, indent=1).encode()


def summarizer_at(provider: Provider, format: Format) -> ModelSummarizer:
    """One that asks the provider in this format."""
    return ModelSummarizer(
        model=MODELS[format], base_url=base_url(provider, format), api_key="k", format=format, timeout=20
    )


def send(provider: Provider, body: bytes, format: Format) -> httpx2.Response:
    """Send a request as it is; it is answered."""
    endpoint = endpoint_for(MODELS[format], base_url=base_url(provider, format), api_key="k", format=format)
    with httpx2.Client() as client:
        answer = client.post(endpoint.url, content=body, headers=dict(endpoint.headers))
    assert answer.status_code == 200, answer.text
    return answer


def ending_with(role: str, format: Format) -> list[bytes]:
    """The session as far as somebody says something last."""
    raws = raws_of(format)
    while decode_messages(raws, format)[-1].role != role:
        raws.pop()
    return raws


def beginning(format: Format) -> list[bytes]:
    """What the user says first."""
    raws = raws_of(format)
    said = [message.role for message in decode_messages(raws, format)]
    return raws[: said.index("user") + 1]


def request_of(
    format: Format = "anthropic", *, riding: CachedPrefix | None = None, count: int = 16
) -> SummaryRequest:
    """A request to condense the first messages of the session."""
    messages: list[Message] = decode_messages(raws_of(format)[:count], format)
    return SummaryRequest(messages=tuple(messages), max_tokens=600, cached_prefix=riding)


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
