"""One conversation message: its parts, its identity, and the provider's own compaction block as a part."""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import ClassVar, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr, replace

from lowwater.core.stored_form import stored_as
from lowwater.core.strict_json import canonical_json

Source = Literal["base64", "url", "file", "text"]
Role = Literal["system", "developer", "user", "assistant", "tool"]
Format = Literal["openai_chat", "anthropic", "openai_responses"]

_COMPACTION = "compaction"
"""The type of the block into which Anthropic compacts a conversation; it must be sent back as it came."""


class Part(Struct, frozen=True, kw_only=True, eq=False, rename=stored_as("part"), forbid_unknown_fields=True):
    """The base of all parts: they are compared by content, and keep the fields that Lowwater does not know."""

    kind: ClassVar[str] = ""

    extra: bytes = b""
    """The block's other fields as one JSON object, byte for byte; empty if there are none."""

    def identity(self) -> tuple[object, ...]:
        """Return what two equal parts have in common: the kind and every field but `extra`."""
        return (self.kind, *(getattr(self, name) for name in self.__struct_fields__ if name != "extra"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Part) and self.identity() == other.identity()

    def __hash__(self) -> int:
        return hash(self.identity())


class Text(
    Part,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="text",
    rename=stored_as("text"),
    forbid_unknown_fields=True,
):
    """Plain text."""

    kind: ClassVar[str] = "text"

    text: str


class Image(
    Part,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="image",
    rename=stored_as("image"),
    forbid_unknown_fields=True,
):
    """A picture: base64 data, a URL, or the id of an uploaded file in `data`."""

    kind: ClassVar[str] = "image"

    source: Source
    data: str
    media_type: str = ""
    detail: str = ""


class Document(
    Part,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="document",
    rename=stored_as("document"),
    forbid_unknown_fields=True,
):
    """A document, usually a PDF: base64 data, a URL, plain text, or the id of an uploaded file in `data`."""

    kind: ClassVar[str] = "document"

    source: Source
    data: str
    media_type: str = ""
    title: str = ""


class ToolCall(
    Part,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="tool_call",
    rename=stored_as("tool_call"),
    forbid_unknown_fields=True,
):
    """A call of a tool by the model; `arguments` is JSON text as the model wrote it."""

    kind: ClassVar[str] = "tool_call"

    id: str
    name: str
    arguments: str

    def identity(self) -> tuple[object, ...]:
        """Arguments are compared by value: clients parse them and serialise them differently."""
        return (self.kind, self.id, self.name, canonical_json(self.arguments))


class Thinking(
    Part,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="thinking",
    rename=stored_as("thinking"),
    forbid_unknown_fields=True,
):
    """The model's reasoning; the provider verifies it by `signature`, which is all there is if it is `redacted`."""

    kind: ClassVar[str] = "thinking"

    text: str
    signature: str = ""
    redacted: bool = False


class Opaque(
    Part,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="opaque",
    rename=stored_as("opaque"),
    forbid_unknown_fields=True,
):
    """A block of a type that Lowwater does not know; `body` is the whole block as JSON."""

    kind: ClassVar[str] = "opaque"

    block: str
    """The block's type."""
    body: str

    def identity(self) -> tuple[object, ...]:
        """The whole block, except for a cache mark, which is not content."""
        return (self.kind, canonical_json(self.body, without=("cache_control",)))


ResultPart = Text | Image | Document | Opaque


class ToolResult(
    Part,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="tool_result",
    rename=stored_as("tool_result"),
    forbid_unknown_fields=True,
):
    """The result of the tool call `call_id`."""

    kind: ClassVar[str] = "tool_result"

    call_id: str
    parts: tuple[ResultPart, ...]
    is_error: bool = False

    @property
    def text(self) -> str:
        """All text of the result, joined by newlines."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    def identity(self) -> tuple[object, ...]:
        """The call, the content and whether it failed."""
        return (self.kind, self.call_id, tuple(part.identity() for part in self.parts), self.is_error)


AnyPart = Text | Image | Document | ToolCall | ToolResult | Thinking | Opaque


class Wire(Struct, frozen=True, kw_only=True, rename=stored_as("wire"), forbid_unknown_fields=True):
    """The bytes that a message arrived in, so that it can be sent unchanged."""

    format: Format
    raw: bytes
    exact: bool = True
    """False once the parts were edited: then only the fields around the content are taken from the bytes."""


class Message(
    Struct, frozen=True, kw_only=True, eq=False, rename=stored_as("message"), forbid_unknown_fields=True
):
    """One message; equality and hash look at role and parts only, never at the wire form."""

    role: Role
    parts: tuple[AnyPart, ...]
    name: str = ""
    wire: Wire | None = None
    memo: bytes = b""
    """The digest, cached on first use; never set it."""

    @property
    def digest(self) -> bytes:
        """A hash of 16 bytes over role, name and parts: messages with equal content have the same."""
        if not self.memo:
            force_setattr(self, "memo", _digest(self))
        return self.memo

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def text(self) -> str:
        """The message's own text, without thinking, calls and results."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls in it, in order."""
        return tuple([part for part in self.parts if isinstance(part, ToolCall)])

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The tool results in it, in order."""
        return tuple([part for part in self.parts if isinstance(part, ToolResult)])

    @property
    def thinking(self) -> tuple[Thinking, ...]:
        """The thinking in it, in order."""
        return tuple([part for part in self.parts if isinstance(part, Thinking)])

    @property
    def bytes(self) -> int:
        """Its approximate size in a request: of the bytes it arrived in, or of its parts if they were edited."""
        if self.wire is not None and self.wire.exact:
            return len(self.wire.raw)
        return sum(_size_in_bytes(part) for part in self.parts)

    def with_parts(self, parts: Sequence[AnyPart]) -> "Message":
        """Return the message with other parts, and the same role, name and unknown fields."""
        wire = self.wire and Wire(format=self.wire.format, raw=self.wire.raw, exact=False)
        return Message(role=self.role, parts=tuple(parts), name=self.name, wire=wire)


def _digest(message: Message) -> bytes:
    # The name of a tool message repeats its call's, and clients drop it; a user's name tells speakers apart.
    name = message.name if message.role == "user" else ""
    identity = [message.role, name, [part.identity() for part in message.parts]]
    return blake2b(msgspec.json.encode(identity), digest_size=16).digest()


def _size_in_bytes(part: AnyPart) -> int:
    match part:
        case Text() | Thinking():
            return len(part.text.encode(errors="replace"))
        case ToolResult():
            return sum(_size_in_bytes(inner) for inner in part.parts)
        case ToolCall():
            return len(part.name) + len(part.arguments)
        case Image() | Document():
            return len(part.data)
        case Opaque():
            return len(part.body)


def texts_of(message: Message) -> Iterator[str]:
    """Yield every text in the message that the model sees, including thinking and the arguments of calls."""
    for part in message.parts:
        match part:
            case Text() | Thinking():
                yield part.text
            case ToolCall():
                yield part.name
                yield part.arguments
            case ToolResult():
                yield part.text
            case _:
                pass


class NativeBlock(Struct, frozen=True):
    """The known fields of a provider's compaction block; it may have others."""

    content: str | None = None
    encrypted_content: str | None = None
    signature: str | None = None

    @property
    def has_content(self) -> bool:
        """Whether it replaces anything: a block without content is a compaction that failed."""
        return bool(self.content or self.encrypted_content)


def read_block(part: AnyPart) -> NativeBlock | None:
    """Return a part as a compaction block; None if it is another part or a compaction that failed."""
    if not isinstance(part, Opaque) or part.block != _COMPACTION:
        return None
    try:
        block = msgspec.json.decode(part.body, type=NativeBlock)
    except msgspec.MsgspecError:
        return None
    return block if block.has_content else None


def newest_block(messages: Sequence[Message]) -> int | None:
    """Return the index of the newest message with a compaction block that did not fail, or None."""
    for at in range(len(messages) - 1, -1, -1):
        for part in messages[at].parts:
            if isinstance(part, Opaque) and read_block(part) is not None:
                return at
    return None


def message_with(block: bytes) -> Message:
    """Return the assistant message that consists of this compaction block, as the provider expects it back."""
    body = block.decode()
    raw = b'{"role":"assistant","content":[' + block + b"]}"
    return Message(
        role="assistant",
        parts=(Opaque(block=_COMPACTION, body=body),),
        wire=Wire(format="anthropic", raw=raw),
    )


def block_in(message: Message) -> bytes:
    """Return the bytes of the compaction block that a message consists of; empty for any other message."""
    match message.parts:
        case (Opaque(block="compaction", body=body),):
            return body.encode()
        case _:
            return b""


def message_text(message: Message) -> str:
    """Return a message's own text, or the text of its compaction block if it is one."""
    block = read_block(message.parts[0]) if block_in(message) else None
    return message.text if block is None else block.content or ""


def sent_from(messages: Sequence[Message]) -> int:
    """Return the index of the first message to send: a signed block that came alone goes first, without what precedes it."""
    at = newest_block(messages)
    if at is None or len(messages[at].parts) > 1:
        return 0
    block = read_block(messages[at].parts[0])
    return at if block is not None and block.signature else 0


# Groups: messages that belong together


class Span(Struct, frozen=True, kw_only=True, rename=stored_as("span"), forbid_unknown_fields=True):
    """The messages at indexes `start` to `stop`, the latter not included."""

    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


def groups(messages: Sequence[Message]) -> list[Span]:
    """Partition `messages` into groups that must not be split.

    An assistant message with tool calls forms a group with everything up to the last of its results, wherever a client
    put that; any other message is a group of its own.
    """
    return [Span(start=start, stop=stop) for start, stop in pairwise(legal_cuts(messages))]


def legal_cuts(messages: Sequence[Message]) -> list[int]:
    """Return the indexes at which `messages` may be cut without splitting a group, including both ends."""
    results_end = _results_end(messages)
    cuts = [0]
    stop = 0
    for index in range(len(messages)):
        stop = max(stop, index + 1, results_end.get(index, 0))
        if stop == index + 1:
            cuts.append(stop)
    return cuts


def _results_end(messages: Sequence[Message]) -> dict[int, int]:
    """Return, for each message whose calls have results, the index after the last of these."""
    owner: dict[str, int] = {}
    ends: dict[int, int] = {}
    for index, message in enumerate(messages):
        for part in message.parts:
            if isinstance(part, ToolResult):
                if part.call_id in owner:
                    ends[owner[part.call_id]] = index + 1
            elif isinstance(part, ToolCall):
                owner[part.id] = index
    return ends


def turns(messages: Sequence[Message]) -> list[Span]:
    """Partition `messages` into turns, each of which ends with an answer of the model.

    What follows the last answer is the turn in progress.
    """
    spans: list[Span] = []
    start = 0
    for index, message in enumerate(messages):
        if message.role == "assistant":
            spans.append(Span(start=start, stop=index + 1))
            start = index + 1
    if start < len(messages):
        spans.append(Span(start=start, stop=len(messages)))
    return spans


class Unpaired(Struct, frozen=True, kw_only=True):
    """Calls and results that do not pair up, each as message index and call id."""

    calls: tuple[tuple[int, str], ...]
    """Calls that other messages follow, but never their result."""
    results: tuple[tuple[int, str], ...]
    """Results whose call does not come before them."""
    repeated: tuple[tuple[int, str], ...]
    """Calls and results that use an id again."""

    def __bool__(self) -> bool:
        return bool(self.calls or self.results or self.repeated)


def unpaired(messages: Sequence[Message]) -> Unpaired:
    """Return calls without results, results without calls, and ids used twice; the newest calls may still be open."""
    called: dict[str, int] = {}
    answered: set[str] = set()
    orphans: list[tuple[int, str]] = []
    repeated: list[tuple[int, str]] = []
    newest_call = -1
    for index, message in enumerate(messages):
        for result in message.results:
            if result.call_id not in called:
                orphans.append((index, result.call_id))
            elif result.call_id in answered:
                repeated.append((index, result.call_id))
            answered.add(result.call_id)
        for call in message.calls:
            newest_call = index
            if call.id in called:
                repeated.append((index, call.id))
            called[call.id] = index
            answered.discard(call.id)
    followed = any(message.role == "assistant" for message in messages[newest_call + 1 :])
    open_calls = tuple(
        (index, call_id)
        for call_id, index in called.items()
        if call_id not in answered and (index != newest_call or followed)
    )
    return Unpaired(calls=open_calls, results=tuple(orphans), repeated=tuple(repeated))


# Unique ids for tool calls


class CallIds:
    """Gives the tool calls of a conversation unique ids, message by message.

    A new id depends on the messages before it alone, so that a message gets the same one every time its list is sent.
    """

    def __init__(self, *, across_messages: bool = True) -> None:
        self._across_messages = across_messages
        """Whether an id may not be used again in a later message either."""
        self._taken: set[str] = set()
        self._number: Counter[str] = Counter()
        self._waiting: dict[str, deque[str]] = {}
        """By the id that came, the new ids of calls whose results have not come yet."""
        self._latest: dict[str, str] = {}

    def with_unique_ids(self, message: Message) -> Message:
        """Return the next message with unique call ids, and with results that refer to them; mostly that is the message itself.

        Of several calls with one id the first result belongs to the first call, and so on.
        """
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        if calls and not self._across_messages:
            self._taken, self._number = set(), Counter()
        for call in calls:
            self._waiting[call.id] = deque()
        parts = [self._part(part) for part in message.parts]
        if all(new is old for new, old in zip(parts, message.parts, strict=True)):
            return message
        return message.with_parts(parts)

    def _part(self, part: AnyPart) -> AnyPart:
        match part:
            case ToolCall(id=id):
                new = self._free(id)
                self._taken.add(new)
                self._waiting[id].append(new)
                self._latest[id] = new
                return part if new == id else replace(part, id=new)
            case ToolResult(call_id=id):
                waiting = self._waiting.get(id)
                new = waiting.popleft() if waiting else self._latest.get(id, id)
                return part if new == id else replace(part, call_id=new)
            case _:
                return part

    def _free(self, id: str) -> str:
        new = id
        while new in self._taken:
            self._number[id] += 1
            new = f"{id}-{self._number[id] + 1}"
        return new


def call_ids_for(messages: Sequence[Message]) -> CallIds:
    """Return what makes the call ids in these messages as unique as their provider requires."""
    return CallIds(across_messages=_across_messages(messages))


def with_unique_call_ids(
    messages: Sequence[Message], *, across_messages: bool | None = None
) -> list[Message]:
    """Return the messages with unique call ids: within each message, and `across_messages` where their provider requires that.

    Messages whose ids are unique already are not changed.
    """
    across = _across_messages(messages) if across_messages is None else across_messages
    if not _repeats(messages, across_messages=across):
        return list(messages)
    ids = CallIds(across_messages=across)
    return [ids.with_unique_ids(message) for message in messages]


def repeats_call_ids(messages: Sequence[Message]) -> bool:
    """Return whether the provider of these messages would refuse them because an id stands for two calls."""
    return _repeats(messages, across_messages=_across_messages(messages))


def _across_messages(messages: Sequence[Message]) -> bool:
    """OpenAI requires different ids within one message, Anthropic within the whole conversation."""
    return format_of(messages) == "anthropic"


def _repeats(messages: Sequence[Message], *, across_messages: bool) -> bool:
    seen: set[str] = set()
    for message in messages:
        if message.role != "assistant":
            continue
        if not across_messages:
            seen = set()
        for part in message.parts:
            if isinstance(part, ToolCall):
                if part.id in seen:
                    return True
                seen.add(part.id)
    return False


def format_of(messages: Sequence[Message]) -> Format | None:
    """Return the format that a list of messages came in; None if none of them came from a client or a provider."""
    return next((message.wire.format for message in messages if message.wire is not None), None)
