"""A session as another program recorded it: its messages in order, their times, and the usage of its calls."""

from typing import Literal

from msgspec import Struct

from lowwater.core.api_calls import Usage
from lowwater.core.messages import Message


class RecordedCall(Struct, frozen=True, kw_only=True):
    """The call that produced an answer; it appears once, however often the recording repeats it."""

    model: str = ""
    """As spelled in the recording; empty if not recorded."""
    usage: Usage | None = None
    """As reported, split into parts that do not overlap; None if not recorded."""
    others: tuple[Usage, ...] = ()
    """Usage of other calls without a message: made by the provider along with it, or since the last answer."""
    list_price: bool = True
    """Whether all of it was billed at the model's list price; False if another tier is recorded."""
    asked_at: float | None = None
    """When the request was sent; None if only the time of the answer is recorded."""
    id: str = ""
    """The same in every copy of the call, in whatever file; empty if copies cannot be recognised."""
    made_by: str = ""
    """The session that made the call, if this one only repeats it; empty for its own calls."""


class RecordedMessage(Struct, frozen=True, kw_only=True):
    """One message; only the first message of each answer has a `call`."""

    message: Message
    at: float | None = None
    """Seconds since the epoch; None if not recorded."""
    call: RecordedCall | None = None
    kind: str = ""
    """What it is other than conversation: `compact_summary`, `meta`, `attachment`, `synthetic`; else empty."""


class NativeCompaction(Struct, frozen=True, kw_only=True):
    """A compaction by the recording agent: a summary of everything before it, or a prune of results."""

    index: int
    """The index of the first message after it."""
    kind: Literal["summary", "prune"] = "summary"
    at: float | None = None
    trigger: str = ""
    """`auto` or `manual`; empty if not recorded."""
    before: int | None = None
    """Tokens of the prompt before it; None if not recorded."""
    removed: int | None = None
    """Tokens that a prune removed; None if not recorded."""
    cleared: tuple[str, ...] = ()
    """The ids of the calls whose results a prune cleared, if recorded."""
    version: str = ""
    """The version of the agent that made it; empty if not recorded."""


class BrokenLine(Struct, frozen=True, kw_only=True):
    """A part of the recording that could not be read and was left out."""

    place: str
    """The file and the position in it."""
    why: str
    """The reason, without any content of the file."""


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
    """The session of which it is a sub-agent or a fork."""
    relation: str = ""
    """`subagent` or `fork`, if it has a parent."""
    shared: int = 0
    """The number of its first messages that another recording of the run has too, along with their calls."""
    project: str = ""
    """The folder that the agent worked in; empty if not recorded."""
    started_at: float | None = None
    system: bytes = b""
    """The system prompt as JSON; empty if not recorded."""
    tools: bytes = b""
    usage: Usage | None = None
    """The total usage of its calls, if only that was recorded."""
    compactions: tuple[NativeCompaction, ...] = ()
    broken: tuple[BrokenLine, ...] = ()
