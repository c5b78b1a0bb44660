"""Opening a conversation file as a session, for the commands that work on one."""

from pathlib import Path

from msgspec import Raw

from lowwater.errors import BadInput, UnknownFormat
from lowwater.load.files import read_file
from lowwater.replay.importing.importing import recordings
from lowwater.values.conversation import Conversation
from lowwater.values.message import Format
from lowwater.values.recording import Recording
from lowwater.values.settings import Settings
from lowwater.wire.conversation import decode_conversation
from lowwater.wiring.library import Lowwater
from lowwater.wiring.session import Session
from lowwater.wiring.stores import FORGETFUL

FORMATS: dict[str, Format | None] = {
    "auto": None,
    "openai": "openai_chat",
    "responses": "openai_responses",
    "anthropic": "anthropic",
}
DEFAULT_MODEL = "claude-opus-5-5"
ASSUMED_MODEL = f"The file names no model: {DEFAULT_MODEL} is assumed, --model names another."


def open_conversation(file: str, format: str) -> Conversation:
    """Return the conversation in a file, or raise a BadInput that says what to change.

    The log of an agent is read as well: what its longest session held, without what its own compactions left.
    """
    if format not in FORMATS:
        raise UnknownFormat(f"there is no format {format[:40]!r}: use auto, openai, responses or anthropic")
    try:
        return decode_conversation(read_file(file), FORMATS[format])
    except BadInput as error:
        recorded = recorded_in(file, whole=not isinstance(error, UnknownFormat))
        if not recorded:
            raise
        return max(recorded, key=lambda each: len(each.messages))


def recorded_in(file: str, *, whole: bool = False) -> list[Conversation]:
    """Return the sessions in the log of an agent, its own first; none if the file is no such log.

    `whole` takes none of which a part cannot be read: what looks like a conversation with a mistake in it is one.
    """
    if file == "-":
        return []
    found = [each for each in recordings([Path(file)]) if each.messages]
    return [] if whole and any(each.broken for each in found) else [_as_conversation(each) for each in found]


def _as_conversation(recording: Recording) -> Conversation:
    messages = tuple(each.message for each in recording.messages if each.kind != "compact_summary")
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
    session.take_in(
        raws,
        system=Raw(conversation.system) if conversation.system else None,
        tools=Raw(conversation.tools) if conversation.tools else None,
    )
    return session
