"""An immutable sequence that grows at its end in constant time."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar, overload

T = TypeVar("T")


class Chain(Sequence[T], Generic[T]):
    """A sequence value; appending returns a new chain that shares storage with the old one.

    A chain is the first `length` items of a list that only ever grows. The first chain to append extends that list
    in place; a second chain appending to the same state (a fork) copies. So a history of n messages costs n, not
    n², and older values stay as they were.
    """

    __slots__ = ("_items", "_length")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items: list[T] = list(items)
        self._length = len(self._items)

    def append(self, item: T) -> "Chain[T]":
        """Return this chain with `item` behind it."""
        return self.extend((item,))

    def extend(self, items: Iterable[T]) -> "Chain[T]":
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
        grown: Chain[T] = Chain.__new__(Chain)
        grown._items = storage
        grown._length = self._length + len(new)
        return grown

    def extends(self, other: "Chain[T]") -> bool:
        """Return whether this chain is `other` with items behind it, told by shared storage in constant time."""
        return self._items is other._items and self._length >= other._length

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return [self._items[at] for at in range(*index.indices(self._length))]
        if not -self._length <= index < self._length:
            raise IndexError(f"index {index} in a chain of {self._length}")
        return self._items[index if index >= 0 else self._length + index]

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        for at in range(self._length):
            yield self._items[at]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Chain)
            and self._length == other._length
            and (self._items is other._items or all(a == b for a, b in zip(self, other, strict=True)))
        )

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Chain({list(self)!r})"
