"""A session as another program recorded it: its messages in order, when they came, and what its calls were billed."""

from typing import Literal

from msgspec import Struct

from lowwater.core.api_calls import Usage
from lowwater.core.messages import Message


class RecordedCall(Struct, frozen=True, kw_only=True):
    """The call that an answer came from; each is told once, however often the recording repeats it."""

    model: str = ""
    """As the recording spells it; empty if it does not say."""
    usage: Usage | None = None
    """As it was reported, in the parts that do not overlap; None if it was not recorded."""
    others: tuple[Usage, ...] = ()
    """What other calls were billed that no message came from: made by the provider beside it, or since the last answer."""
    list_price: bool = True
    """Whether all of it was billed at the model's list price; False if another tier is recorded."""
    asked_at: float | None = None
    """When the request was sent, where that is recorded; else the answer's time is all there is."""
    id: str = ""
    """The same in every copy of the call, whatever file and time it is told at; empty if nothing tells copies by."""
    made_by: str = ""
    """The session that made the call, where this one only repeats it; empty for its own calls."""


class RecordedMessage(Struct, frozen=True, kw_only=True):
    """One message; `call` stands with the first message of each answer, and with that one only."""

    message: Message
    at: float | None = None
    """Seconds since the epoch; None if that was not recorded."""
    call: RecordedCall | None = None
    kind: str = ""
    """What it is beside conversation: `compact_summary`, `meta`, `attachment`, `synthetic`; empty for none of these."""


class NativeCompaction(Struct, frozen=True, kw_only=True):
    """A compaction that the recording agent made itself: a summary of what was before, or a prune of results in it."""

    index: int
    """The first message behind it."""
    kind: Literal["summary", "prune"] = "summary"
    at: float | None = None
    trigger: str = ""
    """`auto` or `manual`, where that is recorded."""
    before: int | None = None
    """The prompt before it in tokens, as far as it is recorded."""
    removed: int | None = None
    """What a prune took out of it, as far as that is recorded."""
    cleared: tuple[str, ...] = ()
    """The calls whose results a prune cleared, as far as they are named."""


class BrokenLine(Struct, frozen=True, kw_only=True):
    """A part of the recording that could not be read, and was left out."""

    place: str
    """The file and where in it."""
    why: str
    """Without contents."""


class Recording(Struct, frozen=True, kw_only=True):
    """One recorded session."""

    id: str
    agent: str
    """Who recorded it: `claude-code`, `codex`, `gemini-cli` and the like."""
    path: str
    messages: tuple[RecordedMessage, ...]
    model: str = ""
    """The model of most calls; empty if none is named."""
    parent: str = ""
    """The session it is a sub-agent or a fork of."""
    relation: str = ""
    """`subagent` or `fork`, if it has a parent."""
    shared: int = 0
    """How many of its first messages another recording of the run holds too, whose calls are told there."""
    started_at: float | None = None
    system: bytes = b""
    """The system prompt as JSON, where it is recorded."""
    tools: bytes = b""
    usage: Usage | None = None
    """All its calls together, where only that sum was recorded and no usage by call."""
    compactions: tuple[NativeCompaction, ...] = ()
    broken: tuple[BrokenLine, ...] = ()
