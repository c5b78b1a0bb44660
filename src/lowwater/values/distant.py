"""A sequence that lies elsewhere: what is looked at is fetched, once."""

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar, overload

T = TypeVar("T")

_AT_ONCE = 256
"""Items that are fetched together when all are wanted one after the other."""

Fetch = Callable[[int, int], Sequence[T]]
"""Returns the items from one index up to, but not including, another."""


class Distant(Sequence[T], Generic[T]):
    """The first `length` items of something that only grows elsewhere; what was fetched stays here.

    It is a value as long as what it stands for keeps its word; fetching may raise StoreFailed.
    """

    __slots__ = ("_fetch", "_here", "_length")

    def __init__(self, length: int, fetch: Fetch[T], here: dict[int, T] | None = None) -> None:
        self._length = length
        self._fetch = fetch
        self._here: dict[int, T] = {} if here is None else here

    def first(self, length: int) -> "Distant[T]":
        """Return the first `length` of these items, which share what was fetched."""
        return Distant(length, self._fetch, self._here)

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
