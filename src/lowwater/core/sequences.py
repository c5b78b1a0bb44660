"""Two immutable sequences: one that grows at its end in constant time, one that fetches what is looked at."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Generic, TypeVar, overload

T = TypeVar("T")

_AT_ONCE = 256
"""Items that are fetched together when all are wanted one after the other."""

Fetch = Callable[[int, int], Sequence[T]]
"""Returns the items from one index up to, but not including, another."""


class LazySequence(Sequence[T], Generic[T]):
    """The first `length` items of something that only grows elsewhere; what was fetched stays here.

    It is a value as long as what it stands for keeps its word; fetching may raise StoreFailed.
    """

    __slots__ = ("_fetch", "_here", "_length")

    def __init__(self, length: int, fetch: Fetch[T], here: dict[int, T] | None = None) -> None:
        self._length = length
        self._fetch = fetch
        self._here: dict[int, T] = {} if here is None else here

    def first(self, length: int) -> "LazySequence[T]":
        """Return the first `length` of these items, which share what was fetched."""
        return LazySequence(length, self._fetch, self._here)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            wanted = range(*index.indices(self._length))
            self._bring(wanted)
            return [self._here[at] for at in wanted]
        if not -self._length <= index < self._length:
            raise IndexError(f"index {index} in a sequence of {self._length}")
        at = index % self._length
        self._bring((at,))
        return self._here[at]

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        for start in range(0, self._length, _AT_ONCE):
            yield from self[start : start + _AT_ONCE]

    def _bring(self, wanted: Sequence[int]) -> None:
        """Fetch what is missing, each run of neighbours at once."""
        missing = sorted(at for at in wanted if at not in self._here)
        start = 0
        while start < len(missing):
            end = start + 1
            while end < len(missing) and missing[end] == missing[end - 1] + 1:
                end += 1
            first = missing[start]
            self._here.update(enumerate(self._fetch(first, missing[end - 1] + 1), start=first))
            start = end


class AppendOnlyList(Sequence[T], Generic[T]):
    """A sequence value; appending returns a new chain that shares storage with the old one.

    A chain is the first `length` items of a list that only ever grows. The first chain to append extends that list
    in place; a second chain appending to the same state (a fork) copies. So a history of n messages costs n, not
    n², and older values stay as they were. What lies before that list may be elsewhere.
    """

    __slots__ = ("_before", "_distant", "_items", "_length")

    def __init__(self, items: Iterable[T] = (), *, before: LazySequence[T] | None = None) -> None:
        self._before: LazySequence[T] | None = before if before else None
        self._distant = len(before) if before else 0
        self._items: list[T] = list(items)
        self._length = len(self._items)
        """Of the items behind those that are elsewhere."""

    def append(self, item: T) -> "AppendOnlyList[T]":
        """Return this chain with `item` behind it."""
        return self.extend((item,))

    def extend(self, items: Iterable[T]) -> "AppendOnlyList[T]":
        """Return this chain with `items` behind it."""
        new = list(items)
        if not new:
            return self
        storage = self._items
        if len(storage) == self._length:
            storage.extend(new)
        # Another thread may have extended between the test and the extension; then the items are not where they
        # should be, and this chain takes a copy like any other fork.
        behind = storage[self._length : self._length + len(new)]
        if len(behind) < len(new) or any(a is not b for a, b in zip(behind, new, strict=True)):
            storage = [*storage[: self._length], *new]
        return self._of(self._before, storage, self._length + len(new))

    def first(self, length: int) -> "AppendOnlyList[T]":
        """Return the first `length` items, which share their storage with this chain."""
        if self._before is not None and length < self._distant:
            return AppendOnlyList(before=self._before.first(length))
        return self._of(self._before, self._items, min(length - self._distant, self._length))

    @property
    def is_here(self) -> bool:
        """Whether no part of it lies elsewhere."""
        return self._before is None

    def extends(self, other: "AppendOnlyList[T]") -> bool:
        """Return whether this chain is `other` with items behind it, told by shared storage in constant time."""
        return self._items is other._items and self._before is other._before and self._length >= other._length

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        distant, length = self._distant, len(self)
        if isinstance(index, slice):
            wanted = range(*index.indices(length))
            if self._before is None and wanted.step > 0:
                return self._items[wanted.start : wanted.stop : wanted.step]
            near = [self._items[at - distant] for at in wanted if at >= distant]
            far = [at for at in wanted if at < distant]
            if not far or self._before is None:
                return near
            first, last = (far[0], far[-1]) if wanted.step > 0 else (far[-1], far[0])
            brought = self._before[first : last + 1]
            fetched = [brought[at - first] for at in far]
            return near + fetched if wanted.step < 0 else fetched + near
        if not -length <= index < length:
            raise IndexError(f"index {index} in a chain of {length}")
        at = index if index >= 0 else length + index
        if self._before is not None and at < distant:
            return self._before[at]
        return self._items[at - distant]

    def __len__(self) -> int:
        return self._distant + self._length

    def __iter__(self) -> Iterator[T]:
        # A copy of references: the list may grow meanwhile, and a generator takes its time for each item.
        here = self._items[: self._length]
        return iter(here) if self._before is None else chain(self._before, here)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, AppendOnlyList)
            and len(self) == len(other)
            and (
                (self._items is other._items and self._before is other._before)
                or all(a == b for a, b in zip(self, other, strict=True))
            )
        )

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Chain({list(self)!r})"

    @staticmethod
    def _of(before: LazySequence[T] | None, items: list[T], length: int) -> "AppendOnlyList[T]":
        made: AppendOnlyList[T] = AppendOnlyList.__new__(AppendOnlyList)
        made._before = before
        made._distant = 0 if before is None else len(before)
        made._items = items
        made._length = length
        return made
