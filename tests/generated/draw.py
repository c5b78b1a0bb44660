"""Choices from a seed: the same seed gives the same choices in every process and Python version."""

from collections.abc import Sequence
from math import cos, exp, log, pi, sqrt
from random import Random
from typing import TypeVar

T = TypeVar("T")

_ALNUM = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


class Draw:
    """A stream of choices.

    Only `Random.random` is used, the one method whose sequence Python promises to keep for a seed.
    """

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._next = Random(seed).random  # repeatable on purpose, nothing secret

    def child(self, name: str) -> "Draw":
        """Return a stream of its own, which does not depend on what was drawn from this one."""
        return Draw(f"{self._seed}/{name}")

    def chance(self, share: float) -> bool:
        """Return True in `share` of the cases."""
        return self._next() < share

    def below(self, limit: int) -> int:
        """Return a whole number from 0 up to, not including, `limit`."""
        return int(self._next() * limit)

    def between(self, low: int, high: int) -> int:
        """Return a whole number from `low` to `high`, both included."""
        return low + int(self._next() * (high - low + 1))

    def within(self, low: float, high: float) -> float:
        """Return a number between `low` and `high`."""
        return low + self._next() * (high - low)

    def skewed(self, median: float, spread: float, *, most: float) -> float:
        """Return a log-normal number around `median`, at most `most`: many small ones, a few large."""
        normal = sqrt(-2 * log(1 - self._next())) * cos(2 * pi * self._next())
        return min(most, median * exp(spread * normal))

    def one(self, items: Sequence[T]) -> T:
        """Return one of `items`."""
        return items[int(self._next() * len(items))]

    def some(self, items: Sequence[T], count: int) -> list[T]:
        """Return up to `count` different ones of `items`, in the order drawn."""
        pool = list(items)
        return [pool.pop(int(self._next() * len(pool))) for _ in range(min(count, len(pool)))]

    def weighted(self, choices: Sequence[tuple[T, float]]) -> T:
        """Return one of the choices, each as often as its weight says."""
        left = self._next() * sum(weight for _, weight in choices)
        for item, weight in choices:
            left -= weight
            if left < 0:
                return item
        return choices[-1][0]

    def hex(self, length: int) -> str:
        """Return `length` hexadecimal digits."""
        return "".join("0123456789abcdef"[int(self._next() * 16)] for _ in range(length))

    def alnum(self, length: int) -> str:
        """Return `length` letters and digits."""
        return "".join(_ALNUM[int(self._next() * 62)] for _ in range(length))
