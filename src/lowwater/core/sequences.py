"""Two immutable sequences: one that is appended to in constant time, and one that fetches its items on first use."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Generic, TypeVar, overload

T = TypeVar("T")

_BATCH = 256
"""Items that are fetched together by an iteration."""

FetchItems = Callable[[int, int], Sequence[T]]
"""Returns the items from a first index up to, but not including, a second."""


class LazySequence(Sequence[T], Generic[T]):
    """The first `length` items of a sequence in a store, fetched on first use and then kept.

    It is immutable as long as the stored sequence is only appended to. Fetching may raise StoreFailed.
    """

    __slots__ = ("_fetch", "_fetched", "_length")

    def __init__(self, length: int, fetch: FetchItems[T], fetched: dict[int, T] | None = None) -> None:
        self._length = length
        self._fetch = fetch
        self._fetched: dict[int, T] = {} if fetched is None else fetched

    def first(self, length: int) -> "LazySequence[T]":
        """Return the first `length` of these items; both share what was fetched."""
        return LazySequence(length, self._fetch, self._fetched)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            wanted = range(*index.indices(self._length))
            self._ensure_fetched(wanted)
            return [self._fetched[at] for at in wanted]
        if not -self._length <= index < self._length:
            raise IndexError(f"index {index} in a sequence of {self._length}")
        at = index % self._length
        self._ensure_fetched((at,))
        return self._fetched[at]

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        for start in range(0, self._length, _BATCH):
            yield from self[start : start + _BATCH]

    def _ensure_fetched(self, wanted: Sequence[int]) -> None:
        """Fetch what is missing, each run of consecutive items at once."""
        missing = sorted(at for at in wanted if at not in self._fetched)
        start = 0
        while start < len(missing):
            end = start + 1
            while end < len(missing) and missing[end] == missing[end - 1] + 1:
                end += 1
            first = missing[start]
            self._fetched.update(enumerate(self._fetch(first, missing[end - 1] + 1), start=first))
            start = end


class AppendOnlyList(Sequence[T], Generic[T]):
    """An immutable sequence; appending returns a new one that shares storage with the old one.

    It is the first `length` items of a list that only ever grows. The first append to a value extends that list in place;
    a second append to the same value (a fork) copies it. So a history of n messages takes O(n) memory instead of O(n²), and
    older values stay as they were. The items before that list may be in a store (`before`).
    """

    __slots__ = ("_before", "_items", "_length", "_stored")

    def __init__(self, items: Iterable[T] = (), *, before: LazySequence[T] | None = None) -> None:
        self._before: LazySequence[T] | None = before if before else None
        self._stored = len(before) if before else 0
        self._items: list[T] = list(items)
        self._length = len(self._items)
        """The number of items in memory, after those in the store."""

    def append(self, item: T) -> "AppendOnlyList[T]":
        """Return this list with `item` at its end."""
        return self.extend((item,))

    def extend(self, items: Iterable[T]) -> "AppendOnlyList[T]":
        """Return this list with `items` at its end."""
        new = list(items)
        if not new:
            return self
        storage = self._items
        if len(storage) == self._length:
            storage.extend(new)
        # Another thread may have extended the list between the test and the extension; then the items are not where
        # they should be, and this value copies the list like any other fork.
        added = storage[self._length : self._length + len(new)]
        if len(added) < len(new) or any(a is not b for a, b in zip(added, new, strict=True)):
            storage = [*storage[: self._length], *new]
        return self._of(self._before, storage, self._length + len(new))

    def first(self, length: int) -> "AppendOnlyList[T]":
        """Return the first `length` items; both share their storage."""
        if self._before is not None and length < self._stored:
            return AppendOnlyList(before=self._before.first(length))
        return self._of(self._before, self._items, min(length - self._stored, self._length))

    @property
    def is_here(self) -> bool:
        """Whether all of it is in memory."""
        return self._before is None

    def extends(self, other: "AppendOnlyList[T]") -> bool:
        """Return whether this is `other` with items appended; compares storage only, in constant time."""
        return self._items is other._items and self._before is other._before and self._length >= other._length

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        stored, length = self._stored, len(self)
        if isinstance(index, slice):
            wanted = range(*index.indices(length))
            if self._before is None and wanted.step > 0:
                return self._items[wanted.start : wanted.stop : wanted.step]
            near = [self._items[at - stored] for at in wanted if at >= stored]
            far = [at for at in wanted if at < stored]
            if not far or self._before is None:
                return near
            first, last = (far[0], far[-1]) if wanted.step > 0 else (far[-1], far[0])
            covering = self._before[first : last + 1]
            fetched = [covering[at - first] for at in far]
            return near + fetched if wanted.step < 0 else fetched + near
        if not -length <= index < length:
            raise IndexError(f"index {index} in a list of {length}")
        at = index if index >= 0 else length + index
        if self._before is not None and at < stored:
            return self._before[at]
        return self._items[at - stored]

    def __len__(self) -> int:
        return self._stored + self._length

    def __iter__(self) -> Iterator[T]:
        # A copy, because the list may grow during the iteration; iterating over it is also faster than a generator.
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
        return f"AppendOnlyList({list(self)!r})"

    @staticmethod
    def _of(before: LazySequence[T] | None, items: list[T], length: int) -> "AppendOnlyList[T]":
        made: AppendOnlyList[T] = AppendOnlyList.__new__(AppendOnlyList)
        made._before = before
        made._stored = 0 if before is None else len(before)
        made._items = items
        made._length = length
        return made
