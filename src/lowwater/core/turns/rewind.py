"""Going back to a checkpoint, forking a session, switching its model, and resetting it."""

import re
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.cache.belief import Belief
from lowwater.core.costs.prices import Meter
from lowwater.core.decisions import Past
from lowwater.core.entries import Checkpointed, ModelChanged, PreambleChanged, Rewound
from lowwater.core.ledger import Ledger, Saved
from lowwater.core.models.model import Model
from lowwater.core.policies.safety_rules import after_switch
from lowwater.core.turns.arrival import with_newest_user, with_note, without_note
from lowwater.core.turns.cache import removed_from
from lowwater.core.turns.pins import pins_upto, with_instructions
from lowwater.core.turns.state import Route, Setup, State, SummarizerBackoff, Totals
from lowwater.core.turns.thinking import unbind
from lowwater.core.view import Original
from lowwater.errors import BadInput

_OWN_NAME = re.compile(r"before-(?:compaction|rewind)-\d+$")
_HELD_CALLS = 10
"""Calls after a rewind during which nothing is bought, unless a size forces a compaction."""


class Checkpoint(Struct, frozen=True, kw_only=True):
    """A named position of the ledger, and the size of the view there."""

    name: str
    position: int
    at: float
    tokens: int
    messages: int


def checkpoints(ledger: Ledger) -> list[Checkpoint]:
    """Return all checkpoints, oldest first: one before each compaction and rewind, and those that the user named."""
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


def mark(state: State, name: str, at: float) -> State:
    """Give the current position a name."""
    if not name.strip():
        raise BadInput("a checkpoint needs a name")
    if _OWN_NAME.match(name):
        raise BadInput(f"{name!r} is a name that Lowwater gives its own checkpoints: choose another")
    if any(known == name for known, _ in _named(state.ledger)):
        raise BadInput(f"there is a checkpoint {name!r} already: choose another name")
    return replace(state, ledger=state.ledger.append(Checkpointed(at=at, name=name)))


def position_of(ledger: Ledger, name: str) -> int:
    """Return the position of a checkpoint, or raise BadInput with the names of the newest."""
    known = list(_named(ledger))
    found = next((saved.position for each, saved in known if each == name), None)
    if found is None:
        names = ", ".join(each for each, _ in known[-5:]) or "none yet"
        raise BadInput(f"there is no checkpoint {name!r}; the newest are: {names}")
    return found


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


def rewind(state: State, to: str | int, setup: Setup, *, discard_later: bool, at: float) -> State:
    """Go back to a checkpoint, by its name, or to a position of the ledger."""
    position = to if isinstance(to, int) else position_of(state.ledger, to)
    if not 0 <= position <= len(state.ledger.entries):
        raise BadInput(
            f"there is no position {position}: the ledger has {len(state.ledger.entries):,} entries"
        )
    then = state.ledger.view_at(position)
    state = with_instructions(state)
    # What is shown again was not in the prompt meanwhile, so its rent starts anew; and the user wants it, so it is not removed at once.
    state = replace(
        state,
        ledger=state.ledger.append(Rewound(at=at, to=position, discard_later=discard_later)),
        meter=state.meter.restarted(),
        recheck_backoff=None,
        paused_until=state.totals.turns + _HELD_CALLS,
    )
    state = with_newest_user(_with_note_if_compacted(state, setup, at), setup, at)
    view = state.ledger.view
    preamble_changed = (then.system, then.tools) != (view.system, view.tools)
    return unbind(state, after=0 if preamble_changed else max(then.shown_numbers(), default=0))


def _with_note_if_compacted(state: State, setup: Setup, at: float) -> State:
    """Return the state with the note about compacted turns if its view has any and its policy writes one; otherwise without."""
    view = state.ledger.view
    compacted = not all(isinstance(item, Original) for item in view.items)
    if compacted == state.has_system_note or (compacted and not setup.preset.note_in_system):
        return state
    system = with_note(view.system) if compacted else without_note(view.system)
    if system != view.system:
        tokens = setup.size_preamble(system, view.tools)
        entry = PreambleChanged(at=at, system=system, tools=view.tools, tokens=tokens)
        state = replace(state, ledger=state.ledger.append(entry))
    return replace(state, has_system_note=compacted)


def reset(state: State, setup: Setup, at: float) -> State:
    """Return the state as if it had never been compacted: no summaries, totals or warnings; the messages stay."""
    first = next((saved.position for saved in state.ledger.saved if saved.kind == "compacted"), None)
    if first is not None:
        state = rewind(state, first, setup, discard_later=False, at=at)
    return replace(
        state,
        past=Past(),
        summarizer_backoff=SummarizerBackoff(),
        totals=Totals(),
        uncharged_summary_cost=0,
        unreported_summary_prompts=0,
        unreported_rejections=(),
        warned=frozenset(),
        growth=0.0,
        growth_turns=0,
        decision=None,
        last_compaction=None,
        prefetched_summary=None,
        belief=Belief(),
        belief_error=None,
        meter=Meter(),
        recheck_backoff=None,
        paused_until=0,
        candidates=None,
        call=None,
        called_at=None,
        gaps=(),
    )


def forked(fresh: State, parent: State, *, upto: int, at: float) -> State:
    """Return the state of a session that begins with the first `upto` entries of another's ledger.

    What was learned about the model and its cache is taken over; what the parent did, bought and paid is not.
    """
    ledger = Ledger().extend(parent.ledger.entries[:upto])
    system, count = ledger.view.system, len(ledger.messages)
    same_model = parent.model.name == fresh.model.name
    if ledger.view.model != fresh.model.name:
        ledger = ledger.append(ModelChanged(at=at, model=fresh.model.name))
    return replace(
        fresh,
        ledger=ledger,
        format=parent.format,
        assumed_format=parent.assumed_format,
        calibration=parent.calibration if same_model else fresh.calibration,
        growth=parent.growth if same_model else 0.0,
        growth_turns=parent.growth_turns if same_model else 0,
        belief=parent.belief,
        called_at=parent.called_at,
        gaps=parent.gaps,
        pins=pins_upto(parent.pins, count),
        instructions_read=min(parent.instructions_read, count),
        has_system_note=parent.has_system_note and with_note(system) == system,
        binds_thinking=parent.binds_thinking or fresh.binds_thinking,
        thinking_unbound_above=parent.thinking_unbound_above
        if parent.thinking_unbound_above is not None and parent.thinking_unbound_above <= count
        else None,
    )


def switch(state: State, route: Route, model: Model, *, prior: float, at: float) -> State:
    """Return the state on another model; everything learned about the one before is forgotten (docs/specification.md: G)."""
    if model.name == state.model.name:
        return replace(state, route=route, model=model)
    state = replace(
        state,
        route=route,
        ledger=state.ledger.append(ModelChanged(at=at, model=model.name)),
        model=model,
        calibration=type(state.calibration)(prior=prior),
        reported_prompt=0,
        growth=0.0,
        growth_turns=0,
        past=after_switch(state.past),
        binds_thinking=state.binds_thinking or model.binds_thinking,
    )
    # The other model's cache is cold anyway, so compactions since the last call do not make its next call more expensive.
    return replace(state, compaction_surcharge=0, removed_tokens=removed_from(state))
