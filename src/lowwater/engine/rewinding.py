"""Checkpoints and rewind: readings of the ledger, and one more entry."""

from msgspec import Struct
from msgspec.structs import replace

from lowwater.engine.note import without_note
from lowwater.engine.setup import Setup
from lowwater.engine.state import State
from lowwater.engine.thinking import unbind
from lowwater.errors import BadInput
from lowwater.values.entries import Checkpointed, Compacted, PreambleChanged, Rewound
from lowwater.values.ledger import Ledger
from lowwater.values.view import Original

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
    found: list[Checkpoint] = []
    compactions = rewinds = 0
    for saved in ledger.saved:
        entry = ledger.entries[saved.position]
        match entry:
            case Compacted():
                compactions += 1
                name = f"before-compaction-{compactions}"
            case Rewound():
                rewinds += 1
                name = f"before-rewind-{rewinds}"
            case _:
                name = saved.name
        checkpoint = Checkpoint(
            name=name,
            position=saved.position,
            at=entry.at,
            tokens=saved.view.tokens,
            messages=len(saved.view.items),
        )
        found.append(checkpoint)
    return found


def mark(state: State, name: str, at: float) -> State:
    """Name the present position."""
    if not name.strip():
        raise BadInput("a checkpoint needs a name")
    if any(checkpoint.name == name for checkpoint in checkpoints(state.ledger)):
        raise BadInput(f"there is a checkpoint {name!r} already: choose another name")
    return replace(state, ledger=state.ledger.append(Checkpointed(at=at, name=name)))


def rewind(state: State, to: str | int, setup: Setup, *, discard_later: bool, at: float) -> State:
    """Go back to a checkpoint, by name or by position."""
    position = to if isinstance(to, int) else _position(state.ledger, to)
    ledger = state.ledger.append(Rewound(at=at, to=position, discard_later=discard_later))
    then = state.ledger.view_at(position)
    kept = max(then.shown_numbers(), default=0)
    moved = (then.system, then.tools) != (ledger.view.system, ledger.view.tools)
    # What is shown again was not carried meanwhile, and was asked for: it pays from now on, and is not bought at once.
    state = replace(
        state, ledger=ledger, meter=state.meter.restarted(), rest=None, held_until=state.totals.turns + _HELD
    )
    state = unbind(state, after=0 if moved else kept)
    if state.noted and all(isinstance(item, Original) for item in ledger.view.items):
        state = _without_note(state, setup, at)
    return state


def _position(ledger: Ledger, name: str) -> int:
    known = checkpoints(ledger)
    found = next((checkpoint.position for checkpoint in known if checkpoint.name == name), None)
    if found is None:
        names = ", ".join(checkpoint.name for checkpoint in known[-5:]) or "none yet"
        raise BadInput(f"there is no checkpoint {name!r}; the newest are: {names}")
    return found


def _without_note(state: State, setup: Setup, at: float) -> State:
    """Return the session without the note that earlier turns were compacted: they no longer are."""
    view = state.ledger.view
    system = without_note(view.system)
    if system != view.system:
        tokens = setup.size_preamble(system, view.tools)
        entry = PreambleChanged(at=at, system=system, tools=view.tools, tokens=tokens)
        state = unbind(replace(state, ledger=state.ledger.append(entry)), after=0)
    return replace(state, noted=False)
