"""The plans that a policy can buy, each with its price, the rent paid so far and what it would save per call.

`candidate_plans` builds them from the mechanisms' proposals; `Pricing` has everything that a price depends on.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.cache.belief import Warmth
from lowwater.core.cache.layout import Lifetime
from lowwater.core.costs.prices import (
    Purchase,
    SummaryCall,
    SummaryWork,
    nano_dollars,
    native_call,
    price_of,
    summary_calls,
)
from lowwater.core.costs.rent import Meter, Outlook
from lowwater.core.decisions import Candidates, Currency, PricedPlan, Warm, best_of, scaled
from lowwater.core.mechanisms import native
from lowwater.core.mechanisms.reuse import chances_of_use
from lowwater.core.models.model import Model, Prices
from lowwater.core.proposals import Proposal, Target
from lowwater.core.turns.state import PromptLayout
from lowwater.core.view import Item, Summary

_INSTRUCTION = 400
"""Tokens of the instruction that asks for a summary."""
LEAST_SUMMARY = 300
"""Tokens that every summary is assumed to have at least."""
_SURE = 0.99
"""The probability from which on the cache counts as warm."""
_LEAST_PART = 100
"""A plan that removes less than this fraction (one part in so many) of the prompt is dropped: rewrites come in batches."""
_MAX_CUTS = 48
"""How many places to start editing at are priced, spaced evenly by the tokens that they remove."""
_LOSSES = {"elide": 0.15, "dedupe": 0.02, "reasoning": 0.0, "images": 0.3}
"""The share of later uses of a removed part that its replacement no longer serves, by mechanism (measured: `make bench-recall`)."""
_LOSS_WITHOUT_DIGEST = 0.8
_LOSS_BY_SUMMARY = 0.5


class Pricing(Struct, frozen=True, kw_only=True):
    """Everything that a price depends on; sizes are in the model's tokens."""

    items: Sequence[Item]
    laid: PromptLayout
    prompt: int
    scale: float
    model: Model
    """With its prices, or assumed ones if they are not known."""
    currency: Currency
    at: float
    warmth: Warmth
    lifetime: Lifetime
    meter: Meter
    tail: int
    """The index of the first item of the tail."""
    sent: int = 0
    """The size of the last prompt."""
    calls: int = 0
    """Calls so far; before the first, nothing is known about the session."""
    whole: int = 0
    """The size of all messages of the session, uncompacted."""
    messages: int = 0
    """How many messages those are."""
    summarizers: tuple[Model | None, ...] = ()
    """The models that write summaries, by rung; None where it is not known. The session's own model can extend its cached prefix."""

    @property
    def prices(self) -> Prices:
        """The prices of the prompt as it is."""
        return self.prices_of(self.prompt)

    @property
    def hit(self) -> int:
        """Tokens of the prompt as it is that should be read from the cache."""
        return min(self.prompt, self.warmth.expected())

    @property
    def preamble(self) -> int:
        """The token position at which the first item starts."""
        return self.laid.layout.blocks[0].tokens

    @property
    def outlook(self) -> Outlook | None:
        """What to expect of the session's future, given its calls so far; None before the first call."""
        if not self.calls:
            return None
        return Outlook(
            calls=self.calls, growth=nano_dollars(self.whole * self.prices.cache_read // self.calls)
        )

    def usual_surcharge(self, tail_start: int) -> int:
        """Return how much more than now a purchase usually costs, because more of the tail is usually in the cache.

        Usually the whole tail is cached but for what the last call added, and its messages are of average length.
        """
        if not self.calls:
            return 0
        in_tail = len(self.items) - self.tail
        usually_cached = self.whole * in_tail // max(1, self.messages) - self.whole // self.calls
        fresh = max(0, self.prices.cache_write - self.prices.cache_read)
        return nano_dollars(max(0, usually_cached - max(0, self.hit - tail_start)) * fresh)

    def prices_of(self, prompt: int) -> Prices:
        """Return the prices of a prompt of this size."""
        prices = self.model.prices_at(prompt, self.at)
        assert prices is not None, "unknown prices were replaced by assumed ones"
        return prices

    def starts(self) -> list[int]:
        """Return the token position at which each item starts, and where the last one ends."""
        return self.laid.starts()

    def rent(self, item: Item, tokens: int) -> int:
        """Return the rent paid for carrying `tokens` of an item since it left the tail."""
        number = item.sources[-1].last if isinstance(item, Summary) else item.number
        return self.meter.rent(number, tokens)

    def rework(self, chance: float, tokens: int) -> int:
        """Return the expected cost of recalling `tokens` that are needed again with this probability: one more call and a cache write."""
        recall = self.prompt * self.prices.cache_read + tokens * self.prices.cache_write
        return nano_dollars(round(chance * recall))

    def risk(self, price: int, *, first_changed: int) -> int:
        """Return the price of a change in the worst case: all of the last prompt is in the cache after all."""
        if price <= 0:
            return price
        believed = self.hit - min(first_changed, self.warmth.expected(first_changed))
        lost = min(self.sent, self.prompt) - min(first_changed, self.sent)
        fresh = max(0, self.prices.cache_write - self.prices.cache_read)
        return price + nano_dollars(max(0, lost - believed) * fresh)

    def purchase(self, *, first_changed: int, removes: int, summary_cost: int = 0) -> Purchase:
        """Return the price of removing `removes` tokens behind the position `first_changed`."""
        return price_of(
            self.prices,
            self.prices_of(max(0, self.prompt - removes)),
            prompt=self.prompt,
            hit=self.hit,
            hit_after=min(first_changed, self.warmth.expected(first_changed)),
            removes=removes,
            summary_cost=summary_cost,
            lifetime=self.lifetime,
        )

    def summary_calls(self, *, replaced: int, summary: int) -> list[tuple[SummaryCall, int]]:
        """Return the possible calls for a summary with the rung of their summarizer, the cheapest first; those that fit its window."""
        work = SummaryWork(
            prompt=self.prompt, hit=self.hit, replaced=replaced, instruction=_INSTRUCTION, summary=summary
        )
        calls: list[tuple[SummaryCall, int]] = []
        for rung, writer in enumerate(self.summarizers):
            other = self._writer(writer)
            ways = summary_calls(work, self.model, other=other, at=self.at)
            can_extend = writer is not None and writer.name == self.model.name
            calls += [(way, rung) for way in ways if can_extend or way.how == "other"]
        known = [(way, rung) for way, rung in calls if way.cost is not None]
        return sorted(known, key=lambda call: (call[0].cost or 0, call[1]))

    def native_call(self, *, upto: int, summary: int) -> SummaryCall | None:
        """Return the call that has the provider compact the first `upto` tokens of the prompt by itself; None if it cannot."""
        hit = min(upto, self.warmth.expected(upto))
        work = SummaryWork(
            prompt=upto, hit=hit, replaced=upto, instruction=_INSTRUCTION, summary=max(summary, LEAST_SUMMARY)
        )
        return native_call(work, self.model, lifetime=self.lifetime, at=self.at)

    def _writer(self, writer: Model | None) -> Model:
        """Return the model that is billed for a summary; one with unknown prices is assumed to cost as much as the session's own."""
        if writer is None:
            return self.model
        if self.currency == "usd" and writer.prices is not None:
            return writer
        return replace(self.model, context_length=writer.context_length, max_output=writer.max_output)

    def candidates(self, plans: Sequence[PricedPlan] = ()) -> Candidates:
        """Return these plans as candidates, with bounds that tell whether any plan at all could be due."""
        middle = scaled(sum(item.tokens for item in self.items[: self.tail]), self.scale)
        warm = self._warm()
        return Candidates(
            currency=self.currency,
            warm=warm,
            hit=self.hit,
            kept=self.purchase(first_changed=self.prompt, removes=0).cost_kept,
            bargains=tuple(plans),
            most_rent=self.meter.most_rent(middle),
            least_price=self._least_price(middle) if warm == "warm" else None,
        )

    def _warm(self) -> Warm:
        if not self.hit:
            return "cold"
        return "warm" if self.warmth.chance >= _SURE else "unsure"

    def _least_price(self, middle: int) -> int | None:
        """Return a lower bound for the price of any plan: the cached part of the tail has to be written again.

        None if there is no such bound: something before the tail is not cached, or the prompt is above a price cliff, so that
        removing may save money at once. None, too, if a plan at that price would be bought early.
        """
        tail = self.preamble + middle
        if self.hit < tail or self.prices != self.prices_of(0):
            return None
        fresh = max(0, self.prices.cache_write - self.prices.cache_read)
        least, outlook = nano_dollars((self.hit - tail) * fresh), self.outlook
        saves = nano_dollars(middle * self.prices.cache_read)
        usual = least + self.usual_surcharge(tail)
        if outlook is not None and outlook.should_buy_early(saves=saves, price=least, usual=usual):
            return None
        return least


class _Piece(Struct, frozen=True, kw_only=True):
    """One part that an edit would replace; sizes in the model's tokens, money in nano-dollars."""

    offer: int
    """The index of the proposal it belongs to."""
    target: Target
    removes: int
    rent: int
    rework: int


class _Sums(Struct, kw_only=True):
    """The sums over several pieces."""

    removes: int = 0
    rent: int = 0
    rework: int = 0

    def add(self, piece: _Piece) -> None:
        self.removes += piece.removes
        self.rent += piece.rent
        self.rework += piece.rework


def candidate_plans(
    edits: Sequence[Proposal],
    summaries: Sequence[Proposal],
    pricing: Pricing,
    *,
    digests: bool,
    lost: Mapping[str, float] = {},
) -> list[PricedPlan]:
    """Return the best plan of edits alone and the best plan with a summary, unless they remove next to nothing.

    `digests` says whether elided results leave a digest behind. `lost` has the shares of later uses that plugins'
    mechanisms lose, by name.
    """
    lost = {**_LOSSES, **lost, **({} if digests else {"elide": _LOSS_WITHOUT_DIGEST})}
    chances = chances_of_use(pricing.items)
    pieces = sorted(
        _pieces(edits, pricing, chances, lost=lost), key=lambda piece: piece.target.item, reverse=True
    )
    starts = pricing.starts()
    with_summary = [
        _with_summary(offer, edits, pieces, pricing, starts, chances=chances) for offer in summaries
    ]
    found = (
        _best_edits(edits, pieces, pricing, starts),
        best_summary([plan for plan in with_summary if plan is not None]),
    )
    least = pricing.prompt // _LEAST_PART
    return [plan for plan in found if plan is not None and plan.removes > least]


def _pieces(
    edits: Sequence[Proposal], pricing: Pricing, chances: Sequence[float], *, lost: Mapping[str, float]
) -> list[_Piece]:
    """Return the parts that are worth replacing if everything behind them has to be written again anyway."""
    pieces: list[_Piece] = []
    for at, edit in enumerate(edits):
        whole = sum(target.tokens for target in edit.targets)
        for target in edit.targets:
            removes = scaled(edit.removes * target.tokens // max(whole, 1), pricing.scale)
            tokens = scaled(target.tokens, pricing.scale)
            piece = _Piece(
                offer=at,
                target=target,
                removes=removes,
                rent=pricing.rent(pricing.items[target.item], removes),
                rework=pricing.rework(lost[edit.mechanism] * chances[target.item], tokens),
            )
            written = removes * pricing.prices.cache_write // 1_000
            if piece.rework <= written + piece.rent:
                pieces.append(piece)
    return pieces


def _best_edits(
    edits: Sequence[Proposal], pieces: Sequence[_Piece], pricing: Pricing, starts: Sequence[int]
) -> PricedPlan | None:
    """Return the best plan that makes all edits from some item on; `pieces` are sorted with the last first."""
    step = max(1, sum(piece.removes for piece in pieces) // _MAX_CUTS)
    sums, next_cut, cuts = _Sums(), step, list[tuple[int, PricedPlan]]()
    for at, piece in enumerate(pieces):
        sums.add(piece)
        ended = at + 1 == len(pieces)
        if not ended and (sums.removes < next_cut or pieces[at + 1].target.item == piece.target.item):
            continue
        next_cut = sums.removes + step
        cuts.append((at + 1, _priced(sums, starts, piece.target.item, pricing)))
    if not cuts:
        return None
    taken, best = max(cuts, key=lambda cut: cut[1].rank)
    return replace(best, plan=_plan(edits, pieces[:taken], pricing))


def _with_summary(
    offer: Proposal,
    edits: Sequence[Proposal],
    pieces: Sequence[_Piece],
    pricing: Pricing,
    starts: Sequence[int],
    *,
    chances: Sequence[float],
) -> PricedPlan | None:
    """Return the plan to summarise a span, with all edits behind it, where everything is written again anyway."""
    span = offer.span
    assert span is not None
    replaced = starts[span.stop] - starts[span.start]
    removes = scaled(offer.removes, pricing.scale)
    cost = cost_of_summary(offer, pricing, starts)
    if cost is None:
        return None
    # Nothing is edited behind a provider's block: thinking there stays valid only if everything before it is as it was.
    is_native = offer.mechanism == native.NAME
    behind = [] if is_native else [piece for piece in pieces if piece.target.item >= span.stop]
    sums = _Sums()
    for piece in behind:
        sums.add(piece)
    share = removes / max(replaced, 1)
    for at in range(span.start, span.stop):
        tokens = starts[at + 1] - starts[at]
        sums.rent += pricing.rent(pricing.items[at], round(share * tokens))
        sums.rework += pricing.rework(_LOSS_BY_SUMMARY * chances[at], tokens)
    sums.removes += removes
    priced = _priced(sums, starts, span.start, pricing, summary_cost=cost)
    return replace(priced, plan=(*_plan(edits, behind, pricing), offer))


def cost_of_summary(
    offer: Proposal, pricing: Pricing, starts: Sequence[int], *, summary: int | None = None
) -> int | None:
    """Return the cost of the cheapest call that a proposal needs, in nano-dollars; None if no summarizer can take it.

    A proposal without calls has its summary already, and costs nothing. `summary` is the length of the summary in the model's
    tokens, if a better estimate is known than what the proposal says.
    """
    span = offer.span
    assert span is not None
    if not offer.calls:
        return 0
    replaced = starts[span.stop] - starts[span.start]
    tokens = replaced - scaled(offer.removes, pricing.scale) if summary is None else summary
    if offer.mechanism == native.NAME:
        call = pricing.native_call(upto=starts[span.stop], summary=max(LEAST_SUMMARY, tokens))
        return None if call is None else call.cost or 0
    calls = pricing.summary_calls(replaced=replaced, summary=max(LEAST_SUMMARY, tokens))
    return (calls[0][0].cost or 0) if calls else None


def best_summary(plans: Sequence[PricedPlan]) -> PricedPlan | None:
    """Return the best of several plans with a summary; one whose summary is already written is preferred if it is due.

    Another plan wins only if the rent on what it removes in addition has reached the difference in price.
    """
    ready = next((plan for plan in plans if plan.is_due and not any(step.calls for step in plan.plan)), None)
    if ready is None:
        return best_of(plans)
    better = [plan for plan in plans if plan.rent - plan.price > ready.rent - ready.price]
    return best_of(better) or ready


def _priced(
    sums: _Sums, starts: Sequence[int], item: int, pricing: Pricing, *, summary_cost: int = 0
) -> PricedPlan:
    """Return the price of removing `sums.removes` tokens starting at `item`; the plan itself is filled in by the caller."""
    first_changed, outlook = starts[item], pricing.outlook
    purchase = pricing.purchase(first_changed=first_changed, removes=sums.removes, summary_cost=summary_cost)
    kept = min(first_changed, pricing.warmth.expected(first_changed))
    price, saves = purchase.price + sums.rework, nano_dollars(sums.removes * pricing.prices.cache_read)
    usual = price + pricing.usual_surcharge(starts[pricing.tail])
    return PricedPlan(
        plan=(),
        removes=sums.removes,
        kept=kept,
        rewritten=max(0, pricing.prompt - sums.removes - kept),
        rent=sums.rent,
        price=price,
        summary=summary_cost,
        rework=sums.rework,
        saves=saves,
        worth=pricing.calls * saves - price,
        should_buy_early=outlook is not None
        and outlook.should_buy_early(saves=saves, price=price, usual=usual),
        wait=0
        if outlook is None
        else outlook.wait(saves=saves, price=pricing.risk(price, first_changed=first_changed)),
    )


def _plan(edits: Sequence[Proposal], pieces: Sequence[_Piece], pricing: Pricing) -> tuple[Proposal, ...]:
    """Return the proposals, restricted to these pieces, in the order of `edits`."""
    plan: list[Proposal] = []
    for at, edit in enumerate(edits):
        targets = [piece.target for piece in reversed(pieces) if piece.offer == at]
        if not targets:
            continue
        whole = sum(target.tokens for target in edit.targets)
        removes = edit.removes * sum(target.tokens for target in targets) // max(whole, 1)
        first = min(target.item for target in targets)
        behind = sum(item.tokens for item in pricing.items[first:])
        plan.append(
            replace(
                edit,
                removes=removes,
                first_changed=first,
                survives=max(0, behind - removes),
                targets=tuple(targets),
            )
        )
    return tuple(plan)
