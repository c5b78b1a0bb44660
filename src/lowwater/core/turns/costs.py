"""What calls, turns and compactions cost, for the session's accounts; None stands for an unknown cost."""

from collections.abc import Iterable

from msgspec.structs import replace

from lowwater.core.api_calls import Response, Usage
from lowwater.core.costs.prices import cost_of, cost_of_all, price_of
from lowwater.core.events import Compaction, TurnRecord
from lowwater.core.models.model import TOKENS_PER_PRICE, Model
from lowwater.core.models.registry import Registry
from lowwater.core.summary.request import Written
from lowwater.core.turns.cache import lifetime_of, marks_of, prompt_layout, removed_from, warmth_of
from lowwater.core.turns.state import PendingCall, Setup, State

_PRICED = frozenset({"listed", "resold"})
"""How a model must have been matched for its prices to be its own, and not those of a similar name."""
_NEARLY = 0.75
"""The share of a prefix that has to be read for the cache to have held it."""


def turn_record(state: State, response: Response, at: float) -> TurnRecord:
    """Return the record of a turn that was just answered; `state` is the one before it learned from the answer."""
    call, used = state.call, response.usage
    cost = cost_of_answer(state, response)
    return TurnRecord(
        at=at,
        model=call.model.name if call else state.model.name,
        usage=used,
        expected=call.expected if call else None,
        cost=cost,
        untouched=_cost_uncompacted(call, used, cost) if call else cost,
        removed=call.removed if call else 0,
        decision=call.decision if call else "",
        thinking_off=call.thinking_off if call else False,
    )


def side_call_record(state: State, response: Response, at: float) -> TurnRecord:
    """Return the record of a call that is not part of the conversation; its prompt is assumed to have been the view."""
    cost, removed = cost_of_answer(replace(state, call=None), response), removed_from(state)
    extra = _cost_of_carrying(response.usage, removed, state.model, at)
    return TurnRecord(
        at=at,
        model=state.model.name,
        usage=response.usage,
        cost=cost,
        untouched=None if cost is None or extra is None else cost + extra,
        removed=removed,
    )


def _cost_uncompacted(call: PendingCall, used: Usage | None, cost: int | None) -> int | None:
    """Return what a call would have cost if nothing had ever been compacted.

    That is its cost without the surcharge of compactions just before it, but with all removed tokens in its prompt.
    """
    if used is None or cost is None or call.compaction_surcharge is None:
        return None
    surcharge, removed = call.compaction_surcharge, call.removed_before
    # The price of the longer prompt with all of it read from the cache.
    least = (
        cost_of(Usage(cache_read=used.prompt + call.removed, output=used.output), call.model, call.at) or 0
    )
    if _is_lost(call, used):
        is_read, surcharge, removed = False, 0, call.removed
    else:
        # What was removed earlier would have been read from the cache if that reached so far. Right after a compaction it may not
        # because of that, and what was removed would have been read all the same if the compaction cost a rewrite. If the cache
        # was expected to be cold, that is so unless nearly all was read that stood before what was removed.
        settled = call.is_settled and not surcharge
        cold = not settled and not (call.expected.cache_read or surcharge > 0)
        reaches = used.cache_read > (
            call.removed_behind if settled else _NEARLY * call.removed_behind if cold else 0
        )
        is_read = reaches or surcharge > 0
    extra = _cost_of_carrying(used, removed, call.model, call.at, is_read=is_read)
    if extra is None:
        return None
    # The surcharge is a forecast and the cost is a bill, so their difference may be too small.
    return max(cost - surcharge + extra, min(least, cost + extra))


def _is_lost(call: PendingCall, used: Usage) -> bool:
    """Return whether the provider has lost most of what compactions left as it was, so that it would have lost it without them, too.

    Positions are counted, not reported: a small difference says nothing.
    """
    should_read = min(call.expected.cache_read, call.removed_behind)
    return should_read - used.cache_read > max(should_read, used.prompt) / 2


def _cost_of_carrying(
    used: Usage | None, removed: int, model: Model, at: float, *, is_read: bool | None = None
) -> int | None:
    """Return how much more a call would have cost with `removed` more tokens in its prompt."""
    if used is None:
        return None
    actual, larger = cost_of(used, model, at), cost_of(with_more(used, removed, is_read=is_read), model, at)
    return None if actual is None or larger is None else larger - actual


def with_more(used: Usage, tokens: int, *, is_read: bool | None = None) -> Usage:
    """Return the usage of a prompt with `tokens` more, from the cache or not; None: billed like the beginning of the prompt."""
    if is_read or (is_read is None and used.cache_read):
        return replace(used, cache_read=used.cache_read + tokens)
    if used.cache_write_long:
        return replace(used, cache_write_long=used.cache_write_long + tokens)
    if used.cache_write:
        return replace(used, cache_write=used.cache_write + tokens)
    return replace(used, uncached=used.uncached + tokens)


def with_price(event: Compaction, state: State, setup: Setup) -> Compaction:
    """Return a compaction's event with its expected price and savings at the prices of the model in use; `state` is the one before it."""
    before = state.model.prices_at(event.before, event.at)
    after = state.model.prices_at(event.after, event.at)
    if before is None or after is None or event.cost is None:
        return event
    hit = hit_after = 0
    if state.belief.boundaries:
        current = prompt_layout(state, setup)
        warm = warmth_of(state, current.layout, event.at)
        hit, hit_after = warm.expected(), warm.expected(current.starts()[event.first_changed])
    bought = price_of(
        before,
        after,
        prompt=event.before,
        hit=hit,
        hit_after=hit_after,
        removes=event.reclaimed,
        summary_cost=event.cost,
        lifetime=lifetime_of(marks_of(state, setup)),
    )
    carried = event.before * before.cache_read - event.after * after.cache_read
    return replace(event, price=bought.price, saves=carried // TOKENS_PER_PRICE)


def surcharge_with(surcharge: int | None, event: Compaction) -> int | None:
    """Return by how much compactions make the next call more expensive, this one included; summaries are billed separately."""
    if surcharge is None or event.price is None or event.cost is None:
        return None
    return surcharge + event.price - event.cost


def cost_of_answer(state: State, response: Response) -> int | None:
    """Return what the call under way cost, with further calls that the provider made for it."""
    if response.usage is None or response.prompt <= 0 or not response.list_price:
        return None
    call = state.call
    return cost_of_all(response.calls, call.model if call else state.model, call.at if call else None)


def cost_of_summaries(
    state: State, setup: Setup, written: Iterable[Written], *, lost: bool, at: float
) -> int | None:
    """Return what calls for summaries cost, useless ones included; `lost` if one failed that may have been billed."""
    if lost:
        return None
    models = (state.model, *setup.chain.models, *(model for model in setup.summary_models if model))
    return cost_of_written(written, Registry(models), at)


def cost_of_written(summaries: Iterable[Written], registry: Registry, at: float) -> int | None:
    """Return what the calls that wrote these summaries cost; one without a model took no call."""
    total = 0
    for written in summaries:
        if not written.model and written.usage is None:
            continue
        found = registry.match(written.model)
        if written.usage is None or found.how not in _PRICED:
            return None
        cost = cost_of(written.usage, found.model, at)
        if cost is None:
            return None
        total += cost
    return total


def prompt_tokens_of(summaries: Iterable[Written]) -> int:
    """Return the total size of the prompts that asked for these summaries, as far as providers reported it."""
    return sum(written.usage.prompt for written in summaries if written.usage is not None)


def both(one: int | None, other: int | None) -> int | None:
    """Return the sum of two costs; None if one is unknown."""
    return None if one is None or other is None else one + other
