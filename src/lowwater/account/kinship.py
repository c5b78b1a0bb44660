"""Which items of two views belong together: those that stand for the same messages, in person or in a summary."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from lowwater.values.view import Item, Summary

_Key = int | bytes
"""A message by its number; a summary without sources by its content."""


class Kin(Struct, frozen=True, kw_only=True):
    """Items of two views which, together and with no others, stand for the same messages."""

    before: tuple[Item, ...]
    after: tuple[Item, ...]

    @property
    def is_same(self) -> bool:
        """Whether the model is shown the same in both views."""
        return len(self.before) == len(self.after) and all(
            was is now or (was.message == now.message and was.tokens == now.tokens)
            for was, now in zip(self.before, self.after, strict=True)
        )


def kin_of(before: Sequence[Item], after: Sequence[Item]) -> Iterator[Kin]:
    """Yield the items of two views as those that belong together, by the first message of each; each item is in one."""
    roots = _Roots()
    for item in (*before, *after):
        roots.join(_keys(item))
    found: dict[_Key, tuple[list[Item], list[Item]]] = {}
    for at, view in enumerate((before, after)):
        for item in view:
            found.setdefault(roots.of(_keys(item)[0]), ([], []))[at].append(item)
    for was, now in sorted(found.values(), key=_first):
        yield Kin(before=tuple(was), after=tuple(now))


def numbers_of(item: Item) -> list[int]:
    """Return the numbers of the messages an item stands for."""
    if not isinstance(item, Summary):
        return [item.number]
    return [number for span in item.sources for number in range(span.first, span.last + 1)]


def _keys(item: Item) -> Sequence[_Key]:
    return numbers_of(item) or [item.message.digest]


def _first(sides: tuple[list[Item], list[Item]]) -> int:
    return min((number for side in sides for item in side for number in numbers_of(item)), default=0)


class _Roots:
    """Groups that grow together: each key leads to the one that stands for its group."""

    def __init__(self) -> None:
        self._above: dict[_Key, _Key] = {}

    def of(self, key: _Key) -> _Key:
        above = self._above
        while (up := above.setdefault(key, key)) != key:
            above[key] = above[up]
            key = up
        return key

    def join(self, keys: Iterable[_Key]) -> None:
        first, *rest = keys
        root = self.of(first)
        for key in rest:
            self._above[self.of(key)] = root
