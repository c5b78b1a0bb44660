"""What the commands on a conversation in a file share: their arguments, reading the file, opening a session on it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Raw, Struct

from lowwater.adapters.files import read_text_file
from lowwater.cli.wording import from_the_end, on_one_line, printable
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
from lowwater.session.reopen import DEFAULT_MODEL
from lowwater.session.session import Session
from lowwater.settings import Settings

FORMATS: dict[str, Format | None] = {
    "auto": None,
    "openai": "openai_chat",
    "responses": "openai_responses",
    "anthropic": "anthropic",
}
ASSUMED_MODEL = f"The file names no model: {DEFAULT_MODEL} is assumed, --model names another."


FileArgument = Annotated[
    str, typer.Argument(metavar="FILE", help="A conversation, or an agent's log; - reads standard input.")
]
FileModel = Annotated[str, typer.Option(metavar="NAME", help="Whose window to fit; default: the file's.")]
FileFormat = Annotated[str, typer.Option(metavar="FORMAT", help="auto, openai, responses or anthropic.")]


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
        summarizer=(),
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
