"""The entries of a ledger, which are what can happen in a session, and the edits that compactions make to messages."""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.messages import (
    AnyPart,
    Document,
    Image,
    Message,
    Opaque,
    ResultPart,
    Role,
    Text,
    ToolResult,
)
from lowwater.core.stored_form import stored_as
from lowwater.errors import IllegalEntry


class Opened(
    Struct, frozen=True, kw_only=True, tag="opened", rename=stored_as("opened"), forbid_unknown_fields=True
):
    """The session begins; `vocabulary` is the tokenizer's, by which all its messages are counted."""

    at: float
    model: str
    vocabulary: str


class Appended(
    Struct,
    frozen=True,
    kw_only=True,
    tag="appended",
    rename=stored_as("exported_appended"),
    forbid_unknown_fields=True,
):
    """Messages came in; `tokens` is the size of each in the session's vocabulary, counted once."""

    at: float
    messages: tuple[Message, ...]
    tokens: tuple[int, ...]


class PreambleChanged(
    Struct,
    frozen=True,
    kw_only=True,
    tag="preamble_changed",
    rename=stored_as("preamble_changed"),
    forbid_unknown_fields=True,
):
    """The system prompt or the tools changed; both are stored as the JSON that was sent."""

    at: float
    system: bytes = b""
    tools: bytes = b""
    tokens: int = 0


class ModelChanged(
    Struct,
    frozen=True,
    kw_only=True,
    tag="model_changed",
    rename=stored_as("model_changed"),
    forbid_unknown_fields=True,
):
    """The session continues with another model."""

    at: float
    model: str


class Numbers(Struct, frozen=True, kw_only=True, rename=stored_as("numbers"), forbid_unknown_fields=True):
    """The messages numbered `first` to `last`, both included."""

    first: int
    last: int


class Edit(Struct, frozen=True, kw_only=True, rename=stored_as("edit"), forbid_unknown_fields=True):
    """Replace one part of a message by another, or drop it (`by` is None).

    `path` is the part's index, followed by the index within a tool result for a part inside one.
    """

    path: tuple[int, ...]
    by: AnyPart | None


class KeptRange(
    Struct, frozen=True, kw_only=True, tag="kept", rename=stored_as("kept"), forbid_unknown_fields=True
):
    """These messages are shown as they are."""

    numbers: Numbers


class AlteredMessage(
    Struct, frozen=True, kw_only=True, tag="altered", rename=stored_as("altered"), forbid_unknown_fields=True
):
    """This message is shown with some parts replaced; the placeholders' text is stored here and never changes."""

    number: int
    edits: tuple[Edit, ...]
    tokens: int


class SummarizedSpan(
    Struct,
    frozen=True,
    kw_only=True,
    tag="summarized",
    rename=stored_as("summarized"),
    forbid_unknown_fields=True,
):
    """A summary is shown in place of the messages in `sources`."""

    text: str
    role: Role
    sources: tuple[Numbers, ...]
    tokens: int
    depth: int = 1
    block: bytes = b""
    """The provider's own compaction block, byte for byte, if it made the summary; `text` is then the block's text."""


ViewItem = KeptRange | AlteredMessage | SummarizedSpan


class Compacted(
    Struct,
    frozen=True,
    kw_only=True,
    tag="compacted",
    rename=stored_as("compacted"),
    forbid_unknown_fields=True,
):
    """The view consists of `items`, in order, from now on; the ledger still has every message."""

    at: float
    mechanisms: tuple[str, ...]
    items: tuple[ViewItem, ...]


class Rewound(
    Struct, frozen=True, kw_only=True, tag="rewound", rename=stored_as("rewound"), forbid_unknown_fields=True
):
    """The view is again what it was when the ledger had `to` entries.

    Messages that came later are shown after it, unless `discard_later` is set.
    """

    at: float
    to: int
    discard_later: bool = False


class Retracted(
    Struct,
    frozen=True,
    kw_only=True,
    tag="taken_back",
    rename=stored_as("taken_back"),
    forbid_unknown_fields=True,
):
    """The client took these messages back: they leave the view, unless a rewind has removed them already, and are not recalled.

    Compactions of other messages stay in effect.
    """

    at: float
    numbers: tuple[int, ...]


class Checkpointed(
    Struct,
    frozen=True,
    kw_only=True,
    tag="checkpointed",
    rename=stored_as("checkpointed"),
    forbid_unknown_fields=True,
):
    """This position of the ledger has a name."""

    at: float
    name: str


Entry = Opened | Appended | PreambleChanged | ModelChanged | Compacted | Rewound | Retracted | Checkpointed


def apply_edits(message: Message, edits: Iterable[Edit]) -> Message:
    """Return `message` with `edits` applied, in order, or raise IllegalEntry.

    Indexes refer to the message as it was before anything was dropped. If a tool result itself was replaced by an
    earlier edit, indexes inside it refer to the replacement.
    """
    parts: list[AnyPart | None] = list(message.parts)
    inside: dict[int, list[ResultPart | None]] = {}
    for edit in edits:
        at, *rest = edit.path or (-1,)
        if not 0 <= at < len(parts):
            raise _no_such_part(edit, message)
        if not rest:
            parts[at] = edit.by
            inside.pop(at, None)
            continue
        result = parts[at]
        if not isinstance(result, ToolResult) or len(rest) > 1 or not 0 <= rest[0] < len(result.parts):
            raise _no_such_part(edit, message)
        inside.setdefault(at, list(result.parts))[rest[0]] = _result_part(edit.by)
    for at, within in inside.items():
        result = parts[at]
        assert isinstance(result, ToolResult)
        parts[at] = replace(result, parts=tuple(part for part in within if part is not None))
    return message.with_parts([part for part in parts if part is not None])


def _no_such_part(edit: Edit, message: Message) -> IllegalEntry:
    return IllegalEntry(f"no part {edit.path} to edit in a message of {len(message.parts)} parts")


def _result_part(part: AnyPart | None) -> ResultPart | None:
    if part is None or isinstance(part, Text | Image | Document | Opaque):
        return part
    raise IllegalEntry(f"a {part.kind} cannot be part of a tool result")


def merge_edits(old: Iterable[Edit], new: Iterable[Edit]) -> tuple[Edit, ...]:
    """Return `old` and `new` edits as one list: a new edit replaces older ones at its path and below it."""
    added = tuple(new)
    replaced = {edit.path for edit in added}
    kept = [edit for edit in old if not any(edit.path[: len(path)] == path for path in replaced)]
    return tuple(sorted((*kept, *added), key=lambda edit: edit.path))
