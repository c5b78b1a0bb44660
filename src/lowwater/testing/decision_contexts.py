"""Decision contexts for testing policies: built in one line, or drawn by Hypothesis."""

from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from lowwater.core.decisions import Candidates, Currency, DecisionContext, Past, PricedPlan, Warm
from lowwater.core.limits import derive_limits
from lowwater.core.messages import Span
from lowwater.core.proposals import Proposal
from lowwater.settings import CompressionSettings

EDITS = ("dedupe", "elide", "reasoning", "images", "shorten")
REPLACING = ("summarize", "leaf", "condense", "summarize_all")
NOON = 1_800_000_000.0
_TIMES = st.floats(min_value=NOON - 100_000, max_value=NOON + 100_000)
_TOKENS = st.integers(min_value=0, max_value=1_500_000)
pasts = st.builds(
    Past,
    compactions=st.integers(min_value=0, max_value=50),
    turns_since=st.integers(min_value=0, max_value=500),
    fruitless=st.integers(min_value=0, max_value=50),
    floor=_TOKENS,
    fruitless_at=st.none() | _TIMES,
    undelivered=_TOKENS,
    failed_at=st.none() | _TIMES,
    failures=st.integers(min_value=0, max_value=2_000),
)
"""Any history of compactions and failures, likely or not."""


def offer(mechanism: str, removes: int, *, survives: int = 0, span: Span | None = None) -> Proposal:
    """Return a mechanism's proposal; one that replaces messages needs a call of a model and spans the middle."""
    replacing = mechanism in REPLACING
    return Proposal(
        mechanism=mechanism,
        removes=removes,
        first_changed=4,
        survives=survives,
        span=span or (Span(start=4, stop=40) if replacing else None),
        calls=1 if replacing else 0,
    )


def example_context(
    prompt: int,
    *offers: Proposal,
    context: int = 128_000,
    compression: CompressionSettings | None = None,
    floor: bool = True,
    cliff: int | None = None,
    max_bytes: int | None = None,
    **changes: Any,  # noqa: ANN401  # the fields of DecisionContext, each with its own type
) -> DecisionContext:
    """Return the context of a decision in a session of 60 messages, with the limits of a window of `context` tokens."""
    limits = derive_limits(context, compression or CompressionSettings(), floor=floor)
    limits = replace(limits, cliff=cliff, max_bytes=max_bytes)
    fields: dict[str, Any] = {"at": NOON, "messages": 60, "outside_tail": prompt // 2, "limits": limits}
    return DecisionContext(prompt=prompt, proposals=offers, **fields | changes)


def priced_plan(
    *plan: Proposal,
    rent: int = 0,
    price: int = 20_000_000,
    saves: int = 2_000_000,
    should_buy_early: bool = False,
    **others: int,
) -> PricedPlan:
    """Return a priced plan, with money in nano-dollars."""
    removes = sum(proposal.removes for proposal in plan)
    fields = {"removes": removes, "still_cached": 10_000, "rewritten": 20_000} | others
    return PricedPlan(
        plan=plan, rent=rent, price=price, saves=saves, should_buy_early=should_buy_early, **fields
    )


def candidates(
    *plans: PricedPlan,
    warm: Warm = "warm",
    currency: Currency = "usd",
    most_rent: int | None = None,
    least_price: int | None = None,
    is_from_earlier_turn: bool = False,
    paused_calls: int = 0,
    lasting: PricedPlan | None = None,
) -> Candidates:
    """Return candidates with these plans."""
    return Candidates(
        currency=currency,
        warm=warm,
        hit=60_000,
        unchanged_cost=30_000_000,
        plans=plans,
        most_rent=most_rent,
        least_price=least_price,
        is_from_earlier_turn=is_from_earlier_turn,
        paused_calls=paused_calls,
        lasting=lasting,
    )


proposals = st.lists(
    st.builds(
        offer,
        st.sampled_from((*EDITS, *REPLACING)),
        st.integers(min_value=-5_000, max_value=400_000),
        survives=_TOKENS,
    ),
    max_size=8,
).map(tuple)
"""Any proposals, including ones that would remove nothing."""


@st.composite
def decision_contexts(draw: st.DrawFn) -> DecisionContext:
    """Draw any state of a session: any window, size, proposals and past, with NaN and infinity among the numbers."""
    compression = CompressionSettings(threshold=draw(st.floats(0, 1)), target_ratio=draw(st.floats(0.1, 0.8)))
    context = draw(st.integers(min_value=1, max_value=2_000_000))
    return example_context(
        draw(st.integers(min_value=1, max_value=2 * context)),
        *draw(proposals),
        context=context,
        compression=compression,
        floor=draw(st.booleans()),
        at=draw(_TIMES),
        messages=draw(st.integers(min_value=0, max_value=2_000)),
        outside_tail=draw(_TOKENS),
        scale=draw(st.floats(0.2, 4.0) | st.sampled_from((float("nan"), float("inf"), 0.0))),
        has_budget=draw(st.booleans()),
        growth=draw(st.floats(allow_nan=True, allow_infinity=True)),
        past=draw(pasts),
    )
