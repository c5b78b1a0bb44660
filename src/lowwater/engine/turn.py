"""One turn, in order: ingest, count, propose, decide, compact, assemble; and after the answer, account."""

from collections.abc import Generator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lowwater.assemble.legal import mend, refuse_illegal
from lowwater.decide.overrides import decide
from lowwater.decide.settled import is_settled
from lowwater.engine.commit import commit, give_up
from lowwater.engine.compaction import Result, Work, carry_out
from lowwater.engine.door import shorten_new
from lowwater.engine.effects import Outcome, Summarize
from lowwater.engine.setup import Setup
from lowwater.engine.situate import Situated, situate, with_offers
from lowwater.engine.state import State
from lowwater.ingest.reconcile import Reconciled, entries_for, reconcile
from lowwater.values.decision import Compact
from lowwater.values.entries import Entry, PreambleChanged
from lowwater.values.message import Message

Turn = Generator[Summarize, Outcome, "Prepared"]


class Incoming(Struct, frozen=True, kw_only=True):
    """What a client brings to a turn; None where it says nothing new."""

    messages: tuple[Message, ...] | None = None
    """The whole list the client keeps."""
    system: bytes | None = None
    tools: bytes | None = None
    max_tokens: int | None = None
    offers_recall: bool = False


class Prepared(Struct, frozen=True, kw_only=True):
    """The session after the decision, and the messages to send."""

    state: State
    messages: tuple[Message, ...]


def prepare(state: State, incoming: Incoming, setup: Setup, at: float) -> Turn:
    """Take in what the client brings, compact if the policy says so, and return what to send."""
    state = take_in(state, incoming, setup, at)
    state = shorten_new(state, setup, at)
    situated = situate(state, setup, at)
    state = yield from act(state, situated, setup)
    messages = mend(state.ledger.view.messages)
    refuse_illegal(messages)
    return Prepared(state=replace(state, sent=state.counted), messages=tuple(messages))


def compress(
    state: State, setup: Setup, at: float, *, focus: str = ""
) -> Generator[Summarize, Outcome, State]:
    """Compact by hand, whatever the policy thinks; `focus` is kept in more detail."""
    situated = situate(state, setup, at, forced=True)
    return (yield from act(state, situated, setup, focus=focus))


def act(
    state: State, situated: Situated, setup: Setup, *, focus: str = ""
) -> Generator[Summarize, Outcome, State]:
    """Decide, carry the decision out, and commit what came of it."""
    decision = decide(situated.now, setup.settings, policy=setup.policy.name)
    if not is_settled(decision):
        situated = with_offers(situated)
        decision = decide(situated.now, setup.settings, policy=setup.policy.name)
    state = replace(state, decision=decision)
    if not isinstance(decision, Compact):
        return give_up(state, decision.because, situated.now)
    work = Work(
        asked=situated.asked,
        prompt=situated.now.prompt,
        rungs=setup.rungs,
        focus=focus,
        must=situated.now.forced or situated.now.prompt > situated.now.limits.wall,
    )
    result: Result = yield from carry_out(work, decision)
    return commit(state, result, work, situated.now, decision)


def take_in(state: State, incoming: Incoming, setup: Setup, at: float) -> State:
    """Bring the ledger up to what the client sent."""
    ledger = state.ledger
    view = ledger.view
    system = view.system if incoming.system is None else incoming.system
    tools = view.tools if incoming.tools is None else incoming.tools
    if (system, tools) != (view.system, view.tools):
        tokens = setup.size_preamble(system, tools)
        ledger = ledger.append(PreambleChanged(at=at, system=system, tools=tools, tokens=tokens))
    if incoming.messages is not None:
        ledger = ledger.extend(_new(reconcile(ledger, incoming.messages), setup, at))
    return replace(state, ledger=ledger, max_tokens=incoming.max_tokens, offers_recall=incoming.offers_recall)


def append(state: State, messages: Sequence[Message], setup: Setup, at: float) -> State:
    """Add messages to the session's end."""
    added = Reconciled(new=tuple(messages))
    return replace(state, ledger=state.ledger.extend(_new(added, setup, at)))


def _new(reconciled: Reconciled, setup: Setup, at: float) -> list[Entry]:
    return entries_for(reconciled, [setup.size(message) for message in reconciled.new], at)
