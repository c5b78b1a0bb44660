"""Where a view was joined: what the last request had too, and what the last compaction wrote."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise

from msgspec import Struct

from lowwater.values.entries import Altered, Compacted, Edit, PreambleChanged
from lowwater.values.ledger import Ledger, Saved
from lowwater.values.message import Message
from lowwater.values.parts import AnyPart, Opaque
from lowwater.values.view import Edited, Item, Summary, items_shown

_ASIDE = frozenset({"shorten", "reasoning", "repeat"})
"""Mechanisms that edit without compacting what stands before: at the door, thinking that a model forbids, a message repeated."""
_RECENT = 200
"""Entries that are looked through for a change of the system prompt."""


class Seams(Struct, frozen=True, kw_only=True):
    """The places in a list of messages by which cache marks are put; indexes into that list."""

    shared: int = 0
    """How many messages at the start are those of the last request; 0 if there was none, or nothing is known."""
    edge: int | None = None
    """The last message that the last compaction wrote: a summary, or one with placeholders."""
    earlier: int | None = None
    """The edge of the last request, where a compaction since then left it standing."""
    system_moves: bool = False
    """The system prompt was seen to change while the tools stayed, so that a mark on it serves little."""

    def moved(self, place: Callable[[int], int]) -> "Seams":
        """Return the same seams where each message stands at `place` of where it stood; below 0 it is gone."""
        edge = None if self.edge is None else place(self.edge)
        earlier = None if self.earlier is None else place(self.earlier)
        return Seams(
            shared=max(0, place(self.shared - 1) + 1) if self.shared else 0,
            edge=None if edge is None or edge < 0 else edge,
            earlier=None if earlier is None or earlier < 0 else earlier,
            system_moves=self.system_moves,
        )


NOWHERE = Seams()


def seams_of(ledger: Ledger, messages: Sequence[Message]) -> Seams:
    """Return the seams of a ledger's view in `messages`, which is that view as it is sent.

    The last request ended before the newest answer, so nothing has to be remembered from it.
    """
    items = ledger.view.items
    answer = _newest_answer(items)
    before = _before_answer(ledger, items, answer)
    shared, earlier = answer, None
    if before is not None:
        then = ledger.view_before(before).items
        shared = _in_common(items, then, most=answer)
        old = _edge(ledger, then, before.position)
        earlier = old if old is not None and old < shared else None
    edge = _edge(ledger, items, len(ledger.entries))
    last = _place(messages, items, shared - 1 if shared else None)
    return Seams(
        shared=0 if last is None else last + 1,
        edge=_place(messages, items, edge),
        earlier=_place(messages, items, earlier),
        system_moves=_system_moves(ledger),
    )


def _place(messages: Sequence[Message], items: Sequence[Item], at: int | None) -> int | None:
    """Return where the message of an item stands in what is sent, mostly at its own place; None if it is not there."""
    if at is None:
        return None
    item = items[at]
    if at < len(messages) and messages[at] is item.message and len(messages) == len(items):
        return at
    return next((place for place, shown in enumerate(items_shown(messages, items)) if shown is item), None)


def _newest_answer(items: Sequence[Item]) -> int:
    for at in range(len(items) - 1, -1, -1):
        if items[at].message.role == "assistant" and not isinstance(items[at], Summary):
            return at
    return 0


def _before_answer(ledger: Ledger, items: Sequence[Item], answer: int) -> Saved | None:
    """Return the view as it was before the first compaction since the newest answer; None if there was none."""
    item = items[answer] if answer else None
    if item is None or isinstance(item, Summary):
        return None
    number = item.number
    found = None
    for saved in reversed(ledger.saved):
        if saved.messages < number:
            break
        found = saved
    return found


def _in_common(items: Sequence[Item], before: Sequence[Item], *, most: int) -> int:
    """Return how many items at the start show the same, of at most `most`."""
    most = min(most, len(before))
    return next((at for at in range(most) if not _same(items[at], before[at])), most)


def _same(one: Item, other: Item) -> bool:
    return one is other or one.message is other.message or one.message == other.message


def _edge(ledger: Ledger, items: Sequence[Item], until: int) -> int | None:
    """Return the index of the last of these items that the newest compaction before entry `until` wrote."""
    compactions = (
        entry
        for saved in reversed(ledger.saved)
        if saved.kind == "compacted"
        and saved.position < until
        and isinstance(entry := ledger.entries[saved.position], Compacted)
    )
    newest = next((entry for entry in compactions if not _ASIDE.issuperset(entry.mechanisms)), None)
    if newest is None:
        return None
    before = next(compactions, None)
    known = (
        {stand.number: stand.edits for stand in before.stands if isinstance(stand, Altered)} if before else {}
    )
    return max((at for at, item in enumerate(items) if _is_written(item, known)), default=None)


def _is_written(item: Item, known: dict[int, tuple[Edit, ...]]) -> bool:
    """Return whether an item stands for others or got placeholders beyond the edits it had; dropped thinking is none."""
    if isinstance(item, Summary) or any(map(_is_compaction, item.message.parts)):
        return True
    if not isinstance(item, Edited):
        return False
    before = known.get(item.number, ())
    return any(edit.by is not None and edit not in before for edit in item.edits)


def _is_compaction(part: AnyPart) -> bool:
    """Return whether a part is the provider's own compaction block."""
    return isinstance(part, Opaque) and part.block == "compaction"


def _system_moves(ledger: Ledger) -> bool:
    first = bisect_left(ledger.preambles, len(ledger.entries) - _RECENT)
    entries = [ledger.entries[position] for position in ledger.preambles[first:]]
    changes = [entry for entry in entries if isinstance(entry, PreambleChanged)]
    return any(new.system != old.system and new.tools == old.tools for old, new in pairwise(changes))
