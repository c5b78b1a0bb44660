"""Opening a conversation file as a session, for the commands that work on one."""

from pathlib import Path

from msgspec import Raw

from lowwater.errors import BadInput, UnknownFormat
from lowwater.load.files import read_file
from lowwater.replay.importing.importing import recordings
from lowwater.values.conversation import Conversation
from lowwater.values.message import Format
from lowwater.values.settings import Settings
from lowwater.wire.conversation import decode_conversation
from lowwater.wiring.library import Lowwater
from lowwater.wiring.session import Session
from lowwater.wiring.stores import FORGETFUL

FORMATS: dict[str, Format | None] = {"auto": None, "openai": "openai_chat", "anthropic": "anthropic"}
DEFAULT_MODEL = "claude-opus-5-5"
ASSUMED_MODEL = f"The file names no model: {DEFAULT_MODEL} is assumed, --model names another."


def open_conversation(file: str, format: str) -> Conversation:
    """Return the conversation in a file, or raise a BadInput that says what to change.

    The log of an agent is read as well: what its longest session held, without what its own compactions left.
    """
    if format not in FORMATS:
        raise UnknownFormat(f"there is no format {format[:40]!r}: use auto, openai or anthropic")
    try:
        return decode_conversation(read_file(file), FORMATS[format])
    except UnknownFormat:
        recorded = None if file == "-" else _recorded(Path(file))
        if recorded is None:
            raise
        return recorded


def _recorded(path: Path) -> Conversation | None:
    longest = max(recordings([path]), key=lambda each: len(each.messages), default=None)
    if longest is None:
        return None
    messages = tuple(each.message for each in longest.messages if each.kind != "compact_summary")
    formats = [message.wire.format for message in messages if message.wire is not None]
    if not formats:
        return None
    return Conversation(
        shape="lines",
        format=formats[0],
        messages=messages,
        system=longest.system,
        tools=longest.tools,
        model=longest.model,
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
