"""The values that a store takes and returns."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from lowwater.core.entries import Entry
from lowwater.core.events import Event, TurnRecord
from lowwater.core.stored_form import stored_as


class Fingerprint(Struct, frozen=True, kw_only=True):
    """By what a session can be recognised: digests of its client's whole list, with and without the answer."""

    tenant: str
    session: str
    keys: tuple[bytes, ...]
    hint: str = ""
    """What the client said about itself; it distinguishes sessions of one tenant and never leads to another tenant."""


class FingerprintMatch(Struct, frozen=True, kw_only=True):
    """A session that once had this key."""

    key: bytes
    session: str
    hint: str
    newest: bool
    """Whether it is the session's latest; if not, the session has continued since."""


class About(Struct, frozen=True, kw_only=True, rename=stored_as("about"), forbid_unknown_fields=True):
    """What is known about a session besides its ledger."""

    title: str = ""
    source: str = "cli"
    parent: str = ""
    """The session that it continues; empty if there is none."""
    ended_at: float | None = None
    ended_because: str = ""


class Append(Struct, frozen=True, kw_only=True):
    """What one append adds to a session; fields that are None are left as they were."""

    entries: tuple[Entry, ...] = ()
    record: TurnRecord | None = None
    events: tuple[Event, ...] = ()
    carried: bytes | None = None
    """The state that a process needs besides the ledger to continue the session; opaque to the store."""
    about: About | None = None


class Stored(Struct, frozen=True, kw_only=True):
    """Entries of a session in order, the version they lead to, and the session's current state and description."""

    version: int = 0
    entries: tuple[Entry, ...] = ()
    carried: bytes = b""
    about: About = About()


LandmarkKind = Literal[
    "opened", "preamble_changed", "model_changed", "compacted", "rewound", "taken_back", "checkpointed"
]


class Landmark(Struct, frozen=True, kw_only=True):
    """An entry that is not just new messages: its position, and what had been appended before it."""

    position: int
    kind: LandmarkKind
    at: float
    messages: int
    """How many messages had been appended before it, including discarded ones."""
    tokens: int
    """The sum of their sizes, as counted on arrival."""


class Outline(Struct, frozen=True, kw_only=True):
    """A session without its entries: how long it is, and the positions of entries other than messages."""

    version: int = 0
    entries: int = 0
    messages: int = 0
    tokens: int = 0
    """The sum of all messages' sizes, as counted on arrival."""
    landmarks: tuple[Landmark, ...] = ()
    carried: bytes = b""
    about: About = About()


class Listed(Struct, frozen=True, kw_only=True):
    """A session as an overview lists it; its times are taken from its entries, records and events."""

    name: str
    version: int
    entries: int
    messages: int
    turns: int
    compactions: int
    """The number of compactions, including those a rewind undid."""
    model: str
    """The current model; empty if none was ever set."""
    opened_at: float
    changed_at: float
    about: About = About()


def records_before_events(records: Sequence[int], events: Sequence[int]) -> tuple[int, ...]:
    """Return, for each event, how many records were stored before it; both are given by their versions, in order.

    A record with the same version as an event comes after it: a view is compacted before it is sent.
    """
    return tuple(bisect_left(records, version) for version in events)


class Account(Struct, frozen=True, kw_only=True):
    """A session's turns and events, oldest first, from which its costs are computed."""

    session: Listed
    records: tuple[TurnRecord, ...] = ()
    events: tuple[Event, ...] = ()
    turns_before: tuple[int, ...] | None = None
    """For each event, how many of the records were stored before it; None if only their times are known."""


class Hit(Struct, frozen=True, kw_only=True):
    """A message that matches a search; a higher score is a better match within the same search."""

    session: str
    number: int
    tokens: int
    score: float
