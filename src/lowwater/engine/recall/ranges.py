"""Arithmetic on ranges of message numbers, which are in order, apart and never empty."""

from collections.abc import Iterable, Iterator, Sequence

from lowwater.values.entries import Numbers


def counted(ranges: Iterable[Numbers]) -> int:
    """Return how many messages these are."""
    return sum(span.last - span.first + 1 for span in ranges)


def overlap(ours: Sequence[Numbers], theirs: Sequence[Numbers]) -> bool:
    """Return whether some message is in both."""
    return any(one.first <= other.last and other.first <= one.last for one in ours for other in theirs)


def inside(ours: Sequence[Numbers], theirs: Sequence[Numbers]) -> bool:
    """Return whether all of ours are among theirs."""
    return all(any(other.first <= one.first and one.last <= other.last for other in theirs) for one in ours)


def without(ours: Iterable[Numbers], theirs: Iterable[Numbers]) -> Iterator[Numbers]:
    """Yield what is left of ours once theirs are taken away."""
    taken = sorted(theirs, key=lambda span: span.first)
    for one in ours:
        first = one.first
        for other in taken:
            if other.last < first or other.first > one.last:
                continue
            if first < other.first:
                yield Numbers(first=first, last=other.first - 1)
            first = other.last + 1
        if first <= one.last:
            yield Numbers(first=first, last=one.last)


def first_of(ranges: Iterable[Numbers], most: int) -> tuple[Numbers, ...]:
    """Return the first `most` of these messages."""
    taken: list[Numbers] = []
    for span in ranges:
        if most <= 0:
            break
        taken.append(Numbers(first=span.first, last=min(span.last, span.first + most - 1)))
        most -= counted(taken[-1:])
    return tuple(taken)
