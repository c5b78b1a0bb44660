"""Scripted fakes for the ports: they do what the test says and nothing else."""

import re
from collections.abc import Iterable

from lowwater.errors import BadSetting

_WORD = re.compile(r"\w+|[^\w\s]")


class ScriptedClock:
    """A clock that stands still until it is told otherwise.

    `times` are read first, one at each look; behind them the clock stays where it is and `advance` moves it.
    """

    def __init__(self, start: float = 0.0, times: Iterable[float] = ()) -> None:
        self._now = start
        self._times = iter(times)

    def now(self) -> float:
        """Return the next scripted time, or the time it was left at."""
        self._now = next(self._times, self._now)
        return self._now

    def advance(self, seconds: float) -> None:
        """Move the clock forward."""
        if not seconds >= 0:
            raise BadSetting(f"cannot advance a clock by {seconds} seconds: time only goes forward")
        self._now += seconds


class WordTokenizer:
    """A toy tokenizer: each run of letters, digits and underscores is a token, and so is every other visible character."""

    vocabulary = "words"

    def count(self, text: str, /) -> int:
        """Return the number of words and marks in `text`."""
        return sum(1 for _ in _WORD.finditer(text))
