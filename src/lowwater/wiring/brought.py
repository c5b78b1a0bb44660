"""What a caller hands to a session, as Python objects: read in the format it tells."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from lowwater.engine.effects import Steps
from lowwater.engine.intake import Incoming
from lowwater.engine.recall import offers_recall
from lowwater.engine.setup import Setup
from lowwater.engine.state import State
from lowwater.engine.turn import Prepared, prepare
from lowwater.errors import BadInput, MalformedMessage
from lowwater.values.message import Format, Message
from lowwater.wire.detect import told_format
from lowwater.wire.formats import decode_messages, encode_messages, raw_messages, reread
from lowwater.wire.reading import read_plain, write_json


class Read(Struct, frozen=True, kw_only=True):
    """Messages, the format they were read in, and whether one of them told it; None if they read the same in all."""

    messages: tuple[Message, ...]
    format: Format
    told: Format | None


class Brought(Struct, frozen=True, kw_only=True):
    """The arguments of one call of `prepare`."""

    messages: Sequence[object] | None = None
    system: object = None
    tools: Sequence[object] | None = None
    max_tokens: int | None = None
    offers_recall: bool = False
    thinking: object = None
    tool_choice: object = None

    def incoming(self, state: State) -> Incoming:
        """Return them as values."""
        read = None if self.messages is None else read_messages(self.messages, state)
        tools = None if self.tools is None else write_json(self.tools)
        return Incoming(
            messages=None if read is None else read.messages,
            format=None if read is None else read.told,
            assumed=None if read is None else read.format,
            system=None if self.system is None else write_json(self.system),
            tools=tools,
            max_tokens=self.max_tokens,
            offers_recall=self.offers_recall
            or offers_recall(state.ledger.view.tools if tools is None else tools),
            parameters=self.written(self.thinking) + b"\0" + self.written(self.tool_choice),
        )

    @staticmethod
    def written(value: object) -> bytes:
        """Return a parameter as JSON, nothing if it was not given."""
        return b"" if value is None else write_json(value)

    def turn(self, state: State, setup: Setup, at: float) -> Steps[Prepared]:
        """Return the turn that prepares them for sending; what could not be sent is refused before it is kept."""
        prepared = yield from prepare(state, self.incoming(state), setup, at)
        refuse_unsendable(state, prepared.state)
        return prepared


def read_messages(messages: object, state: State) -> Read:
    """Read one message or several in the format they tell, else in the session's, else in that of the model's provider."""
    if isinstance(messages, str | bytes) or not isinstance(messages, Sequence):
        messages = (messages,)
    raws = raw_messages(messages)
    told = told_format(raws)
    format = told or format_of(state)
    return Read(messages=tuple(decode_messages(raws, format)), format=format, told=told)


def format_of(state: State) -> Format:
    """Return the format a session speaks: what its messages told, or that of the model's provider."""
    native: Format = "anthropic" if state.model.provider == "anthropic" else "openai_chat"
    return state.format or native


def refuse_unsendable(before: State, after: State) -> None:
    """Raise MalformedMessage if a message that came in between could not be sent, or shown, in the format the session speaks.

    What is in the ledger is there for good, so this is asked before anything is kept.
    """
    came = len(before.ledger.messages)
    for index, numbered in enumerate(after.ledger.messages[came:]):
        message = numbered.message
        ids = [call.id for call in message.calls]
        if len(set(ids)) < len(ids):
            raise MalformedMessage(index, "it uses the id of a call twice: give each call its own")
        try:
            written_messages([message], after)
        except (BadInput, ValueError, RecursionError) as error:
            raise MalformedMessage(index, f"it cannot be sent to a provider ({error})") from None


def written_messages(messages: Sequence[Message], state: State) -> list[Any]:
    """Return messages as Python objects in the session's format."""
    format = format_of(state)
    raws = encode_messages(reread(messages, assumed=state.assumed, format=format), format)
    return [read_plain(raw) for raw in raws]
