"""Bringing the ledger up to what a client sent: its messages, its system prompt, its tools."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from lowwater.compact.spans import repeat_newest_user
from lowwater.engine.note import with_note
from lowwater.engine.setup import Setup
from lowwater.engine.state import State
from lowwater.engine.thinking import unbind
from lowwater.ingest.reconcile import Reconciled, entries_for, reconcile
from lowwater.values.entries import Compacted, Entry, PreambleChanged, Rewound, TakenBack
from lowwater.values.message import Format, Message
from lowwater.values.view import stands_of

REPEAT = "repeat"
"""The mechanism that shows the newest user message again, where what came after it is gone."""


class Incoming(Struct, frozen=True, kw_only=True):
    """What a client brings to a turn; None where it says nothing new."""

    messages: tuple[Message, ...] | None = None
    """The whole list the client keeps."""
    format: Format | None = None
    """The format that one of them told."""
    assumed: Format | None = None
    """The format they were read in if none did."""
    system: bytes | None = None
    tools: bytes | None = None
    max_tokens: int | None = None
    offers_recall: bool = False
    parameters: bytes = b""
    """What else the provider's cache depends on: thinking, tool choice."""


def take_in(state: State, incoming: Incoming, setup: Setup, at: float) -> State:
    """Return the session with everything the client brings."""
    state = _with_preamble(state, incoming, setup, at)
    if incoming.messages is not None:
        new = _entries(reconcile(state.ledger, incoming.messages), setup, at)
        state = replace(state, ledger=state.ledger.extend(new))
        if any(isinstance(entry, TakenBack | Rewound) for entry in new):
            state = with_newest_user(state, setup, at)
    return replace(
        told(state, incoming.format, incoming.assumed),
        max_tokens=incoming.max_tokens,
        offers_recall=incoming.offers_recall,
        parameters=incoming.parameters,
    )


def with_newest_user(state: State, setup: Setup, at: float) -> State:
    """Return the session with the newest user message word for word in its view, where going back left only a summary of it."""
    making = setup.making(offers_recall=state.offers_recall)
    repeated = repeat_newest_user(state.ledger.view.items, state.ledger.messages, making)
    if repeated is None:
        return state
    entry = Compacted(at=at, mechanisms=(REPEAT,), stands=stands_of(repeated.items))
    changed = replace(state, ledger=state.ledger.append(entry))
    # What stands behind it was thought before it stood there.
    return unbind(changed, after=repeated.number)


def append(state: State, messages: Sequence[Message], setup: Setup, at: float) -> State:
    """Return the session with messages at its end."""
    new = _entries(Reconciled(new=tuple(messages)), setup, at)
    return replace(state, ledger=state.ledger.extend(new))


def told(state: State, format: Format | None, assumed: Format | None = None) -> State:
    """Return the session with the format a message told; until one does, what they were read in is remembered."""
    if format is None and state.format is None:
        return replace(state, assumed=assumed or state.assumed)
    return replace(state, format=format or state.format)


def _with_preamble(state: State, incoming: Incoming, setup: Setup, at: float) -> State:
    view = state.ledger.view
    system = view.system
    if incoming.system is not None:
        system = with_note(incoming.system) if state.noted else incoming.system
    tools = view.tools if incoming.tools is None else incoming.tools
    if (system, tools) == (view.system, view.tools):
        return state
    entry = PreambleChanged(at=at, system=system, tools=tools, tokens=setup.size_preamble(system, tools))
    changed = replace(state, ledger=state.ledger.append(entry))
    # What comes with the first system prompt was thought behind it.
    return unbind(changed, after=0) if len(view.items) else changed


def _entries(reconciled: Reconciled, setup: Setup, at: float) -> list[Entry]:
    return entries_for(reconciled, [setup.size(message) for message in reconciled.new], at)
