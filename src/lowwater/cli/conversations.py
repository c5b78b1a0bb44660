"""Opening a conversation file as a session, for the commands that work on one."""

from msgspec import Raw

from lowwater.errors import BadInput, UnknownFormat
from lowwater.load.files import read_file
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
    """Return the conversation in a file, or raise a BadInput that says what to change."""
    if format not in FORMATS:
        raise UnknownFormat(f"there is no format {format[:40]!r}: use auto, openai or anthropic")
    return decode_conversation(read_file(file), FORMATS[format])


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
