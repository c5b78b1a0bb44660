"""Whether compactions paid for themselves: what was predicted, against what the calls after them show."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Literal

from msgspec import Struct

from lowwater.core.accounts.cadence import goes_on, turns_before
from lowwater.core.api_calls import Usage
from lowwater.core.costs.prices import cost_of
from lowwater.core.events import Compaction, TurnRecord
from lowwater.core.models.model import Marks, Model, Uncached
from lowwater.core.models.registry import Registry
from lowwater.core.stored import Account


class Rewritten(Struct, frozen=True, kw_only=True):
    """The first call after a compaction, in nano-dollars."""

    more: int
    """What it cost more than it would have without the compaction; negative if it was cheaper at once."""
    rewriting: int
    """What was paid for writing again what stayed behind the first change."""


def first_call(
    before: TurnRecord | None, record: TurnRecord, tokens: int, model: Model, *, at: float
) -> Rewritten | None:
    """Return what removing so many tokens did to the call right after; None if its usage or its price is not known.

    With them it would have read what the call `before` had left in the cache, if that was still warm at the moment `at`.
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
    """Return what a later call cost less for not having so many tokens in its prompt; None if its price is not known.

    It would have read them if it read anything at all. A call whose usage is not known saves nothing.
    """
    usage = record.usage
    if usage is None:
        return 0
    read = usage.cache_read + tokens if usage.cache_read else 0
    with_them = _billed(usage, prompt=usage.prompt + tokens, read=read)
    cost, more = cost_of(usage, model, record.at), cost_of(with_them, model, record.at)
    return None if cost is None or more is None else more - cost


def _left_in_cache(before: TurnRecord | None, now: TurnRecord, model: Model, at: float) -> int:
    """Return how many tokens of the call before are taken to have been in the cache still.

    They are if the next call read anything, or came within the lifetime that the provider publishes.
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
    only_marked = isinstance(rules.matching, Marks) and rules.matching.unmarked == "uncached"
    return usage.prompt - usage.uncached if says_written or only_marked else usage.prompt


def _billed(usage: Usage, *, prompt: int, read: int) -> Usage:
    """Return the usage of a call with another prompt and other reads; the rest is divided as the call's was."""
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


Over = Literal["no", "replaced", "undone", "ended"]

_NOISE = 10
"""A drop by less than one part in so many may be a better count of what is kept out of the prompt, and no rewind."""


class Payback(Struct, frozen=True, kw_only=True):
    """One compaction as it was bought; money is in nano-dollars, and None where it cannot be told."""

    session: str
    numbers: tuple[int, ...]
    """Which of the session's compactions these are: several if they were made before one and the same call."""
    at: float
    model: str
    predicted: float | None
    """Over how many later calls it was to pay for itself."""
    turns: int | None
    """After how many later calls it had; 0 if it cost nothing or less, None if it has not."""
    price: int | None
    """None before the first call after it, too."""
    summaries: int | None
    """What was paid for its summaries."""
    rewriting: int | None
    """What was paid for writing again what stayed behind its first change; 0 before the first call after it."""
    saved: int | None
    """By the later calls, up to the one that paid it back."""
    counted: int
    """How many later calls there were, those after it was paid back included."""
    over: Over
    """Why no more calls will count; `no` if they will."""

    @property
    def missing(self) -> int | None:
        """What it has still to save; 0 if it has paid for itself, None if that cannot be told."""
        return None if self.price is None or self.saved is None else max(0, self.price - self.saved)

    @property
    def failed(self) -> bool:
        """It did not pay for itself and never will."""
        return self.over != "no" and bool(self.missing)


class _Bought(Struct, frozen=True, kw_only=True):
    """What was compacted between two calls, and which calls show what came of it."""

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
    """Return what became of each compaction of a session, oldest first; prices are those of `registry`."""
    models = {name: registry.find(name) for name in {record.model for record in account.records}}
    return [_payback(account, bought, models) for bought in _bought(account)]


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
    """Return as many of the savings as it takes to reach the price, all of them if they do not; none without a price."""
    taken: list[int | None] = []
    if price is None or price <= 0:
        return taken
    for saved in savings:
        taken.append(saved)
        price -= saved or 0
        if price <= 0:
            break
    return taken


def _bought(account: Account) -> Iterator[_Bought]:
    """Yield what was compacted between two calls, and up to which call it counts."""
    told = zip(account.events, turns_before(account), strict=True)
    paid = [
        (turn, event) for event, turn in told if isinstance(event, Compaction) and event.mode != "shorten"
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

    They are back when what is kept out falls by half of them or more from one call to the next, and were never out when it did
    not rise by half of them at first; a change that better counting explains is neither. Calls of two models do not compare.
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


def _sum(amounts: Sequence[int | None]) -> int | None:
    """Return the sum, or None if one of the amounts is not known."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None
