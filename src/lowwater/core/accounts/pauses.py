"""What keeping prefixes warm cost and saved, from a session's records: the calls made in pauses, and what the next request read."""

from collections.abc import Iterable

from msgspec import Struct

from lowwater.core.api_calls import Usage
from lowwater.core.costs.idle import KEPT_WARM
from lowwater.core.costs.prices import cost_of
from lowwater.core.events import TurnRecord
from lowwater.core.models.registry import Registry
from lowwater.core.stored import Account


class KeptWarm(Struct, frozen=True, kw_only=True):
    """Calls that kept a prefix warm; amounts in nano-dollars, None if a price is unknown."""

    pings: int = 0
    cost: int | None = 0
    saved: int | None = 0
    """What the next requests saved by reading what they would have had to write; the cost of the calls is not deducted."""

    @property
    def net(self) -> int | None:
        """The saving less the cost of the calls."""
        return None if self.cost is None or self.saved is None else self.saved - self.cost


def pauses_kept(account: Account, registry: Registry) -> KeptWarm:
    """Return what keeping a session's prefix warm cost and saved.

    It saved nothing in a pause after which no request came, or one before the prefix would have expired anyway.
    """
    found = KeptWarm()
    before: TurnRecord | None = None
    waiting: list[TurnRecord] = []
    lifetime = ""
    for record in account.records:
        if record.decision == KEPT_WARM:
            waiting.append(record)
            continue
        if waiting and before is not None:
            found = _plus(found, _pause(before, waiting, record, registry, long=lifetime == "long"))
            waiting = []
        if record.usage is not None and (record.usage.cache_write or record.usage.cache_write_long):
            lifetime = "long" if record.usage.cache_write_long > record.usage.cache_write else "short"
        before = record
    if waiting:
        found = _plus(found, KeptWarm(pings=len(waiting), cost=_sum(record.cost for record in waiting)))
    return found


def total_kept(each: Iterable[KeptWarm]) -> KeptWarm:
    """Return the sum over many sessions."""
    found = KeptWarm()
    for one in each:
        found = _plus(found, one)
    return found


def _pause(
    before: TurnRecord, pings: list[TurnRecord], after: TurnRecord, registry: Registry, *, long: bool
) -> KeptWarm:
    model = registry.find(after.model)
    rules = model.cache
    lives = rules.ttl_long if long and rules.ttl_long is not None else rules.ttl
    cost = _sum(record.cost for record in pings)
    # Records have the time of the answer, so a request that came just before the expiry may count as one after it.
    if after.usage is None or lives is None or after.at - before.at <= lives:
        return KeptWarm(pings=len(pings), cost=cost)
    kept = min(
        after.usage.cache_read, max((each.usage.cache_read for each in pings if each.usage), default=0)
    )
    written = Usage(cache_write_long=kept) if long else Usage(cache_write=kept)
    writing, reading = cost_of(written, model, after.at), cost_of(Usage(cache_read=kept), model, after.at)
    saved = None if writing is None or reading is None else writing - reading
    return KeptWarm(pings=len(pings), cost=cost, saved=saved)


def _plus(one: KeptWarm, other: KeptWarm) -> KeptWarm:
    return KeptWarm(
        pings=one.pings + other.pings,
        cost=_sum((one.cost, other.cost)),
        saved=_sum((one.saved, other.saved)),
    )


def _sum(amounts: Iterable[int | None]) -> int | None:
    total = 0
    for amount in amounts:
        if amount is None:
            return None
        total += amount
    return total
