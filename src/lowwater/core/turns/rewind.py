"""Going back in a session, and starting over from its messages or on another model."""

import re
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.cache.belief import Belief
from lowwater.core.costs.rent import Meter
from lowwater.core.decisions import Past
from lowwater.core.entries import Checkpointed, ModelChanged, PreambleChanged, Rewound
from lowwater.core.ledger import Ledger, Saved
from lowwater.core.models.model import Model
from lowwater.core.policies.history import after_switch
from lowwater.core.turns.arrival import with_newest_user
from lowwater.core.turns.cache import removed_from
from lowwater.core.turns.commit import with_note, without_note
from lowwater.core.turns.state import Route, Setup, State, Totals
from lowwater.core.turns.summaries import SummarizerBackoff
from lowwater.core.turns.thinking import unbind
from lowwater.core.view import Original
from lowwater.errors import BadInput

_OWN = re.compile(r"before-(?:compaction|rewind)-\d+$")
_HELD = 10
"""Calls for which what was undone by hand stays undone, unless a size forces a change."""


class Checkpoint(Struct, frozen=True, kw_only=True):
    """A position of the ledger with a name, and what the view was there."""

    name: str
    position: int
    at: float
    tokens: int
    messages: int


def checkpoints(ledger: Ledger) -> list[Checkpoint]:
    """Return all checkpoints, oldest first: one before each compaction and rewind, and those that were named."""
    return [
        Checkpoint(
            name=name,
            position=saved.position,
            at=saved.at,
            tokens=view.tokens,
            messages=len(view.items),
        )
        for name, saved in _named(ledger)
        for view in (ledger.view_before(saved),)
    ]


def _named(ledger: Ledger) -> Iterator[tuple[str, Saved]]:
    compactions = rewinds = 0
    for saved in ledger.saved:
        match saved.kind:
            case "compacted":
                compactions += 1
                yield f"before-compaction-{compactions}", saved
            case "rewound":
                rewinds += 1
                yield f"before-rewind-{rewinds}", saved
            case "checkpointed":
                yield saved.name, saved


def mark(state: State, name: str, at: float) -> State:
    """Name the present position."""
    if not name.strip():
        raise BadInput("a checkpoint needs a name")
    if _OWN.match(name):
        raise BadInput(f"{name!r} is a name that Lowwater gives its own checkpoints: choose another")
    if any(known == name for known, _ in _named(state.ledger)):
        raise BadInput(f"there is a checkpoint {name!r} already: choose another name")
    return replace(state, ledger=state.ledger.append(Checkpointed(at=at, name=name)))


def rewind(state: State, to: str | int, setup: Setup, *, discard_later: bool, at: float) -> State:
    """Go back to a checkpoint by its name, or to a position of the ledger."""
    position = to if isinstance(to, int) else position_of(state.ledger, to)
    if not 0 <= position <= len(state.ledger.entries):
        raise BadInput(
            f"there is no position {position}: the ledger has {len(state.ledger.entries):,} entries"
        )
    then = state.ledger.view_at(position)
    # What is shown again was not carried meanwhile, and was asked for: it pays from now on, and is not bought at once.
    state = replace(
        state,
        ledger=state.ledger.append(Rewound(at=at, to=position, discard_later=discard_later)),
        meter=state.meter.restarted(),
        rest=None,
        held_until=state.totals.turns + _HELD,
    )
    state = with_newest_user(_with_note_as_due(state, setup, at), setup, at)
    view = state.ledger.view
    moved = (then.system, then.tools) != (view.system, view.tools)
    return unbind(state, after=0 if moved else max(then.shown_numbers(), default=0))


def position_of(ledger: Ledger, name: str) -> int:
    """Return the position of a checkpoint, or raise BadInput with the names there are."""
    known = list(_named(ledger))
    found = next((saved.position for each, saved in known if each == name), None)
    if found is None:
        names = ", ".join(each for each, _ in known[-5:]) or "none yet"
        raise BadInput(f"there is no checkpoint {name!r}; the newest are: {names}")
    return found


def _with_note_as_due(state: State, setup: Setup, at: float) -> State:
    """Return the session with the note that earlier turns were compacted if its policy writes one and they are; else without."""
    view = state.ledger.view
    compacted = not all(isinstance(item, Original) for item in view.items)
    if compacted == state.noted or (compacted and not setup.preset.note_in_system):
        return state
    system = with_note(view.system) if compacted else without_note(view.system)
    if system != view.system:
        tokens = setup.size_preamble(system, view.tools)
        entry = PreambleChanged(at=at, system=system, tools=view.tools, tokens=tokens)
        state = replace(state, ledger=state.ledger.append(entry))
    return replace(state, noted=compacted)


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
        standing=SummarizerBackoff(),
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
