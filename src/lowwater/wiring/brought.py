"""What a caller hands to a session, as Python objects: read in the format it tells."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from lowwater.engine.effects import Steps
from lowwater.engine.intake import Incoming
from lowwater.engine.recall import offers_recall
from lowwater.engine.setup import Setup
from lowwater.engine.state import State
from lowwater.engine.turn import Prepared, prepare
from lowwater.values.message import Format, Message
from lowwater.wire.detect import told_format
from lowwater.wire.formats import decode_messages, encode_messages, raw_messages, reread
from lowwater.wire.reading import write_json


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
        """Return the turn that prepares them for sending."""
        return prepare(state, self.incoming(state), setup, at)


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


def written_messages(messages: Sequence[Message], state: State) -> list[Any]:
    """Return messages as Python objects in the session's format."""
    format = format_of(state)
    raws = encode_messages(reread(messages, assumed=state.assumed, format=format), format)
    return [msgspec.json.decode(raw) for raw in raws]
