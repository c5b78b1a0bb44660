"""The outside world as the core sees it: small protocols, each with its failure named."""

from typing import Protocol


class Tokenizer(Protocol):
    """Counts tokens of one vocabulary."""

    @property
    def vocabulary(self) -> str:
        """The vocabulary's name, kept beside every count."""
        ...

    def count(self, text: str, /) -> int:
        """Return how many tokens `text` is; any string has a count, the empty one none."""
        ...


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> float:
        """Return seconds since the epoch."""
        ...
