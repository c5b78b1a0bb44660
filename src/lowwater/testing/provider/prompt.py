"""A prompt as the model reads it, what a rule is, and what a provider's format has to bring along."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import count
from typing import Any, Literal, Protocol, TypeAlias

import msgspec
from msgspec import Struct

from lowwater.testing.provider.answers import Spoken

Count: TypeAlias = Callable[[str], int]
Section: TypeAlias = Literal["tools", "system", "messages"]

BREAKPOINT = "breakpoint"
"""The mark of a provider whose marks have no lifetime of their own."""

MEDIA_TOKENS = 1_500
"""What an image, a file or a sound weighs here, whatever its size."""
Json: TypeAlias = dict[str, Any]
DELTA = 16
"""Characters in one piece of a stream."""


class Piece(Struct, frozen=True, kw_only=True):
    """A tool, a block of the system prompt or a block of a message, without its cache marks."""

    section: Section
    path: str
    role: str = ""
    value: dict[str, Any]
    mark: str = ""
    """The lifetime of the cache mark it carries, or `BREAKPOINT`; empty without one."""

    @property
    def content(self) -> bytes:
        """What makes it the same as another piece: equal JSON in the same role."""
        return msgspec.json.encode([self.section, self.role, self.value], order="sorted")


def quarter(text: str) -> int:
    """Count a token for every four characters begun."""
    return -(-len(text) // 4)


def tokens(value: object, count: Count) -> int:
    """Return what one block weighs: its text by `count`, media at a flat rate, anything else as its JSON."""
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


def prompt_tokens(pieces: Iterable[Piece], count: Count) -> int:
    """Return what the whole prompt weighs."""
    return sum(tokens(piece.value, count) for piece in pieces)


def prefix_digests(seed: str, pieces: Iterable[Piece], *, of_messages: bytes = b"") -> list[bytes]:
    """Return for each piece what identifies the prompt up to and including it.

    `of_messages` is what else the messages depend on, but not the tools and the system prompt before them.
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
    """One request as a cache sees it; positions are those of pieces, sizes are tokens.

    Behind the `pieces` that were sent, `ends` and `digests` go on over those of the `answer`, for caches that keep it.
    """

    def __init__(
        self,
        pieces: Sequence[Piece],
        count: Count,
        *,
        answer: Sequence[Piece] = (),
        settings: object = None,
        long: bool = False,
        implicit: bool = True,
        conversation: str = "",
    ) -> None:
        """Read a request whose messages were rendered under `settings`."""
        self.pieces = pieces
        self.long = long
        """Whether the request asks for the longer lifetime, where that is asked for once."""
        self.implicit = implicit
        """Whether the provider may set a mark of its own."""
        self.conversation = conversation
        """What the client says belongs together."""
        rendered = msgspec.json.encode(settings, order="sorted")
        self.digests = prefix_digests("prompt", (*pieces, *answer), of_messages=rendered)
        self.ends: list[int] = []
        for piece in (*pieces, *answer):
            self.ends.append(self.end_of(len(self.ends) - 1) + tokens(piece.value, count))

    @property
    def size(self) -> int:
        """The tokens sent."""
        return self.end_of(len(self.pieces) - 1)

    def end_of(self, at: int) -> int:
        """Return the tokens up to and including a piece; none for -1, which is before the first."""
        return self.ends[at] if at >= 0 else 0

    def marked(self, *marks: str) -> list[int]:
        """Return which pieces carry one of these marks."""
        return [at for at, piece in enumerate(self.pieces) if piece.mark in marks]


class Violation(Struct, frozen=True, kw_only=True):
    """How a request breaks a rule, in the provider's words."""

    message: str
    status: int = 400
    type: str = "invalid_request_error"
    param: str | None = None
    code: str | None = None


class Refusal(Struct, frozen=True, kw_only=True):
    """The rule a request broke, by name, and what the provider said about it."""

    rule: str
    violation: Violation


class Incoming(Struct, frozen=True, kw_only=True):
    """One request as the rules see it: plain decoded JSON and what the provider knows about the model."""

    headers: Mapping[str, str]
    """By lower-case name; of a key it only matters that there is one."""
    size: int
    """Bytes of the body."""
    body: Json
    """The decoded body; empty if `problem` says why there is none."""
    problem: str = ""
    context_length: int
    count: Count
    counting: bool = False
    """True when only a token count is asked for: nothing is generated, so no output has to fit."""

    @property
    def model(self) -> str:
        """The model's name without what a router put before it."""
        return str(self.body.get("model", "")).rpartition("/")[2]

    @property
    def messages(self) -> list[Json]:
        """The messages; call it only behind the rules that check their shape."""
        messages: list[Json] = self.body["messages"]
        return messages


Rule: TypeAlias = Callable[[Incoming], Iterator[Violation]]


def first_refusal(rules: Iterable[Rule], incoming: Incoming) -> Refusal | None:
    """Return the first rule broken, in the order given: later rules may rely on what earlier ones checked."""
    for rule in rules:
        for violation in rule(incoming):
            return Refusal(rule=rule.__name__, violation=violation)
    return None


class Dialect(Protocol):
    """One provider's way to refuse and to answer."""

    request_id_header: str
    rules: tuple[Rule, ...]

    def error(self, violation: Violation, request_id: str) -> Json:
        """Return the body of an error."""
        ...

    def models(self, context_lengths: Mapping[str, int]) -> Json:
        """Return the list of models."""
        ...

    def reply(self, answer: Spoken, incoming: Incoming) -> Json:
        """Return the whole answer, usage included; the prompt counts as sent from here on."""
        ...

    def events(self, reply: Json, incoming: Incoming) -> Iterator[bytes]:
        """Yield the same answer as server-sent events."""
        ...


class Ids:
    """Issues ids that tell in which order things happened."""

    def __init__(self) -> None:
        self._next = count(1)

    def new(self, kind: str) -> str:
        """Return the next id, such as `msg_000017`."""
        return f"{kind}_{next(self._next):06}"


def slices(text: str) -> Iterator[str]:
    """Yield a text in the pieces in which it is streamed."""
    for start in range(0, len(text), DELTA):
        yield text[start : start + DELTA]


def write(value: object) -> str:
    """Return a value as JSON text."""
    return msgspec.json.encode(value).decode()
