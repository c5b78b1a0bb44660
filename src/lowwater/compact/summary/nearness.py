"""Telling whether a text was there before, word for word or nearly."""

from collections.abc import Iterable, Set
from math import ceil

NEAR = 0.8
"""Texts with this share of their words (or lines) in common say the same."""


class Seen:
    """A collection of texts, as sets of words or lines, that knows which new ones are near one it has."""

    def __init__(self, near: float = NEAR) -> None:
        self._near = near
        self._sets: list[frozenset[int]] = []
        self._labels: list[str] = []
        self._by_member: dict[int, list[int]] = {}

    def nearest(self, members: Iterable[str]) -> str | None:
        """Return the label of a set that shares enough members, or None."""
        hashed = _hashed(members)
        candidates = {at for member in self._prefix(hashed) for at in self._by_member.get(member, ())}
        found = [at for at in candidates if jaccard(hashed, self._sets[at]) >= self._near]
        return self._labels[min(found)] if found else None

    def add(self, members: Iterable[str], label: str = "") -> None:
        """Remember a set under a label."""
        hashed = _hashed(members)
        for member in self._prefix(hashed):
            self._by_member.setdefault(member, []).append(len(self._sets))
        self._sets.append(hashed)
        self._labels.append(label)

    def _prefix(self, hashed: Set[int]) -> list[int]:
        """Of two sets near enough, these first members in one order always have one in common."""
        return sorted(hashed)[: len(hashed) - ceil(self._near * len(hashed)) + 1]


def jaccard(one: Set[object], other: Set[object]) -> float:
    """Return what two sets have in common as a share of both; two empty ones are equal."""
    together = len(one | other)
    return len(one & other) / together if together else 1.0


def lines_of(text: str) -> set[str]:
    """Return the distinct lines of a text that are not blank."""
    return {line.strip() for line in text.splitlines() if line.strip()}


def _hashed(members: Iterable[str]) -> frozenset[int]:
    return frozenset(map(_stable_hash, members))


def _stable_hash(text: str) -> int:
    """Hash the same way in every process: the order of the members must not depend on a seed."""
    return int.from_bytes(text.encode(errors="replace")[:24].ljust(24, b"\0"), "big") ^ (len(text) << 200)
