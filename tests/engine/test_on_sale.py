"""What plans cost: hand-computed, at prices of 10, 1 and 12.5 dollars per million tokens (input, read, write)."""

from lowwater.economics.rent import Meter
from lowwater.economics.warmth import Warmth
from lowwater.engine.laying import lay_out
from lowwater.engine.on_sale import put_on_sale
from lowwater.engine.pricing import Pricing
from lowwater.values.chain import Chain
from lowwater.values.groups import Span
from lowwater.values.market import Bargain
from lowwater.values.message import Message, Role
from lowwater.values.model import CacheRules, Marks, Model, Prices
from lowwater.values.parts import Text
from lowwater.values.proposal import Proposal, Target
from lowwater.values.view import Item, Original, View

PRICES = Prices(input=10_000_000, cache_read=1_000_000, cache_write=12_500_000, output=50_000_000)
MODEL = Model(
    name="m",
    provider="p",
    family="",
    context_length=200_000,
    cache=CacheRules(matching=Marks(max_marks=4), ttl=300),
    prices=PRICES,
)


def items() -> list[Item]:
    """Ten items of 1,000 tokens; every second one is a result."""
    roles: tuple[Role, ...] = ("assistant", "tool")
    return [
        Original(
            number=at + 1, message=Message(role=roles[at % 2], parts=(Text(text=str(at)),)), tokens=1_000
        )
        for at in range(10)
    ]


def pricing(*, warm: bool = True, calls: int = 0, summarizer: Model | None = None) -> Pricing:
    """A preamble of 500 tokens; all ten items outside the tail; all of it in the cache, or none."""
    view = View(items=Chain(items()), tokens=10_000, system=b'"s"', preamble_tokens=500)
    laid = lay_out(view, start=b"m", prompt=10_500, scale=1.0, marks={})
    ends = laid.layout.ends
    stored = tuple(range(len(ends))) if warm else ()
    meter = Meter().left_tail(10)
    for _ in range(calls):
        meter = meter.advance(PRICES.cache_read)
    return Pricing(
        items=view.items,
        laid=laid,
        prompt=10_500,
        scale=1.0,
        model=MODEL,
        currency="usd",
        at=0.0,
        warmth=Warmth(positions=tuple(ends[at] for at in stored), blocks=stored, ends=ends),
        lifetime="short",
        meter=meter,
        tail=10,
        summarizers=(summarizer,) if summarizer else (),
    )


def elision(*at: int) -> Proposal:
    targets = tuple(Target(item=item, path=(0,), tokens=1_000) for item in at)
    return Proposal(
        mechanism="dedupe", removes=900 * len(at), first_changed=at[0], survives=0, targets=targets
    )


def on_sale(where: Pricing, *edits: Proposal, summaries: tuple[Proposal, ...] = ()) -> list[Bargain]:
    return put_on_sale(edits, summaries, where, digests=True)


def test_the_price_of_a_prune_is_the_next_call_with_it_less_the_next_call_without_it() -> None:
    (plan,) = on_sale(pricing(calls=3), elision(7))
    # Kept: 10,500 read. With it: 7,500 read before item 7, and 10,500 - 900 - 7,500 = 2,100 written.
    bare = (7_500 * 1 + 2_100 * 12.5 - 10_500 * 1) * 1_000
    assert plan.price - plan.rework == round(bare)
    assert (plan.kept, plan.rewritten, plan.removes) == (7_500, 2_100, 900)
    assert plan.rent == 3 * 900 * 1_000
    assert plan.saves == 900 * 1_000


def test_on_a_cold_call_it_saves_the_writes_at_once() -> None:
    (plan,) = on_sale(pricing(warm=False), elision(7))
    assert plan.price - plan.rework == round(-900 * 12.5 * 1_000)
    assert plan.kept == 0


def test_where_to_start_is_chosen_by_price_until_all_of_it_is_due() -> None:
    few = on_sale(pricing(calls=1), elision(1, 3, 5, 7, 9))[0]
    many = on_sale(pricing(calls=60), elision(1, 3, 5, 7, 9))[0]
    assert few.is_due
    assert [target.item for target in few.plan[0].targets] == [9], "nothing behind it has to be written again"
    assert many.is_due
    assert [target.item for target in many.plan[0].targets] == [1, 3, 5, 7, 9]
    assert many.plan[0].first_changed == 1
    assert many.removes == 4_500


def test_what_is_worth_more_than_its_tokens_stays() -> None:
    """A rework of a tenth of the chance at 10,500 tokens read is more than a few tokens cost."""
    tiny = Proposal(
        mechanism="images",
        removes=150,
        first_changed=5,
        survives=0,
        targets=(Target(item=5, path=(0,), tokens=150),),
    )
    plans = on_sale(pricing(), tiny)
    assert all(plan.rework <= plan.removes * 12_500 for plan in plans)


def test_a_summary_costs_its_call_too_and_takes_the_edits_behind_it_along() -> None:
    span = Span(start=2, stop=6)
    summary = Proposal(mechanism="summarize", removes=3_500, first_changed=2, survives=0, span=span, calls=1)
    plans = on_sale(pricing(summarizer=MODEL), elision(3, 7), summaries=(summary,))
    replacing = next(plan for plan in plans if plan.summary)
    # Riding reads the 10,500, and takes 400 of instruction and 500 written; 4,400 alone would cost more.
    assert replacing.summary == (10_500 * 1 + 400 * 10 + 500 * 50) * 1_000
    assert [step.mechanism for step in replacing.plan] == ["dedupe", "summarize"]
    assert [target.item for target in replacing.plan[0].targets] == [7]
    assert replacing.removes == 3_500 + 900
    assert replacing.kept == 2_500


def test_without_a_model_no_summary_is_on_sale() -> None:
    span = Span(start=2, stop=6)
    summary = Proposal(mechanism="summarize", removes=3_500, first_changed=2, survives=0, span=span, calls=1)
    assert not [plan for plan in on_sale(pricing(), summaries=(summary,)) if plan.plan]


def test_the_market_is_quiet_while_the_tail_alone_would_cost_more() -> None:
    shorter = pricing(calls=1)
    shorter = type(shorter)(
        **{name: getattr(shorter, name) for name in shorter.__struct_fields__} | {"tail": 2}
    )
    market = shorter.market()
    assert market.most_rent == 2_000 * 1_000
    assert market.least_price == round(8_000 * 11.5 * 1_000)
    assert market.is_quiet
    assert market.kept == 10_500 * 1_000
