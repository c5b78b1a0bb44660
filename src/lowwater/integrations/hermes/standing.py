"""Which whole history a list of Hermes' stands for, now that compacted messages stand in it."""

from collections.abc import Sequence

from msgspec import Struct

from lowwater.core.ledger import Ledger
from lowwater.core.reconcile import branch_of
from lowwater.core.view import Item, Summary
from lowwater.integrations.hermes.messages import Json, are_joined, joined_to, keys_of

_REMEMBERED = 3


class Standing(Struct, frozen=True, kw_only=True):
    """A list, by its keys, and the history that it stands for."""

    keys: tuple[bytes, ...] = ()
    ends: tuple[int | None, ...] = ()
    """How many messages of the history the list stands for up to and with each of its own; None if not the first ones."""
    whole: tuple[Json, ...] = ()

    def in_common(self, keys: Sequence[bytes]) -> int:
        """Return how many messages a list has in common with this one, up to where its history can be told."""
        same = 0
        for ours, theirs in zip(self.keys, keys, strict=False):
            if ours != theirs:
                break
            same += 1
        while same and self.ends[same - 1] is None:
            same -= 1
        return same

    def going_on(self, listed: Sequence[Json], keys: Sequence[bytes]) -> "Standing":
        """Return what a list stands for that goes on from this one, or goes another way from somewhere in it."""
        same = self.in_common(keys)
        start = (self.ends[same - 1] or 0) if same else 0
        new = listed[same:]
        return Standing(
            keys=tuple(keys),
            ends=(*self.ends[:same], *range(start + 1, start + 1 + len(new))),
            whole=(*self.whole[:start], *new),
        )


class Standings:
    """What the lists stand for that Hermes had last: the newest first, and those before if it goes back to one."""

    def __init__(self) -> None:
        self._known: list[Standing] = [Standing()]

    @property
    def are_new(self) -> bool:
        """Whether no list was seen yet."""
        return len(self._known) == 1 and not self._known[0].keys

    def whole_of(self, listed: Sequence[Json]) -> tuple[Json, ...]:
        """Return the whole history that a list stands for."""
        keys = keys_of(listed)
        nearest = max(self._known, key=lambda each: each.in_common(keys))
        found = nearest.going_on(listed, keys)
        self._known = [each for each in self._known if each is not nearest]
        self._remember(found)
        return found.whole

    def resume(self, ledger: Ledger, view: Sequence[Json], history: Sequence[Json]) -> None:
        """Begin with what a session holds: a list that shows its view stands for its messages."""
        whole = tuple(history[number - 1] for number in branch_of(ledger))
        self._show(ledger, view, whole)

    def publish(self, ledger: Ledger, view: Sequence[Json]) -> list[Json] | None:
        """Return the list that Hermes is to go on with, which stands for what the newest one does; None if that cannot be told."""
        return self._show(ledger, view, self._known[0].whole)

    def _show(self, ledger: Ledger, view: Sequence[Json], whole: tuple[Json, ...]) -> list[Json] | None:
        branch, items = branch_of(ledger), list(ledger.view.items)
        if len(branch) != len(whole) or len(items) != len(view):
            return None
        place = {number: at for at, number in enumerate(branch, start=1)}
        shown: list[Json] = []
        ends: list[int | None] = []
        covered: set[int] = set()
        for item, message in zip(items, view, strict=True):
            covered.update(place[number] for number in _numbers(item))
            end = len(covered) if max(covered, default=0) == len(covered) else None
            if shown and are_joined(shown[-1], message):
                shown[-1], ends[-1] = joined_to(shown[-1], message), end
            else:
                shown.append(message)
                ends.append(end)
        self._remember(Standing(keys=tuple(keys_of(shown)), ends=tuple(ends), whole=whole))
        return shown

    def _remember(self, standing: Standing) -> None:
        self._known = [standing, *self._known][:_REMEMBERED]


def _numbers(item: Item) -> list[int]:
    if isinstance(item, Summary):
        return [number for span in item.sources for number in range(span.first, span.last + 1)]
    return [item.number]
