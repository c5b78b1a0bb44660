"""What a store is given and what it gives back."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from lowwater.core.entries import Entry
from lowwater.core.events import Event, TurnRecord
from lowwater.core.stored_form import stored_as


class Fingerprint(Struct, frozen=True, kw_only=True):
    """What a session was last seen with: digests of its client's whole list, with and without the answer."""

    tenant: str
    session: str
    keys: tuple[bytes, ...]
    hint: str = ""
    """What the client told of itself; it tells sessions of one tenant apart, and never leads to another tenant."""


class FingerprintMatch(Struct, frozen=True, kw_only=True):
    """A session that once had this key."""

    key: bytes
    session: str
    hint: str
    newest: bool
    """Whether the session was last seen with it; if not, it has gone on since."""


class About(Struct, frozen=True, kw_only=True, rename=stored_as("about"), forbid_unknown_fields=True):
    """What is told of a session besides its ledger."""

    title: str = ""
    source: str = "cli"
    parent: str = ""
    """The session it continues; empty if it began by itself."""
    ended_at: float | None = None
    ended_because: str = ""


class Append(Struct, frozen=True, kw_only=True):
    """What one append brings; what is None stays as it was."""

    entries: tuple[Entry, ...] = ()
    record: TurnRecord | None = None
    events: tuple[Event, ...] = ()
    carried: bytes | None = None
    """All that a process needs, beside the ledger, to go on with the session; a store does not look at it."""
    about: About | None = None


class Stored(Struct, frozen=True, kw_only=True):
    """Entries of a session in order, the version they lead to, and what the session has besides as it is now."""

    version: int = 0
    entries: tuple[Entry, ...] = ()
    carried: bytes = b""
    about: About = About()


LandmarkKind = Literal[
    "opened", "preamble_changed", "model_changed", "compacted", "rewound", "taken_back", "checkpointed"
]


class Landmark(Struct, frozen=True, kw_only=True):
    """An entry that is more than new messages: where it stands, and what had come before it."""

    position: int
    kind: LandmarkKind
    at: float
    messages: int
    """How many messages had been appended before it, whatever became of them."""
    tokens: int
    """Their sizes together, as counted when they came."""


class Outline(Struct, frozen=True, kw_only=True):
    """A session without its entries: how long it is, and where something other than messages happened."""

    version: int = 0
    entries: int = 0
    messages: int = 0
    tokens: int = 0
    """The sizes of all messages together, as counted when they came."""
    landmarks: tuple[Landmark, ...] = ()
    carried: bytes = b""
    about: About = About()


class Listed(Struct, frozen=True, kw_only=True):
    """A session as a list shows it; times are those of its entries, records and events."""

    name: str
    version: int
    entries: int
    messages: int
    turns: int
    compactions: int
    """Entries that compacted the view, those that a rewind has undone included."""
    model: str
    """The model it was opened on or changed to last; empty if it was neither."""
    opened_at: float
    changed_at: float
    about: About = About()


def turns_before(records: Sequence[int], events: Sequence[int]) -> tuple[int, ...]:
    """Return for each event how many records were stored before it, told by the versions that brought either, in order.

    What one version brings at once belongs together: views are changed before they are sent.
    """
    return tuple(bisect_left(records, version) for version in events)


class Account(Struct, frozen=True, kw_only=True):
    """A session's turns and events, oldest first: what its costs are read from."""

    session: Listed
    records: tuple[TurnRecord, ...] = ()
    events: tuple[Event, ...] = ()
    turns_before: tuple[int, ...] | None = None
    """For each event how many of the records were stored before it; None if only their times tell."""


class Hit(Struct, frozen=True, kw_only=True):
    """A message that matches a search; a higher score is a better match, and scores of one search compare."""

    session: str
    number: int
    tokens: int
    score: float
