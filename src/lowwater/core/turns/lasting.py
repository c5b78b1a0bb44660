"""Which plan to buy where a size limit (wall, ceiling, byte limit) forces a compaction: the one that costs least per call until the next.

The mildest plan that fits soon has to be followed by another, and each of them writes most of the view again. How many calls a
plan lasts follows from what it leaves and how fast prompts grow; what it costs over these calls is its price (with summary,
disturbance and expected rework) and reading what it leaves. docs/economics.md ("Where a size forces it") has the arithmetic.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from lowwater.core.costs.prices import nano_dollars
from lowwater.core.decisions import PricedPlan
from lowwater.core.mechanisms import summarize
from lowwater.core.mechanisms.mechanism import ProposalRequest, Zones, newest_group, survey
from lowwater.core.mechanisms.registry import propose_edits, shares_lost
from lowwater.core.turns.candidates import plans_with_edits, plans_with_summary
from lowwater.core.turns.decision_context import DecisionInputs
from lowwater.core.turns.pricing import PricingContext

_TAILS = (0.5, 0.25, 0.0)
"""Shares of the usual tail to try keeping, besides all of it: the newest messages alone may fill a small window."""


def lasting_plan(inputs: DecisionInputs) -> PricedPlan | None:
    """Return the plan that costs least per call until the next is forced; None if no plan leaves room for several turns."""
    pricing, limits = inputs.pricing, inputs.now.limits
    assert pricing is not None
    if not pricing.calls:
        return None
    fitting = [
        plan for plan in _plans(inputs.request, pricing) if pricing.prompt - plan.removes <= limits.roomy
    ]
    growth = max(1, limits.growth)
    return min(
        fitting, key=lambda plan: cost_per_call(plan, pricing, most=limits.most, growth=growth), default=None
    )


def cost_per_call(plan: PricedPlan, pricing: PricingContext, *, most: int, growth: int) -> float:
    """Return the average cost of a call with this plan, in nano-dollars, until the prompt reaches `most` again.

    A session is assumed as likely as not to last for as many more calls as it has had, so a plan is credited with no more.
    """
    after = max(0, pricing.prompt - plan.removes)
    calls = max(1, min((most - after) // growth, pricing.calls))
    read = pricing.prices_of(after).cache_read
    first = pricing.purchase(first_changed=pricing.prompt, removes=0).cost_kept + plan.price
    later = nano_dollars(read * ((calls - 1) * after + growth * calls * (calls - 1) // 2))
    return (first + later) / calls


def _plans(request: ProposalRequest, pricing: PricingContext) -> Iterator[PricedPlan]:
    """Yield what can be bought: edits and summaries of the middle, and summaries that leave ever less of the tail."""
    request = replace(request, items=tuple(request.items), must_fit=False)
    usual, lost = survey(request).zones, shares_lost(request)
    edits = [offer for offer in propose_edits(request, usual) if offer.mechanism in lost]
    yield from plans_with_edits(edits, pricing, lost=lost)
    yield from plans_with_summary(edits, summarize.propose_priced(request), pricing, lost=lost)
    wider = [summarize.propose_wider(request, zones) for zones in _with_smaller_tails(request, usual)]
    yield from plans_with_summary([], [offer for offer in wider if offer is not None], pricing, lost=lost)


def _with_smaller_tails(request: ProposalRequest, usual: Zones) -> Iterator[Zones]:
    """Yield zones with ever smaller tails, which all keep the newest exchange; a large head is made smaller, too."""
    items = request.items
    newest, tail = newest_group(items, usual), usual.tail
    whole = left = sum(item.tokens for item in items[usual.tail : newest])
    for share in _TAILS:
        for cut in usual.cuts:
            if tail < cut <= newest and left > share * whole:
                left -= sum(item.tokens for item in items[tail:cut])
                tail = cut
        yield summarize.with_small_head(request, Zones(head=usual.head, tail=tail, cuts=usual.cuts))
