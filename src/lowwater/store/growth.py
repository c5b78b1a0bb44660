"""What an append adds to a session's own row, whatever database it lies in."""

from collections.abc import Sequence

from msgspec import Struct

from lowwater.core.entries import Compacted, ModelChanged, Opened
from lowwater.core.stored import Append
from lowwater.store.packing import Content


class Growth(Struct, frozen=True, kw_only=True):
    """Figures to add up; times and model are None where the append says nothing of them."""

    entries: int
    messages: int
    tokens: int
    turns: int
    compactions: int
    model: str | None
    first: float | None
    """The earliest time of anything in it."""
    last: float | None


def growth_of(new: Append, contents: Sequence[Content]) -> Growth:
    """Return what an append adds, of which `contents` are all messages."""
    records = () if new.record is None else (new.record,)
    times = [happened.at for happened in (*new.entries, *new.events, *records)]
    models = [entry.model for entry in new.entries if isinstance(entry, Opened | ModelChanged)]
    return Growth(
        entries=len(new.entries),
        messages=len(contents),
        tokens=sum(content.tokens for content in contents),
        turns=len(records),
        compactions=sum(isinstance(entry, Compacted) for entry in new.entries),
        model=models[-1] if models else None,
        first=min(times, default=None),
        last=max(times, default=None),
    )
