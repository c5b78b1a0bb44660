"""The outside world as the core sees it: small protocols, each with its failure named."""

from typing import Protocol

from lowwater.values.events import Event
from lowwater.values.summaries import SummaryRequest, Written


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


class Summarizer(Protocol):
    """Condenses messages."""

    def summarize(self, request: SummaryRequest, /) -> Written:
        """Return a usable summary or raise SummaryFailed; a placeholder is not a summary."""
        ...


class AsyncSummarizer(Protocol):
    """Condenses messages, awaited."""

    async def summarize(self, request: SummaryRequest, /) -> Written:
        """Return a usable summary or raise SummaryFailed; a placeholder is not a summary."""
        ...


class Sink(Protocol):
    """Is told what happens in sessions."""

    def record(self, session: str, event: Event, /) -> None:
        """Take an event; a sink that fails is ignored, for telling must not make a compaction fail."""
        ...
