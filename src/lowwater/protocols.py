"""The outside world as the core sees it: small protocols, each with its failure named."""

from collections.abc import Sequence
from typing import Protocol

from lowwater.core.entries import Entry
from lowwater.core.events import Event
from lowwater.core.ledger import Numbered
from lowwater.core.stored import (
    About,
    Account,
    Append,
    Fingerprint,
    FingerprintMatch,
    Hit,
    Listed,
    Outline,
    Stored,
)
from lowwater.core.summary.request import SummaryRequest, Written


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


class MemoryHook(Protocol):
    """Saves what it wants to remember before messages leave the view; one that fails is logged and stops nothing."""

    def on_pre_compress(self, messages: Sequence[object], /) -> object:
        """Look at the view as it is before a compaction, in the conversation's format; what it returns is not used.

        A hook that also has a method `flush` is asked to flush after that.
        """
        ...


class Ledgers(Protocol):
    """Keeps ledgers by session; any thread may call it. Every method may raise UnusableStore or DamagedStore.

    A version stands for one append. Versions of a store only grow and never come back, not even for a session that was
    deleted and begun again; 0 is a session that has nothing yet. Wherever a caller names a version that it has seen, StaleLedger
    is raised if that is none of this session: what the caller has of it is gone.
    """

    def append(self, session: str, expected: int, new: Append, /) -> int:
        """Keep what is new, all or none, and return the new version; raise StaleLedger if `expected` is not the newest.

        Nothing to keep is no new version. When it returns, what it was given outlives the process.
        """
        ...

    def read(self, session: str, /, *, since: int = 0, until: int | None = None) -> Stored:
        """Return what was appended after version `since` and not after `until`; an unknown session is an empty one."""
        ...

    def outline(self, session: str, /) -> Outline:
        """Return the session without its entries, in a time that does not grow with its messages."""
        ...

    def entries(self, session: str, first: int, end: int, /, *, version: int) -> list[Entry]:
        """Return the entries at the positions from `first` up to but not including `end`, counted from 0."""
        ...

    def messages(self, session: str, first: int, end: int, /, *, version: int) -> list[Numbered]:
        """Return the messages with the numbers from `first` up to but not including `end`, counted from 1."""
        ...

    def copy(self, session: str, to: str, about: About, /) -> int:
        """Begin the session `to` with all that `session` has but its records and events; return its version.

        No content is written again. Raise StaleLedger if there is a session `to`; an unknown `session` is a BadInput.
        """
        ...

    def delete(self, session: str, /, *others: str) -> bool:
        """Forget sessions and all content that none but they hold; return whether there was one of them.

        To name many at once may be much faster than one by one.
        """
        ...


class Accounts(Protocol):
    """Tells what sessions did and cost."""

    def sessions(self) -> list[Listed]:
        """Return all sessions, the one changed last first."""
        ...

    def accounts(self, sessions: Sequence[str] | None = None, /) -> list[Account]:
        """Return the accounts of these sessions, those that exist, or of all; in the order of `sessions()`."""
        ...


class Index(Protocol):
    """Finds messages by their words."""

    def search(self, words: str, /, *, session: str | None = None, limit: int = 5) -> list[Hit]:
        """Return the messages that match best, best first, of one session or of all; any text is a legal search.

        A message matches if it has at least one of the words; more of them, and rarer ones, are better. A word of Chinese, Japanese
        or Korean is found inside a longer one.
        """
        ...


class Fingerprints(Protocol):
    """Knows sessions again by the lists their clients keep."""

    def record_fingerprint(self, fingerprint: Fingerprint, /) -> None:
        """Note what a session was seen with; what it was seen with before stays known, and is no longer the newest.

        A session that is not kept leaves no fingerprint.
        """
        ...

    def lookup_fingerprints(self, tenant: str, keys: Sequence[bytes], /) -> list[FingerprintMatch]:
        """Return the sessions of this tenant that were ever seen with one of these keys, in any order."""
        ...

    def secret(self) -> bytes:
        """Return bytes that were drawn when the store was made, the same for all who use it."""
        ...


class Store(Ledgers, Accounts, Index, Fingerprints, Protocol):
    """All of that in one place; `lowwater.testing.store_contract` is the full contract."""

    def close(self) -> None:
        """Let go of files and connections; what is called later raises UnusableStore."""
        ...
