"""Checkpoints and rewind: readings of the ledger, and one more entry."""

import re
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from lowwater.engine.intake import with_newest_user
from lowwater.engine.note import with_note, without_note
from lowwater.engine.setup import Setup
from lowwater.engine.state import State
from lowwater.engine.thinking import unbind
from lowwater.errors import BadInput
from lowwater.values.entries import Checkpointed, PreambleChanged, Rewound
from lowwater.values.ledger import Ledger, Saved
from lowwater.values.view import Original

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
