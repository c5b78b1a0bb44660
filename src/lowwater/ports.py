"""The outside world as the core sees it: small protocols, each with its failure named."""

from collections.abc import Sequence
from typing import Protocol

from lowwater.values.entries import Entry
from lowwater.values.events import Event
from lowwater.values.stored import Listed, Stored
from lowwater.values.summaries import SummaryRequest, Written
from lowwater.values.turn_record import TurnRecord


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


class Store(Protocol):
    """Keeps ledgers and turn records by session; any thread may call it. Every method may raise UnusableStore or DamagedStore.

    A version stands for one append. Versions of a store only grow and never come back, not even for a session that was
    deleted and begun again; 0 is a session that has nothing yet. `lowwater.testing.store_contract` is the full contract.
    """

    def append(
        self, session: str, expected: int, entries: Sequence[Entry], record: TurnRecord | None = None, /
    ) -> int:
        """Keep entries and record, all or none, and return the new version; raise StaleLedger if `expected` is not the newest.

        Nothing to keep is no new version. When it returns, what it was given outlives the process.
        """
        ...

    def read(self, session: str, /, *, since: int = 0, until: int | None = None) -> Stored:
        """Return what was appended after version `since` and not after `until`; an unknown session is an empty one.

        Raise StaleLedger if `since` is no version of this session: what the caller has of it is gone.
        """
        ...

    def records(self, session: str, /) -> list[TurnRecord]:
        """Return all records, oldest first; only the newest still holds its belief and meter."""
        ...

    def sessions(self) -> list[Listed]:
        """Return all sessions, the one changed last first."""
        ...

    def delete(self, session: str, /) -> bool:
        """Forget a session and all content that no other session holds; return whether there was one."""
        ...

    def close(self) -> None:
        """Let go of files and connections; what is called later raises UnusableStore."""
        ...
