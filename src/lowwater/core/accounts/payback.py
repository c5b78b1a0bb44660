"""Whether compactions paid for themselves: what was predicted, compared with what the calls after them cost."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Literal

from msgspec import Struct

from lowwater.core.accounts.cadence import goes_on, turns_before_events
from lowwater.core.api_calls import Usage
from lowwater.core.costs.prices import cost_of
from lowwater.core.events import Compaction, TurnRecord
from lowwater.core.models.model import MarkedPrefixes, Model, Uncached
from lowwater.core.models.registry import Registry
from lowwater.core.stored import Account

Over = Literal["no", "replaced", "undone", "ended"]

_NOISE = 10
"""A change by less than 1/_NOISE may come from a better count of what was removed, and not from a rewind."""


class Payback(Struct, frozen=True, kw_only=True):
    """What became of one compaction; money is in nano-dollars, and None if it is not known."""

    session: str
    numbers: tuple[int, ...]
    """The numbers of the compactions in the session: several if they were made before the same call."""
    at: float
    model: str
    predicted: float | None
    """After how many later calls it was predicted to pay for itself."""
    turns: int | None
    """After how many later calls it had paid for itself; 0 if it cost nothing, None if it has not yet."""
    price: int | None
    """Also None before the first call after it."""
    summaries: int | None
    """What was paid for its summaries."""
    rewriting: int | None
    """What was paid for writing to the cache again what stayed after its first change; 0 before the first call after it."""
    saved: int | None
    """What later calls saved, up to the one that paid it back."""
    counted: int
    """How many later calls there were, including those after it was paid back."""
    over: Over
    """Why no more calls will count; `no` if more will."""

    @property
    def missing(self) -> int | None:
        """What it still has to save; 0 if it has paid for itself, None if that is not known."""
        return None if self.price is None or self.saved is None else max(0, self.price - self.saved)

    @property
    def failed(self) -> bool:
        """Whether it did not pay for itself and never will."""
        return self.over != "no" and bool(self.missing)


class Rewritten(Struct, frozen=True, kw_only=True):
    """What a compaction did to the cost of the first call after it, in nano-dollars."""

    more: int
    """How much more it cost than without the compaction; negative if it was cheaper at once."""
    rewriting: int
    """What was paid for writing to the cache again what stayed after the first change."""


class _Bought(Struct, frozen=True, kw_only=True):
    """The compactions between two calls, and the later calls that count for their payback."""

    events: tuple[Compaction, ...]
    first: int
    """The index of the first turn after it."""
    until: int
    """The index of the first turn that no longer counts; the number of turns if all do."""
    over: Over

    @property
    def reclaimed(self) -> int:
        return sum(event.reclaimed for event in self.events)

    @property
    def summaries(self) -> int | None:
        return _sum([event.cost for event in self.events])

    @property
    def predicted(self) -> float | None:
        if len(self.events) == 1:
            return self.events[0].payback
        price, saves = _sum([event.price for event in self.events]), _sum([e.saves for e in self.events])
        if price is None or saves is None:
            return None
        if price <= 0:
            return 0.0
        return price / saves if saves > 0 else None


def paybacks(account: Account, registry: Registry) -> list[Payback]:
    """Return what became of each compaction of a session, oldest first, at the prices of `registry`."""
    models = {name: registry.find(name) for name in {record.model for record in account.records}}
    return [_payback(account, bought, models) for bought in _bought(account)]


def _bought(account: Account) -> Iterator[_Bought]:
    """Yield the compactions between two calls, and up to which call they count."""
    dated = zip(account.events, turns_before_events(account), strict=True)
    paid = [
        (turn, event) for event, turn in dated if isinstance(event, Compaction) and event.mode != "shorten"
    ]
    groups = [
        (turn, tuple(event for _, event in group)) for turn, group in groupby(paid, key=lambda each: each[0])
    ]
    begins = [min(event.first_changed for event in events) for _, events in groups]
    ended: Over = "no" if goes_on(account) else "ended"
    for index, (first, events) in enumerate(groups):
        until, over = len(account.records), ended
        for at in range(index + 1, len(groups)):
            if begins[at] <= begins[index]:
                until, over = groups[at][0], "replaced"
                break
        undone = _undone_at(account.records[:until], first, sum(event.reclaimed for event in events))
        if undone is not None:
            until, over = undone, "undone"
        yield _Bought(events=events, first=first, until=until, over=over)


def _undone_at(records: Sequence[TurnRecord], first: int, reclaimed: int) -> int | None:
    """Return the index of the first turn with the tokens back in its prompt; None if they stayed out.

    They are back if the removed total falls by half of them or more from one call to the next. They were never out if it did
    not rise by half of them at first. Changes small enough to come from better counting are ignored, and so are calls of
    different models.
    """
    for turn in range(first, len(records)):
        before = records[turn - 1] if turn else None
        if before is not None and before.model != records[turn].model:
            continue
        was = before.removed if before is not None else 0
        risen, noise = records[turn].removed - was, was // _NOISE
        fell = risen < -noise
        if turn == first:
            back = not fell and 2 * (risen + noise) < reclaimed
        else:
            back = fell and -2 * risen >= reclaimed
        if back:
            return turn
    return None


def _payback(account: Account, bought: _Bought, models: Mapping[str, Model]) -> Payback:
    records, reclaimed, last = account.records[: bought.until], bought.reclaimed, bought.events[-1]
    later = records[bought.first + 1 :]
    price = bought.summaries
    rewriting: int | None = 0
    if bought.first < len(records):
        before, record = records[bought.first - 1] if bought.first else None, records[bought.first]
        shown = first_call(before, record, reclaimed, models[record.model], at=last.at)
        price = None if shown is None or price is None else price + shown.more
        rewriting = None if shown is None else shown.rewriting
    elif bought.over == "no":
        price = None
    savings = _until_paid(price, (saving(record, reclaimed, models[record.model]) for record in later))
    saved = _sum(savings) if price is not None else None
    return Payback(
        session=account.session.name,
        numbers=tuple(event.number for event in bought.events),
        at=last.at,
        model=last.model,
        predicted=bought.predicted,
        turns=len(savings) if price is not None and saved is not None and saved >= price else None,
        price=price,
        summaries=bought.summaries,
        rewriting=rewriting,
        saved=saved,
        counted=len(later),
        over=bought.over,
    )


def _until_paid(price: int | None, savings: Iterable[int | None]) -> list[int | None]:
    """Return the savings up to the one that reaches the price, all of them if none does; none without a price."""
    taken: list[int | None] = []
    if price is None or price <= 0:
        return taken
    for saved in savings:
        taken.append(saved)
        price -= saved or 0
        if price <= 0:
            break
    return taken


def first_call(
    before: TurnRecord | None, record: TurnRecord, tokens: int, model: Model, *, at: float
) -> Rewritten | None:
    """Return what removing `tokens` did to the cost of the next call; None if its usage or its price is not known.

    With them it would have read what the call `before` left in the cache, if that was still warm at `at`.
    """
    usage = record.usage
    if usage is None:
        return None
    whole = usage.prompt + tokens
    found = min(whole, max(usage.cache_read, _left_in_cache(before, record, model, at)))
    stayed = min(usage.prompt, max(usage.cache_read, found - tokens))
    cost = cost_of(usage, model, record.at)
    without = cost_of(_billed(usage, prompt=whole, read=found), model, record.at)
    unbroken = cost_of(_billed(usage, prompt=usage.prompt, read=stayed), model, record.at)
    if cost is None or without is None or unbroken is None:
        return None
    return Rewritten(more=cost - without, rewriting=max(0, cost - unbroken))


def saving(record: TurnRecord, tokens: int, model: Model) -> int | None:
    """Return how much less a later call cost without `tokens` in its prompt; None if its price is not known.

    With them it would have read them from the cache if it read anything at all. A call of unknown usage saves nothing.
    """
    usage = record.usage
    if usage is None:
        return 0
    read = usage.cache_read + tokens if usage.cache_read else 0
    with_them = _billed(usage, prompt=usage.prompt + tokens, read=read)
    cost, more = cost_of(usage, model, record.at), cost_of(with_them, model, record.at)
    return None if cost is None or more is None else more - cost


def _left_in_cache(before: TurnRecord | None, now: TurnRecord, model: Model, at: float) -> int:
    """Return how many tokens of the previous call were probably still in the cache.

    They were if the next call read anything, or came within the lifetime that the provider publishes.
    """
    if before is None or before.usage is None or now.usage is None or before.model != now.model:
        return 0
    rules, usage = model.cache, before.usage
    if isinstance(rules.matching, Uncached):
        return 0
    kept_long = usage.cache_write_long > 0 and rules.ttl_long is not None
    ttl = rules.ttl_long if kept_long else rules.ttl
    if not now.usage.cache_read and (ttl is None or at - before.at > ttl):
        return 0
    says_written = usage.cache_write + usage.cache_write_long > 0
    only_marked = isinstance(rules.matching, MarkedPrefixes) and rules.matching.unmarked == "uncached"
    return usage.prompt - usage.uncached if says_written or only_marked else usage.prompt


def _billed(usage: Usage, *, prompt: int, read: int) -> Usage:
    """Return the usage of a call with another prompt size and other cache reads; the rest is split in the call's proportions."""
    rest, was = prompt - read, usage.prompt - usage.cache_read
    uncached = rest * usage.uncached // was if was else 0
    long = rest * usage.cache_write_long // was if was else 0
    return Usage(
        uncached=uncached,
        cache_read=read,
        cache_write=rest - uncached - long,
        cache_write_long=long,
        output=usage.output,
    )


def _sum(amounts: Sequence[int | None]) -> int | None:
    """Return the sum, or None if one of the amounts is not known."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None
