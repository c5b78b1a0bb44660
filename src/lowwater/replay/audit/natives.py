"""The client's own compactions: what each cost, and what it saved until the next one or the end."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from lowwater.economics.bill import cost_at, nano_dollars
from lowwater.replay.audit.audited import DayOf, Native
from lowwater.replay.audit.calls import SUMMARY, Call
from lowwater.replay.audit.causes import Miss, is_expired, lifetime_after
from lowwater.replay.audit.sized import characters
from lowwater.values.recording import Recording
from lowwater.values.usage import Usage

_SUMMARY_TOKENS = 3_000
"""What a summary is taken to be where its text is not recorded."""


def natives_of(
    recording: Recording, calls: Sequence[Call], misses: Sequence[Miss | None], *, ratio: float, day_of: DayOf
) -> Iterator[Native]:
    """Yield the compactions between calls whose prompts were recorded; `ratio` is tokens per character."""
    metered = [at for at, call in enumerate(calls) if call.usage is not None]
    compacted = [order for order, at in enumerate(metered) if order and calls[at].compaction is not None]
    long = False
    for order, at in enumerate(metered):
        call = calls[at]
        if order in compacted and not call.copied:
            end = next((later for later in compacted if later > order), len(metered))
            served = [calls[later] for later in metered[order:end]]
            written = _summary_tokens(recording, call, ratio)
            before = calls[metered[order - 1]]
            native = _native(before, served, misses[at], turn=order, written=written, long=long)
            yield replace(native, day="" if native.at is None else day_of(native.at))
        if call.usage is not None:
            long = lifetime_after(call.usage, long=long)


def _native(
    before: Call, served: Sequence[Call], miss: Miss | None, *, turn: int, written: int, long: bool
) -> Native:
    call = served[0]
    assert call.compaction is not None
    assert before.usage is not None
    assert call.usage is not None
    expired = is_expired(before, call, long=long)
    rewritten = 0 if expired or miss is None else miss.cost
    removed = max(0, before.usage.prompt - call.usage.prompt)
    saved = [_saved(each, removed, was_warm=not expired if each is call else None) for each in served]
    return Native(
        at=call.compaction.at if call.compaction.at is not None else call.at,
        trigger=call.compaction.trigger,
        call=turn,
        before=before.usage.prompt,
        after=call.usage.prompt,
        served=len(served),
        summary_cost=_recorded(call) if call.others else _summary_cost(before, written, expired=expired),
        summary_recorded=bool(call.others),
        rewrite_cost=None if call.prices is None else rewritten,
        saved=_sum(saved),
    )


def _summary_tokens(recording: Recording, call: Call, ratio: float) -> int:
    assert call.compaction is not None
    behind = recording.messages[call.compaction.index : call.index]
    found = round(sum(characters(each.message) for each in behind if each.kind == SUMMARY) * ratio)
    return found or _SUMMARY_TOKENS


def _recorded(call: Call) -> int | None:
    """Return what was billed beside the call after a compaction: that is where clients who record it put the summary."""
    priced = [(usage, call.prices_of(usage)) for usage in call.others]
    return _sum([None if prices is None else cost_at(usage, prices) for usage, prices in priced])


def _summary_cost(before: Call, written: int, *, expired: bool) -> int | None:
    """Return what asking for the summary cost, had the request ridden the prompt of the call before."""
    if before.prices is None or before.usage is None:
        return None
    prompt = before.usage.prompt
    asked = Usage(uncached=prompt, output=written) if expired else Usage(cache_read=prompt, output=written)
    return cost_at(asked, before.prices)


def _saved(call: Call, removed: int, *, was_warm: bool | None) -> int | None:
    """Return what a call would have paid for the tokens removed: to read them if it read anything at all."""
    prices, usage = call.prices, call.usage
    if prices is None or usage is None:
        return None
    is_warm = usage.cache_read > 0 if was_warm is None else was_warm
    if is_warm:
        return nano_dollars(removed * prices.cache_read)
    long = prices.cache_write if prices.cache_write_long is None else prices.cache_write_long
    written = usage.cache_write_long > usage.cache_write
    return nano_dollars(
        removed * (long if written else prices.cache_write if usage.cache_write else prices.input)
    )


def _sum(amounts: Sequence[int | None]) -> int | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None
