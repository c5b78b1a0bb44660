"""What the formats of the test provider share: a prompt in pieces, rules that a request may break, and the protocol of a format."""

import hmac
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import count
from typing import Any, Literal, Protocol, TypeAlias

import msgspec
from msgspec import Struct

from lowwater.testing.provider.answers import Spoken

Count: TypeAlias = Callable[[str], int]
Json: TypeAlias = dict[str, Any]
Section: TypeAlias = Literal["tools", "system", "messages"]
BREAKPOINT = "breakpoint"
"""The mark of a provider whose marks have no lifetime."""
MEDIA_TOKENS = 1_500
"""What an image, a file or a sound counts here, whatever its size."""


class PromptPiece(Struct, frozen=True, kw_only=True):
    """A tool, a block of the system prompt or a block of a message, without its cache marks."""

    section: Section
    path: str
    role: str = ""
    value: dict[str, Any]
    mark: str = ""
    """The lifetime of its cache mark, or `BREAKPOINT`; empty if it has none."""

    @property
    def content(self) -> bytes:
        """What it is compared by: section, role and JSON."""
        return msgspec.json.encode([self.section, self.role, self.value], order="sorted")


def quarter(text: str) -> int:
    """Return a quarter of the text's characters, rounded up."""
    return -(-len(text) // 4)


def tokens(value: object, count: Count) -> int:
    """Return the tokens of one block: its text by `count`, media at a flat rate, anything else as JSON."""
    match value:
        case str():
            return count(value)
        case {"type": "text", "text": str(text)} | {"type": "thinking", "thinking": str(text)}:
            return count(text)
        case {"type": "compaction", "content": str(text)}:
            return count(text)
        case {"type": "document", "source": {"type": "text", "data": str(text)}}:
            return count(text)
        case {"type": "image" | "document" | "image_url" | "file" | "input_audio"}:
            return MEDIA_TOKENS
        case {"type": "tool_result", "content": list(parts)}:
            return sum(tokens(part, count) for part in parts)
        case {"type": "tool_result", "content": str(text)}:
            return count(text)
        case _:
            return count(msgspec.json.encode(value).decode())


def prompt_tokens(pieces: Iterable[PromptPiece], count: Count) -> int:
    """Return the tokens of the whole prompt."""
    return sum(tokens(piece.value, count) for piece in pieces)


def prefix_digests(seed: str, pieces: Iterable[PromptPiece], *, of_messages: bytes = b"") -> list[bytes]:
    """Return for each piece a digest of the prompt up to and including it.

    `of_messages` stands for settings that the messages depend on, but not the tools and the system prompt.
    """
    running = blake2b(seed.encode(), digest_size=16)
    digests = []
    told = False
    for piece in pieces:
        if piece.section == "messages" and not told:
            running.update(of_messages)
            told = True
        content = piece.content
        running.update(len(content).to_bytes(8, "big") + content)
        digests.append(running.digest())
    return digests


class Prompt:
    """One request as a cache sees it; positions are indexes of pieces, sizes are tokens.

    `ends` and `digests` cover the `pieces` that were sent and then those of the `answer`, for caches that keep it.
    """

    def __init__(
        self,
        pieces: Sequence[PromptPiece],
        count: Count,
        *,
        answer: Sequence[PromptPiece] = (),
        settings: object = None,
        long: bool = False,
        implicit: bool = True,
        conversation: str = "",
    ) -> None:
        """Take a request; `settings` are those that its messages depend on."""
        self.pieces = pieces
        self.long = long
        """Whether the request as a whole asks for the longer lifetime."""
        self.implicit = implicit
        """Whether the provider may set a mark of its own."""
        self.conversation = conversation
        """The client's name for requests that belong together (`prompt_cache_key`)."""
        rendered = msgspec.json.encode(settings, order="sorted")
        self.digests = prefix_digests("prompt", (*pieces, *answer), of_messages=rendered)
        self.ends: list[int] = []
        for piece in (*pieces, *answer):
            self.ends.append(self.end_of(len(self.ends) - 1) + tokens(piece.value, count))

    @property
    def size(self) -> int:
        """The tokens of the pieces that were sent."""
        return self.end_of(len(self.pieces) - 1)

    def end_of(self, at: int) -> int:
        """Return the tokens up to and including a piece; 0 for -1, which is before the first."""
        return self.ends[at] if at >= 0 else 0

    def marked(self, *marks: str) -> list[int]:
        """Return the indexes of the pieces that carry one of these marks."""
        return [at for at, piece in enumerate(self.pieces) if piece.mark in marks]


# What only this provider can have written

_SEAL = 32
"""Bytes of a seal, an HMAC."""


class Sealing:
    """Seals texts for thinking signatures and `encrypted_content` (signed, not really encrypted), and opens them with the same key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def sealed(self, text: str) -> str:
        """Return a text behind its seal, as base64."""
        said = text.encode()
        return b64encode(hmac.digest(self._key, said, "sha256") + said).decode()

    def opened(self, content: str) -> str | None:
        """Return the text that was sealed, or None if that was not here."""
        try:
            opened = b64decode(content, validate=True)
        except ValueError:
            return None
        seal, said = opened[:_SEAL], opened[_SEAL:]
        whole = hmac.compare_digest(seal, hmac.digest(self._key, said, "sha256"))
        return said.decode() if whole else None


# Rules


class Violation(Struct, frozen=True, kw_only=True):
    """The error that the provider returns to a request that breaks a rule."""

    message: str
    status: int = 400
    type: str = "invalid_request_error"
    param: str | None = None
    code: str | None = None


class Refusal(Struct, frozen=True, kw_only=True):
    """The name of the rule that a request broke, and the error it got."""

    rule: str
    violation: Violation


class ReceivedRequest(Struct, frozen=True, kw_only=True):
    """One request as the rules see it: plain decoded JSON and what the provider knows about the model."""

    headers: Mapping[str, str]
    """By lower-case name; of a key, only its presence matters."""
    size: int
    """Bytes of the body."""
    body: Json
    """The decoded body; empty if `problem` says why there is none."""
    problem: str = ""
    context_length: int
    count: Count
    counting: bool = False
    """Whether only a token count is asked for: nothing is generated, so no output has to fit."""

    @property
    def model(self) -> str:
        """The model's name without a router's prefix."""
        return str(self.body.get("model", "")).rpartition("/")[2]

    @property
    def messages(self) -> list[Json]:
        """The messages; only for rules after those that check their shape."""
        messages: list[Json] = self.body["messages"]
        return messages


RequestRule: TypeAlias = Callable[[ReceivedRequest], Iterator[Violation]]


def first_refusal(rules: Iterable[RequestRule], incoming: ReceivedRequest) -> Refusal | None:
    """Return the first rule that a request breaks, in the order given: later rules may rely on earlier ones."""
    for rule in rules:
        for violation in rule(incoming):
            return Refusal(rule=rule.__name__, violation=violation)
    return None


# Formats


class Dialect(Protocol):
    """A provider's format: its rules, errors and answers."""

    request_id_header: str
    rules: tuple[RequestRule, ...]

    def error(self, violation: Violation, request_id: str) -> Json:
        """Return the body of an error."""
        ...

    def models(self, context_lengths: Mapping[str, int]) -> Json:
        """Return the list of models."""
        ...

    def reply(self, answer: Spoken, incoming: ReceivedRequest) -> Json:
        """Return the whole answer with its usage; from now on the cache knows the prompt."""
        ...

    def events(self, reply: Json, incoming: ReceivedRequest) -> Iterator[bytes]:
        """Yield the same answer as server-sent events."""
        ...


class Ids:
    """Issues ids with consecutive numbers."""

    def __init__(self) -> None:
        self._next = count(1)

    def new(self, kind: str) -> str:
        """Return the next id, such as `msg_000017`."""
        return f"{kind}_{next(self._next):06}"


DELTA = 16
"""Characters in one slice of streamed text."""


def slices(text: str) -> Iterator[str]:
    """Yield a text in the slices in which it is streamed."""
    for start in range(0, len(text), DELTA):
        yield text[start : start + DELTA]


def write(value: object) -> str:
    """Return a value as JSON text."""
    return msgspec.json.encode(value).decode()
