"""Conversation files for the commands that work on one, and drawing what fills a window."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Raw, Struct
from rich.table import Table
from rich.text import Text

from lowwater.adapters.files import read_text_file
from lowwater.cli.wording import from_the_end, on_one_line, printable
from lowwater.core.accounts.contents import Contents, ContentShare
from lowwater.core.formats.files import Conversation, decode_conversation
from lowwater.core.messages import Format
from lowwater.core.wording import counted
from lowwater.errors import BadInput, UnknownFormat
from lowwater.logs.importers import recordings
from lowwater.logs.recording import BrokenLine, Recording
from lowwater.logs.recording_builder import is_empty
from lowwater.session.factories import FORGETFUL
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.session import Session
from lowwater.settings import Settings

FORMATS: dict[str, Format | None] = {
    "auto": None,
    "openai": "openai_chat",
    "responses": "openai_responses",
    "anthropic": "anthropic",
}
DEFAULT_MODEL = "claude-opus-5-5"
ASSUMED_MODEL = f"The file names no model: {DEFAULT_MODEL} is assumed, --model names another."
_COLOURS = {
    "tools": "bright_black",
    "system": "blue",
    "user": "green",
    "assistant": "cyan",
    "thinking": "magenta",
    "tool calls": "yellow",
    "tool results": "red",
    "images": "bright_magenta",
    "documents": "bright_blue",
    "other": "white",
}


class OpenedFile(Struct, frozen=True, kw_only=True):
    """What a file holds for the commands that work on one conversation."""

    conversation: Conversation
    session: str = ""
    """The session of an agent's log that it is; empty for a plain conversation."""
    sessions: int = 1
    """How many the file holds: the longest is opened."""
    left_out: tuple[BrokenLine, ...] = ()
    """What of the file could not be used."""

    def notes(self) -> Iterator[str]:
        """Yield what a reader should know: which session it is, and what was left out."""
        if self.sessions > 1:
            yield f"The longest of {self.sessions:,} sessions in the file: {on_one_line(self.session, 60)}."
        if self.left_out:
            first = self.left_out[0]
            where = f"{from_the_end(printable(first.place), 60)} ({on_one_line(first.why, 80)})"
            yield f"{counted(len(self.left_out), 'line')} left out, the first at {where}."

    def as_json(self) -> dict[str, object]:
        """Return the same for programs."""
        return {"session": self.session, "sessions": self.sessions, "left_out": self.left_out}


def open_file(file: str, format: str) -> OpenedFile:
    """Return the conversation in a file, or raise a BadInput that says what to change.

    The log of an agent is read as well: what its longest session held, without what its own compactions left.
    """
    if format not in FORMATS:
        raise UnknownFormat(f"there is no format {format[:40]!r}: use auto, openai, responses or anthropic")
    try:
        return OpenedFile(conversation=decode_conversation(read_text_file(file), FORMATS[format]))
    except BadInput as error:
        found = _recordings_in(file, whole=not isinstance(error, UnknownFormat))
        opened = [conversation_of(each) for each in found]
        if not any(each.messages for each in opened):
            raise
        longest = max(range(len(found)), key=lambda at: len(opened[at].messages))
        return OpenedFile(
            conversation=opened[longest],
            session=found[longest].id,
            sessions=len(found),
            left_out=found[longest].broken,
        )


def recorded_in(file: str, *, whole: bool = False) -> list[Conversation]:
    """Return the sessions in the log of an agent, its own first; none if the file is no such log.

    `whole` takes none of which a part cannot be read: what looks like a conversation with a mistake in it is one.
    """
    return [conversation_of(each) for each in _recordings_in(file, whole=whole)]


def _recordings_in(file: str, *, whole: bool) -> list[Recording]:
    if file == "-":
        return []
    found = [each for each in recordings([Path(file)]) if each.messages]
    return [] if whole and any(each.broken for each in found) else found


def conversation_of(recording: Recording) -> Conversation:
    """Return what a recorded session held, without what its own compactions left."""
    messages = tuple(
        each.message
        for each in recording.messages
        if each.kind != "compact_summary" and not is_empty(each.message)
    )
    formats = [message.wire.format for message in messages if message.wire is not None]
    return Conversation(
        shape="lines",
        format=formats[0] if formats else "openai_chat",
        messages=messages,
        system=recording.system,
        tools=recording.tools,
        model=recording.model,
    )


def open_session(conversation: Conversation, *, model: str, policy: str, settings: Settings) -> Session:
    """Return a session that holds the conversation, on the model named, else the file's, else a default."""
    if not conversation.messages:
        raise BadInput("the conversation is empty: there is nothing to compact")
    lowwater = Lowwater(
        model=model or conversation.model or DEFAULT_MODEL,
        policy=policy or None,
        settings=settings,
        store=FORGETFUL,
    )
    session = lowwater.session("file")
    raws = [message.wire.raw for message in conversation.messages if message.wire is not None]
    internals(session).sync_messages(
        raws,
        system=Raw(conversation.system) if conversation.system else None,
        tools=Raw(conversation.tools) if conversation.tools else None,
    )
    return session


def draw_contents(contents: Contents, context: int, width: int) -> Iterator[Table | Text]:
    """Yield the bar with its legend, then the tables by tool and age and the largest pieces."""
    yield _bar(contents, context, width)
    yield _legend(contents, context)
    if contents.by_tool:
        yield Text("\nby tool", style="bold")
        yield _shares(contents.by_tool[:10], contents.tokens, "results", width)
    yield Text("\nby age", style="bold")
    yield _shares(contents.by_age, contents.tokens, "messages", width)
    yield Text("\nlargest", style="bold")
    table = _table()
    for piece in contents.largest:
        share = f"{piece.tokens / max(contents.tokens, 1):.0%}"
        table.add_row(
            piece.label, f"{piece.tokens:,}", share, Text(f"message {piece.index}", style="bright_black")
        )
    yield table
    yield from _problems(contents)


def _bar(contents: Contents, context: int, width: int) -> Text:
    """Draw the whole window on one line; every kind that is there gets at least its share, rounded down."""
    bar = Text()
    whole = max(context, contents.tokens, 1)
    drawn = spent = 0
    for share in contents.by_kind:
        spent += share.tokens
        cells = round(width * spent / whole) - drawn
        bar.append("█" * cells, style=_COLOURS[share.label])
        drawn += cells
    bar.append("░" * (width - drawn), style="bright_black")
    return bar


def _legend(contents: Contents, context: int) -> Table:
    table = _table()
    for share in contents.by_kind:
        label = Text("■ ", style=_COLOURS[share.label]) + Text(share.label, style="default")
        pieces = Text(f"{share.count:,}", style="bright_black")
        table.add_row(label, f"{share.tokens:,}", f"{share.tokens / max(contents.tokens, 1):.0%}", pieces)
    free = context - contents.tokens
    if free >= 0:
        table.add_row(Text("░ free", style="bright_black"), f"{free:,}", "", "")
    else:
        table.add_row(Text("over the window", style="bold red"), f"{-free:,}", "", "")
    return table


def _shares(shares: Sequence[ContentShare], whole: int, counted: str, width: int) -> Table:
    table = _table()
    widest = max((share.tokens for share in shares), default=1) or 1
    room = max(8, width - 62)
    for share in shares:
        bar = "▇" * round(room * share.tokens / widest)
        said = Text(
            f"{share.count:,} {counted if share.count != 1 else counted.removesuffix('s')}",
            style="bright_black",
        )
        table.add_row(share.label, f"{share.tokens:,}", f"{share.tokens / max(whole, 1):.0%}", said, bar)
    return table


def _table() -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(min_width=22, max_width=34, no_wrap=True)
    table.add_column(justify="right")
    table.add_column(justify="right", style="bright_black")
    table.add_column()
    table.add_column(style="red", no_wrap=True)
    return table


def _problems(contents: Contents) -> Iterator[Text]:
    broken = contents.unpaired
    for found, said in (
        (broken.calls, "calls were never answered"),
        (broken.results, "results answer no call"),
        (broken.repeated, "ids are used twice"),
    ):
        if found:
            places = ", ".join(f"message {index}" for index, _ in found[:5])
            more = f" and {len(found) - 5} more" if len(found) > 5 else ""
            yield Text(f"\n{len(found)} {said}: {places}{more}", style="yellow")
