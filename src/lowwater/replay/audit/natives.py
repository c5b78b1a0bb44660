"""The client's own compactions: what each cost, and what it saved until the next summary or the end."""

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.api_calls import Usage
from lowwater.core.costs.prices import cost_at, nano_dollars
from lowwater.logs.recording import Recording
from lowwater.replay.audit.audited import DayOf, Native
from lowwater.replay.audit.calls import SUMMARY, Call
from lowwater.replay.audit.causes import Miss, is_expired, lifetime_after
from lowwater.replay.audit.sized import characters

_PLACEHOLDER = 12
"""What stands for a result that was cleared, in tokens, or a little less."""
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
            summaries = (later for later in compacted if later > order and _is_summary(calls[metered[later]]))
            served = [calls[later] for later in metered[order : next(summaries, len(metered))]]
            before = calls[metered[order - 1]]
            moved = _moved(recording, before, call, ratio)
            native = _native(before, served, misses[at], moved, turn=order, long=long)
            yield replace(native, day="" if native.at is None else day_of(native.at))
        if call.usage is not None:
            long = lifetime_after(call.usage, long=long)


class _Moved(Struct, frozen=True, kw_only=True):
    """What a compaction took out of the prompt and what a model wrote for it, in tokens."""

    removed: int
    written: int = 0


def _is_summary(call: Call) -> bool:
    return call.compaction is not None and call.compaction.kind == "summary"


def _moved(recording: Recording, before: Call, call: Call, ratio: float) -> _Moved:
    """Return what a compaction moved: the prompts around it tell of a summary; of a prune what was cleared does."""
    assert call.compaction is not None
    assert before.usage is not None
    assert call.usage is not None
    shrunk = max(0, before.usage.prompt - call.usage.prompt)
    if call.compaction.kind == "summary":
        return _Moved(removed=shrunk, written=_summary_tokens(recording, call, ratio))
    if call.compaction.removed is not None:
        return _Moved(removed=call.compaction.removed)
    cleared = set(call.compaction.cleared)
    sizes = [
        max(0, round(len(result.text) * ratio) - _PLACEHOLDER)
        for each in recording.messages[: call.index]
        for result in each.message.results
        if result.call_id in cleared
    ]
    return _Moved(removed=max(shrunk, sum(sizes)))


def _native(
    before: Call, served: Sequence[Call], miss: Miss | None, moved: _Moved, *, turn: int, long: bool
) -> Native:
    call = served[0]
    assert call.compaction is not None
    assert before.usage is not None
    assert call.usage is not None
    expired = is_expired(before, call, long=long)
    rewritten = 0 if expired or miss is None else miss.cost
    saved = [_saved(each, moved.removed, was_warm=not expired if each is call else None) for each in served]
    asked: int | None = 0
    if _is_summary(call):
        asked = _recorded(call) if call.others else _summary_cost(before, moved.written, expired=expired)
    return Native(
        at=call.compaction.at if call.compaction.at is not None else call.at,
        trigger=call.compaction.trigger,
        call=turn,
        before=before.usage.prompt,
        after=call.usage.prompt,
        served=len(served),
        kind=call.compaction.kind,
        summary_cost=asked,
        summary_recorded=bool(call.others) and _is_summary(call),
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
