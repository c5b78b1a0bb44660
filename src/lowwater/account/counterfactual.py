"""What a call would have been billed, had tokens that were removed stood in its prompt (docs/economics.md).

Nobody sees that call. It is told from the one that was made: what it read from the cache it would have read too, and what it
did not read would have been divided in the same way between written and plain input.
"""

from msgspec import Struct

from lowwater.economics.bill import cost_of
from lowwater.values.model import Marks, Model, Uncached
from lowwater.values.turn_record import TurnRecord
from lowwater.values.usage import Usage


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
