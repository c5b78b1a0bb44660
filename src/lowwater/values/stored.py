"""What a store gives back."""

from msgspec import Struct

from lowwater.values.entries import Entry
from lowwater.values.turn_record import TurnRecord


class Stored(Struct, frozen=True, kw_only=True):
    """Entries of a session in order, the version they lead to, and the newest turn record of the session by then."""

    version: int = 0
    entries: tuple[Entry, ...] = ()
    record: TurnRecord | None = None


class Listed(Struct, frozen=True, kw_only=True):
    """A session as a list shows it; times are those of its entries and records."""

    name: str
    version: int
    entries: int
    messages: int
    turns: int
    opened_at: float
    changed_at: float
