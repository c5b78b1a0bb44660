"""The protocols that users can implement: tokenizer, clock, summarizers, sinks, memory hooks and stores."""

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
        """The vocabulary's name, which is stored with the session."""
        ...

    def count(self, text: str, /) -> int:
        """Return the number of tokens in any string; 0 for the empty one."""
        ...


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> float:
        """Return seconds since the epoch."""
        ...


class Summarizer(Protocol):
    """Writes summaries."""

    def summarize(self, request: SummaryRequest, /) -> Written:
        """Return a usable summary or raise SummaryFailed; a placeholder is not a summary."""
        ...


class AsyncSummarizer(Protocol):
    """Writes summaries, asynchronously."""

    async def summarize(self, request: SummaryRequest, /) -> Written:
        """Return a usable summary or raise SummaryFailed; a placeholder is not a summary."""
        ...


class Sink(Protocol):
    """Receives the events of sessions."""

    def record(self, session: str, event: Event, /) -> None:
        """Take an event. An error in a sink is ignored, so that reporting cannot make a compaction fail."""
        ...


class MemoryHook(Protocol):
    """Saves what it wants to remember before messages leave the view; an error is logged and stops nothing."""

    def on_pre_compress(self, messages: Sequence[object], /) -> object:
        """Take the messages of the view before a compaction, in the conversation's format; the result is not used.

        If the hook also has a method `flush`, it is called after that. If it has a method `on_post_compress(messages)`, that is
        given the view after each compaction and may return a text, or a list of texts, to be added to it; None adds nothing.
        """
        ...


class Ledgers(Protocol):
    """Stores ledgers by session. Any thread may call it. Every method may raise UnusableStore or DamagedStore.

    Each append makes a new version. The versions of a store only grow and are never reused, not even for a session that was
    deleted and started again; a session with nothing stored has version 0. If a caller passes a version that it read before and
    this session no longer has, StaleLedger is raised: what the caller read is gone.
    """

    def append(self, session: str, expected: int, new: Append, /) -> int:
        """Store `new` atomically and return the new version; raise StaleLedger if `expected` is not the newest.

        An empty append makes no new version. When it returns, what it was given is durable.
        """
        ...

    def read(self, session: str, /, *, since: int = 0, until: int | None = None) -> Stored:
        """Return what was appended after version `since`, up to and including `until`; an unknown session is empty."""
        ...

    def outline(self, session: str, /) -> Outline:
        """Return the session without its entries; the time this takes must not grow with the number of messages."""
        ...

    def entries(self, session: str, first: int, end: int, /, *, version: int) -> list[Entry]:
        """Return the entries at the positions from `first` up to but not including `end`, counted from 0."""
        ...

    def messages(self, session: str, first: int, end: int, /, *, version: int) -> list[Numbered]:
        """Return the messages with the numbers from `first` up to but not including `end`, counted from 1."""
        ...

    def copy(self, session: str, to: str, about: About, /) -> int:
        """Create the session `to` with everything that `session` has except its records and events; return its version.

        No content is written again. Raise StaleLedger if `to` exists already, BadInput if `session` does not exist.
        """
        ...

    def delete(self, session: str, /, *others: str) -> bool:
        """Delete sessions and all content that no other session has; return whether any of them existed.

        Deleting many at once may be much faster than one by one.
        """
        ...


class Accounts(Protocol):
    """Lists sessions, and what they did and cost."""

    def sessions(self) -> list[Listed]:
        """Return all sessions, the most recently changed first."""
        ...

    def accounts(self, sessions: Sequence[str] | None = None, /) -> list[Account]:
        """Return the accounts of those of `sessions` that exist, or of all, in the order of `sessions()`."""
        ...


class Index(Protocol):
    """Searches messages by words."""

    def search(self, words: str, /, *, session: str | None = None, limit: int = 5) -> list[Hit]:
        """Return the messages that match best, best first, in one session or in all; any text is a valid search.

        A message matches if it has at least one of the words; more and rarer words score higher. Chinese, Japanese and Korean
        words are also found inside longer ones.
        """
        ...


class Fingerprints(Protocol):
    """Recognises sessions by the lists of messages that their clients send."""

    def record_fingerprint(self, fingerprint: Fingerprint, /) -> None:
        """Store a session's newest fingerprint; earlier ones are kept, but are no longer the newest.

        The fingerprint of a session that is not stored is ignored.
        """
        ...

    def lookup_fingerprints(self, tenant: str, keys: Sequence[bytes], /) -> list[FingerprintMatch]:
        """Return the sessions of this tenant that ever had one of these keys, in any order."""
        ...

    def secret(self) -> bytes:
        """Return the random bytes that were generated when the store was created, the same for all its users."""
        ...


class Store(Ledgers, Accounts, Index, Fingerprints, Protocol):
    """All of these in one; `lowwater.testing.store_contract` tests the full contract."""

    def close(self) -> None:
        """Release files and connections; later calls raise UnusableStore."""
        ...
