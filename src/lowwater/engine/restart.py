"""Starting over: on another model, or from the messages alone."""

from msgspec.structs import replace

from lowwater.decide.outcome import after_switch
from lowwater.economics.belief import Belief
from lowwater.economics.rent import Meter
from lowwater.engine.caching import removed_from
from lowwater.engine.ladder import Standing
from lowwater.engine.note import with_note
from lowwater.engine.rewinding import rewind
from lowwater.engine.setup import Setup
from lowwater.engine.state import Route, State, Totals
from lowwater.values.entries import ModelChanged
from lowwater.values.ledger import Ledger
from lowwater.values.model import Model
from lowwater.values.situation import Past


def switch(state: State, route: Route, model: Model, *, prior: float, at: float) -> State:
    """Return the session on another model: everything learned of the one before is forgotten (docs/specification.md: G)."""
    if model.name == state.model.name:
        return replace(state, route=route, model=model)
    state = replace(
        state,
        route=route,
        ledger=state.ledger.append(ModelChanged(at=at, model=model.name)),
        model=model,
        calibration=type(state.calibration)(prior=prior),
        reported=0,
        growth=0.0,
        growths=0,
        past=after_switch(state.past),
        binds_thinking=state.binds_thinking or model.binds_thinking,
    )
    # The other model's cache is cold: what was compacted since the last call made the old one's dearer, and not this one's.
    return replace(state, bought=0, kept_out=removed_from(state))


def forked(fresh: State, parent: State, *, upto: int, at: float) -> State:
    """Return a session that leaves another behind the first `upto` entries of its ledger.

    What was learned of the model and its cache goes along; what the other said, bought and paid since then does not.
    """
    ledger = Ledger().extend(parent.ledger.entries[:upto])
    system, count = ledger.view.system, len(ledger.messages)
    is_same = parent.model.name == fresh.model.name
    if ledger.view.model != fresh.model.name:
        ledger = ledger.append(ModelChanged(at=at, model=fresh.model.name))
    return replace(
        fresh,
        ledger=ledger,
        format=parent.format,
        assumed=parent.assumed,
        calibration=parent.calibration if is_same else fresh.calibration,
        growth=parent.growth if is_same else 0.0,
        growths=parent.growths if is_same else 0,
        belief=parent.belief,
        called_at=parent.called_at,
        gaps=parent.gaps,
        noted=parent.noted and with_note(system) == system,
        binds_thinking=parent.binds_thinking or fresh.binds_thinking,
        unbound=parent.unbound if parent.unbound is not None and parent.unbound <= count else None,
    )


def reset(state: State, setup: Setup, at: float) -> State:
    """Return the session as if it had never been compacted: no summary, no counters, nothing warned of; the messages stay."""
    first = next((saved.position for saved in state.ledger.saved if saved.kind == "compacted"), None)
    if first is not None:
        state = rewind(state, first, setup, discard_later=False, at=at)
    return replace(
        state,
        past=Past(),
        standing=Standing(),
        totals=Totals(),
        ahead=0,
        ahead_prompts=0,
        warned=frozenset(),
        growth=0.0,
        growths=0,
        decision=None,
        last=None,
        parked=None,
        belief=Belief(),
        misjudged=None,
        meter=Meter(),
        rest=None,
        held_until=0,
        market=None,
        call=None,
        called_at=None,
        gaps=(),
    )
