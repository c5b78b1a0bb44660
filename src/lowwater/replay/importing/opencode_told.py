"""What OpenCode writes down: a session, its messages, and the parts of each."""

from typing import Any

from msgspec import Raw, Struct, field

from lowwater.core.api_calls import Usage
from lowwater.replay.importing.times import seconds

Figure = int | float | None


class Span(Struct):
    """When something began and ended, in milliseconds."""

    created: Any = None
    completed: Any = None
    start: Any = None
    end: Any = None
    compacted: Any = None
    """When the output of a tool was cleared."""


class _Cache(Struct):
    read: Figure = None
    write: Figure = None


class Tokens(Struct):
    """What a call consumed; `input` is what was not read from the cache and not written to it."""

    input: Figure = None
    output: Figure = None
    reasoning: Figure = None
    total: Figure = None
    cache: _Cache | None = None

    @property
    def usage(self) -> Usage | None:
        """The same in parts that do not overlap; None if there was no prompt.

        Since a total is recorded, reasoning stands beside the output; before, it was part of it.
        """
        cache = self.cache or _Cache()
        figures = (self.input, cache.read, cache.write, self.output)
        uncached, read, written, output = map(_count, figures)
        beyond = _count(self.total) - uncached - read - written
        output = max(output, min(beyond, output + _count(self.reasoning)))
        usage = Usage(uncached=uncached, cache_read=read, cache_write=written, output=output)
        return usage if usage.prompt else None


class SessionInfo(Struct):
    """A session without its messages."""

    id: str = ""
    parent: str | None = field(default=None, name="parentID")
    time: Span | None = None


class MessageInfo(Struct):
    """A message without its parts."""

    role: str
    id: str = ""
    model: str | None = field(default=None, name="modelID")
    parent: str | None = field(default=None, name="parentID")
    time: Span | None = None
    tokens: Tokens | None = None
    summary: Any = None
    error: Any = None
    system: Any = None

    @property
    def begun(self) -> float | None:
        """When it was begun: for an answer, when it was asked for."""
        return seconds(self.time.created) if self.time else None

    @property
    def is_summary(self) -> bool:
        """Whether this is an answer that stands for all before it, and came to its end."""
        ended = self.time is not None and self.time.completed is not None
        return self.role == "assistant" and self.summary is True and self.error is None and ended


class File(Struct):
    """Something attached, mostly a picture as a data URL."""

    mime: str = ""
    url: str = ""
    filename: str | None = None


class State(Struct):
    """What became of a tool call."""

    status: str = ""
    input: Raw = Raw(b"{}")
    output: str | None = None
    error: str | None = None
    time: Span | None = None
    attachments: list[File] | None = None


class Part(Struct):
    """One part of a message, of any type: a type has only some of these."""

    type: str
    text: str = ""
    synthetic: bool | None = None
    ignored: bool | None = None
    time: Span | None = None
    mime: str = ""
    url: str = ""
    filename: str | None = None
    call: str = field(default="", name="callID")
    tool: str = ""
    state: State | None = None
    tokens: Tokens | None = None
    auto: bool | None = None


class Told(Struct, frozen=True, kw_only=True):
    """A message with its parts, in order, as they were read."""

    where: str
    info: MessageInfo
    parts: tuple[Part, ...]


def _count(figure: Figure) -> int:
    return int(figure) if figure is not None and 0 <= figure < 1 << 53 else 0
