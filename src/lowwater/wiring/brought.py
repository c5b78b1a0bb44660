"""What a caller hands to a session, as Python objects: read in the format it tells."""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from lowwater.core.formats.codec import decode_messages, encode_messages, raw_messages, reread
from lowwater.core.formats.detect import told_format
from lowwater.core.ledger import Ledger
from lowwater.core.messages import Format, Message
from lowwater.core.recall.recalled import offers_recall
from lowwater.core.reconcile import says_the_same
from lowwater.core.strict_json import read_plain
from lowwater.core.turns.arrival import Incoming
from lowwater.core.turns.effects import Steps
from lowwater.core.turns.state import Setup, State
from lowwater.core.turns.turn import Prepared, prepare
from lowwater.errors import BadInput, MalformedMessage
from lowwater.wiring.arguments import require_count, require_json, require_objects


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
    starts_over: bool = False
    """Whether messages that have nothing in common with the session may take the place of its history."""

    def incoming(self, state: State) -> Incoming:
        """Return them as values, or raise BadInput for a mistake."""
        read = None if self.messages is None else read_messages(self.messages, state)
        if read is not None and not self.starts_over:
            _refuse_fragment(read.messages, state.ledger)
        tools = None if self.tools is None else require_objects(self.tools, "tools", each="one for each tool")
        if self.max_tokens is not None:
            require_count(self.max_tokens, "max_tokens")
        return Incoming(
            messages=None if read is None else read.messages,
            format=None if read is None else read.told,
            assumed=None if read is None else read.format,
            system=None if self.system is None else _system(self.system),
            tools=tools,
            max_tokens=self.max_tokens,
            offers_recall=self.offers_recall
            or offers_recall(state.ledger.view.tools if tools is None else tools),
            parameters=self.thinking_json + b"\0" + self.tool_choice_json,
        )

    @property
    def thinking_json(self) -> bytes:
        """`thinking` as JSON, empty if it was not given."""
        return b"" if self.thinking is None else require_json(self.thinking, "thinking", "mapping")

    @property
    def tool_choice_json(self) -> bytes:
        """`tool_choice` as JSON, empty if it was not given."""
        choice = self.tool_choice
        return b"" if choice is None else require_json(choice, "tool_choice", "text", "mapping")

    def turn(self, state: State, setup: Setup, at: float) -> Steps[Prepared]:
        """Return the turn that prepares them for sending; what could not be sent is refused before it is kept."""
        prepared = yield from prepare(state, self.incoming(state), setup, at)
        refuse_unsendable(state, prepared.state)
        return prepared


def _system(system: object) -> bytes:
    """Return a system prompt as JSON: text, or a list of text blocks."""
    written = require_json(system, "system", "text", "list")
    if written.startswith(b'"'):
        return written
    return require_objects(system, "system", each='one for each block, such as {"type": "text", "text": "…"}')


def _refuse_fragment(messages: Sequence[Message], ledger: Ledger) -> None:
    """Raise BadInput for a list of new messages alone: as the client's whole list it would drop the history.

    Such a list holds no answer of the model, and begins neither as the view nor as the history does.
    """
    held, given = _spoken(ledger.view.messages), _spoken(messages)
    if not given or not any(message.role == "assistant" for message in held):
        return
    if any(message.role == "assistant" for message in given) or says_the_same(held[0], given[0]):
        return
    first = min(ledger.view.shown_numbers())
    if any(says_the_same(each.message, given[0]) for each in ledger.messages[first - 1 : first + 1]):
        return
    raise BadInput(
        f"prepare takes the whole conversation, and the {len(given)} given here continue none of the "
        f"{len(held)} messages in view: give the whole list; or append() what is new and call "
        "prepare() without messages; or say starts_over=True to begin anew"
    )


def _spoken(messages: Iterable[Message]) -> list[Message]:
    return [message for message in messages if message.role not in {"system", "developer"}]


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
