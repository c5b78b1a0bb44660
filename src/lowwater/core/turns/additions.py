"""What hooks add to the view after a compaction: texts of the operator's own, shown to the model as the user's."""

from collections.abc import Sequence

from msgspec.structs import replace

from lowwater.core.entries import Compacted
from lowwater.core.messages import Message, Text
from lowwater.core.turns.state import Setup, State
from lowwater.core.view import Summary, view_items

ADDED = "hooks"
"""The mechanism under which they are kept; stored."""


def with_additions(state: State, texts: Sequence[str], setup: Setup, at: float) -> State:
    """Return the state with these texts in its view: at the end, or behind the last summary if an answer ends it.

    They are part of the view and not of the history: the next summary covers them, and a rewind takes them back.
    """
    items = list(state.ledger.view.items)
    place = len(items)
    if items and items[-1].message.role == "assistant":
        place = next((at for at in range(len(items), 0, -1) if isinstance(items[at - 1], Summary)), 0)
    if not place:
        return state
    added = []
    for text in texts:
        message = Message(role="user", parts=(Text(text=text),))
        added.append(Summary(message=message, tokens=setup.size(message), sources=(), depth=1))
    entry = Compacted(at=at, mechanisms=(ADDED,), items=view_items([*items[:place], *added, *items[place:]]))
    return replace(state, ledger=state.ledger.append(entry))
