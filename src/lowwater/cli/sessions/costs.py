"""What a kept session cost, as far as that is known."""

from collections.abc import Iterable

from msgspec import Struct

from lowwater.core.events import Compaction
from lowwater.core.stored import Account


class Costs(Struct, frozen=True, kw_only=True):
    """Nano-dollars for all calls of a session; None as soon as the price of one is not known."""

    calls: int | None
    """Its turns."""
    summaries: int | None
    """The calls that wrote summaries."""
    untouched: int | None
    """About what its turns would have cost had nothing ever been compacted."""

    @property
    def total(self) -> int | None:
        """Turns and summaries together."""
        return _sum((self.calls, self.summaries))


def costs_of(account: Account) -> Costs:
    """Return what a session cost."""
    return Costs(
        calls=_sum(record.cost for record in account.records),
        summaries=_sum(event.cost for event in account.events if isinstance(event, Compaction)),
        untouched=_sum(record.untouched for record in account.records),
    )


def _sum(amounts: Iterable[int | None]) -> int | None:
    """Return a sum; one with something unknown in it is unknown."""
    total = 0
    for amount in amounts:
        if amount is None:
            return None
        total += amount
    return total
