"""Checkpoints and rewind: readings of the ledger, and one more entry."""

from msgspec import Struct
from msgspec.structs import replace

from lowwater.engine.state import State
from lowwater.errors import BadInput
from lowwater.values.entries import Checkpointed, Compacted, Rewound
from lowwater.values.ledger import Ledger


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


def rewind(state: State, to: str | int, *, discard_later: bool, at: float) -> State:
    """Go back to a checkpoint, by name or by position."""
    known = checkpoints(state.ledger)
    position = to if isinstance(to, int) else next((c.position for c in known if c.name == to), None)
    if position is None:
        names = ", ".join(checkpoint.name for checkpoint in known[-5:]) or "none yet"
        raise BadInput(f"there is no checkpoint {to!r}; the newest are: {names}")
    return replace(
        state, ledger=state.ledger.append(Rewound(at=at, to=position, discard_later=discard_later))
    )
