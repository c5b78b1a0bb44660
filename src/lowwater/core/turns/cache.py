"""What a session believes about its provider's cache: how a call is laid out, what should be cached, and what usage corrects."""

from bisect import bisect_left

from msgspec.structs import replace

from lowwater.core.api_calls import Response
from lowwater.core.cache.belief import (
    Layout,
    MarkLifetime,
    Warmth,
    after_call,
    expected_usage,
    warmth,
    written_for,
)
from lowwater.core.cache.marks import (
    WINDOW,
    CacheMarks,
    Lifetime,
    marks_for,
    place_marks,
    seams_of,
    settle_ttl,
)
from lowwater.core.costs.prices import with_fallback_prices
from lowwater.core.decisions import scaled
from lowwater.core.messages import Message, Text, Thinking, ToolCall, ToolResult
from lowwater.core.turns.state import (
    PREAMBLE,
    PendingCall,
    PromptLayout,
    Setup,
    State,
    key_behind,
    lay_out_prompt,
)
from lowwater.core.view import Summary, join_neighbours, neighbours_to_join

_REMEMBERED_GAPS = WINDOW
"""How many times between calls are remembered, to choose the lifetime of cache marks."""
_MOST_RUNS = 128
"""How many runs of messages a rent meter may have before those are dropped that the view no longer shows."""


def begin_call(state: State, setup: Setup, at: float) -> State:
    """Return the state with a call under way, and what it is expected to be billed."""
    current = prompt_layout(state, setup)
    expected = expected_usage(state.belief, current.layout, state.model, at)
    removed = removed_from(state)
    call = PendingCall(
        at=at,
        layout=current.layout,
        expected=expected,
        newest_outside_tail=state.newest_outside_tail,
        model=state.model,
        counted=state.counted,
        removed=removed,
        removed_before=min(state.removed_tokens, removed),
        compaction_surcharge=state.compaction_surcharge,
        removed_behind=_unchanged(state, current) if removed else 0,
        is_settled=_is_settled(state),
        decision=state.decision.because.code if state.decision else "",
        thinking_off=state.thinking_off,
    )
    return replace(state, prompt_layout=current, call=call)


def _unchanged(state: State, current: PromptLayout) -> int:
    """Return the token position up to which compactions have changed nothing."""
    starts, first = current.starts(), state.totals.earliest_changed
    return starts[min(first or 0, len(starts) - 1)]


def _is_settled(state: State) -> bool:
    """Return whether two calls were answered since the last compaction."""
    compaction, called_at, gaps = state.last_compaction, state.called_at, state.gaps
    if compaction is None:
        return True
    return called_at is not None and bool(gaps) and compaction.at <= called_at - gaps[-1]


def finish_call(state: State, response: Response) -> State:
    """Return the state after the call under way: usage corrects the belief, and tokens outside the tail pay rent."""
    call = state.call
    if call is None:
        return state
    gap = () if state.called_at is None else (call.at - state.called_at,)
    after = after_call(
        state.belief,
        call.layout,
        call.model,
        call.at,
        reported=response.usage if response.prompt > 0 and response.reports_cache else None,
        output_key=key_behind(call.layout, response.message),
        output_tokens=response.usage.output if response.usage else 0,
        miss_reason=response.miss_reason,
    )
    prices = with_fallback_prices(call.model)[0].prices_at(call.layout.total, call.at)
    meter = state.meter.left_tail(call.newest_outside_tail)
    if len(meter.numbers) > _MOST_RUNS:
        # In a long session most messages are in summaries by now, and pay no rent any more.
        meter = meter.kept_for(
            item.number for item in state.ledger.view.items if not isinstance(item, Summary)
        )
    return replace(
        state,
        call=None,
        called_at=call.at,
        compaction_surcharge=0,
        removed_tokens=call.removed,
        gaps=(*state.gaps, *gap)[-_REMEMBERED_GAPS:],
        belief=after.belief,
        belief_error=after.error,
        totals=replace(state.totals, misjudged=state.totals.misjudged + after.error.tokens),
        meter=meter.advance(prices.cache_read) if prices else meter,
    )


def prompt_layout(state: State, setup: Setup) -> PromptLayout:
    """Return the next request in blocks as the cache sees it, if the view is sent as it is now."""
    view, layout = state.ledger.view, state.prompt_layout
    start = b"\0".join((state.route.model.encode(), state.route.base_url.encode(), state.parameters))
    if layout is not None and layout.view is view and (layout.prompt, layout.start) == (state.prompt, start):
        return layout
    marks, places = marks_of(state, setup), dict[int, MarkLifetime]()
    if marks is not None:
        apart = view.messages
        folds = neighbours_to_join(apart, view.items)
        messages = join_neighbours(apart, folds)
        lasts = [at for at in range(len(apart)) if at + 1 not in folds]
        shape = [max(1, len(message.parts)) for message in messages]
        placed = place_marks(
            shape,
            seams=seams_of(state.ledger, apart).moved(lambda at: bisect_left(lasts, at)),
            most=marks.on_messages,
            lookback=marks.lookback,
            carries=lambda at: _carries(messages[at], marks),
        )
        places = dict.fromkeys((PREAMBLE, *(lasts[at] for at in placed)), lifetime_of(marks))
    return lay_out_prompt(
        view,
        start=start,
        prompt=state.prompt,
        scale=state.scale,
        marks=places,
        cache_marks=marks,
        before=layout,
    )


def _carries(message: Message, marks: CacheMarks) -> bool:
    """Return whether a provider honours a mark on this message: in the chat format only on a text at its end."""
    if marks.breakpoints:
        return message.role != "assistant"
    if not marks.in_chat:
        return True
    content = [part for part in message.parts if not isinstance(part, ToolCall | Thinking)]
    match content[-1:]:
        case [Text(text=text)]:
            return bool(text.strip())
        case [ToolResult() as result]:
            return marks.on_tools and bool(result.text.strip()) and isinstance(result.parts[-1], Text)
        case _:
            return False


def warmth_of(state: State, layout: Layout, at: float) -> Warmth:
    """Return how much of a layout should still be in the cache."""
    return warmth(state.belief, layout, state.model.cache, at)


def marks_of(state: State, setup: Setup) -> CacheMarks | None:
    """Return the cache marks that the provider of the model in use accepts; None if it accepts none."""
    ttl = setup.settings.model.cache_ttl
    lifetime: Lifetime = _settled_lifetime(state) if ttl == "auto" else "short"
    route = state.route
    return marks_for(state.model, name=route.model, base_url=route.base_url, ttl=ttl, lifetime=lifetime)


def lifetime_of(marks: CacheMarks | None) -> MarkLifetime:
    """Return the lifetime that marks ask for."""
    return "long" if marks is not None and marks.ttl == "1h" else "short"


def _settled_lifetime(state: State) -> Lifetime:
    """Return the lifetime that is cheaper, given the gaps between calls so far."""
    prices = with_fallback_prices(state.model)[0].prices_at(state.prompt)
    assert prices is not None
    growth = round(state.growth)
    now = written_for(state.belief)
    return settle_ttl(state.gaps, prices, state.model.cache, prompt=state.prompt, growth=growth, now=now)


def removed_from(state: State) -> int:
    """Return how many of the model's tokens compactions have removed from the view."""
    view = state.ledger.view
    return scaled(view.original_tokens - view.tokens, state.scale)
