"""The script: which answer comes next."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from lowwater.testing.provider.answers import Answer
from lowwater.testing.provider.records import Seen

Scripted: TypeAlias = Iterable[Answer] | Callable[[Seen], Answer]


class Script:
    """Answers in order, then always the default; or whatever a function of the request says."""

    def __init__(self, scripted: Scripted, default: Answer) -> None:
        self._choose = scripted if callable(scripted) else None
        self._left = iter(()) if callable(scripted) else iter(scripted)
        self._default = default

    def next(self, seen: Seen) -> Answer:
        """Return the answer to a request that broke no rule."""
        return self._choose(seen) if self._choose else next(self._left, self._default)
