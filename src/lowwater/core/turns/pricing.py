"""Everything that the price of a change depends on: the prompt and its layout, what is cached, the model's prices, the rent paid."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.buy_rule import Outlook
from lowwater.core.cache.belief import MarkLifetime, Warmth
from lowwater.core.costs.prices import (
    INSTRUCTION,
    Meter,
    Purchase,
    SummaryCall,
    SummaryWork,
    nano_dollars,
    native_call,
    price_of,
    summary_calls,
    with_fallback_prices,
    write_price,
)
from lowwater.core.decisions import Candidates, Currency, PricedPlan, Warm, scaled
from lowwater.core.mechanisms.reuse import Experience
from lowwater.core.models.model import Model, Prices
from lowwater.core.turns.cache import lifetime_of, prompt_layout, warmth_of
from lowwater.core.turns.state import PromptLayout, Setup, State
from lowwater.core.view import Item, newest_number

LEAST_SUMMARY = 300
"""Tokens that every summary is assumed to have at least."""
_RESULT = 2_000
"""About how many tokens a recalled result has."""
_SURE = 0.99
"""The probability from which on the cache counts as warm."""


class PricingContext(Struct, frozen=True, kw_only=True):
    """Everything that a price depends on; sizes are in the model's tokens."""

    items: Sequence[Item]
    prompt_layout: PromptLayout
    prompt: int
    scale: float
    model: Model
    """With its prices, or assumed ones if they are not known."""
    currency: Currency
    at: float
    warmth: Warmth
    lifetime: MarkLifetime
    meter: Meter
    tail: int
    """The index of the first item of the tail."""
    sent: int = 0
    """The size of the last prompt."""
    calls: int = 0
    """Calls so far; before the first, nothing is known about the session."""
    session_tokens: int = 0
    """The size of all messages of the session, uncompacted."""
    messages: int = 0
    """How many messages those are."""
    disturbed_calls: float = 0.0
    """How many calls over the prompt every change of the view is expected to cost, whatever it removes."""
    experience: Experience = Experience()
    """What the session has shown of later uses."""
    offers_recall: bool = False
    """The model can recall, so that an index stands behind each summary."""
    summarizers: tuple[Model | None, ...] = ()
    """The models that write summaries, by rung; None where it is not known. The session's own model can extend its cached prefix."""

    @property
    def prices(self) -> Prices:
        """The prices of the prompt as it is."""
        return self.prices_of(self.prompt)

    @property
    def write_price(self) -> int:
        """The price of writing a token to the cache for the lifetime that the request's marks ask for."""
        return write_price(self.prices, self.lifetime)

    @property
    def _rewrite_price(self) -> int:
        """How much more writing a token costs than reading it."""
        return max(0, self.write_price - self.prices.cache_read)

    @property
    def hit(self) -> int:
        """Tokens of the prompt as it is that should be read from the cache."""
        return min(self.prompt, self.warmth.expected())

    @property
    def preamble(self) -> int:
        """The token position at which the first item starts."""
        return self.prompt_layout.layout.blocks[0].tokens

    @property
    def outlook(self) -> Outlook | None:
        """What to expect of the session's future, given its calls so far; None before the first call."""
        if not self.calls:
            return None
        return Outlook(
            calls=self.calls, growth=nano_dollars(self.session_tokens * self.prices.cache_read // self.calls)
        )

    def usual_surcharge(self, tail_start: int) -> int:
        """Return how much more than now a purchase usually costs, because more of the tail is usually in the cache.

        Usually the whole tail is cached but for what the last call added, and its messages are of average length.
        """
        if not self.calls:
            return 0
        in_tail = len(self.items) - self.tail
        usually_cached = (
            self.session_tokens * in_tail // max(1, self.messages) - self.session_tokens // self.calls
        )
        return nano_dollars(max(0, usually_cached - max(0, self.hit - tail_start)) * self._rewrite_price)

    def prices_of(self, prompt: int) -> Prices:
        """Return the prices of a prompt of this size."""
        prices = self.model.prices_at(prompt, self.at)
        assert prices is not None, "unknown prices were replaced by assumed ones"
        return prices

    def starts(self) -> list[int]:
        """Return the token position at which each item starts, and where the last one ends."""
        return self.prompt_layout.starts()

    def rent(self, item: Item, tokens: int) -> int:
        """Return the rent paid for carrying `tokens` of an item since it left the tail."""
        return self.meter.rent(newest_number(item), tokens)

    @property
    def disturbance(self) -> int:
        """The cost of what any change of the view disturbs."""
        return nano_dollars(round(self.disturbed_calls * self.prompt * self.prices.cache_read))

    def rework(self, chance: float, tokens: int) -> int:
        """Return the expected cost of recalling `tokens` that are needed again with this probability: one more call and a cache write."""
        recall = self.prompt * self.prices.cache_read + tokens * self.write_price
        return nano_dollars(round(chance * recall))

    @property
    def break_even(self) -> float:
        """The chance of a later use per token from which on it is cheaper to carry a name than to recall the result that has it.

        A token is written once and read at each call that can be expected, as many as there were.
        """
        carried = self.write_price + self.calls * self.prices.cache_read
        recalled = self.prompt * self.prices.cache_read + _RESULT * self.write_price
        return carried / max(1, recalled)

    def risk(self, price: int, *, first_changed: int) -> int:
        """Return the price of a change in the worst case: all of the last prompt is in the cache after all."""
        if price <= 0:
            return price
        believed = self.hit - min(first_changed, self.warmth.expected(first_changed))
        lost = min(self.sent, self.prompt) - min(first_changed, self.sent)
        return price + nano_dollars(max(0, lost - believed) * self._rewrite_price)

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
            prompt=self.prompt, hit=self.hit, replaced=replaced, instruction=INSTRUCTION, summary=summary
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
            prompt=upto, hit=hit, replaced=upto, instruction=INSTRUCTION, summary=max(summary, LEAST_SUMMARY)
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
            unchanged_cost=self.purchase(first_changed=self.prompt, removes=0).cost_kept,
            plans=tuple(plans),
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
        least, outlook = (
            nano_dollars((self.hit - tail) * self._rewrite_price) + self.disturbance,
            self.outlook,
        )
        saves = nano_dollars(middle * self.prices.cache_read)
        usual = least + self.usual_surcharge(tail)
        if outlook is not None and outlook.should_buy_early(saves=saves, price=least, usual=usual):
            return None
        return least


def pricing_for(state: State, setup: Setup, tail: int, at: float) -> PricingContext:
    """Return what prices depend on; unknown prices of the model are replaced by assumed ones."""
    model, currency = with_fallback_prices(state.model)
    current = prompt_layout(state, setup)
    return PricingContext(
        prompt_layout=current,
        items=state.ledger.view.items,
        prompt=state.prompt,
        scale=state.scale,
        model=model,
        currency=currency,
        at=at,
        warmth=warmth_of(state, current.layout, at),
        lifetime=lifetime_of(current.cache_marks),
        meter=state.meter,
        tail=tail,
        sent=state.reported_prompt,
        calls=state.totals.turns,
        session_tokens=scaled(state.ledger.view.original_tokens, state.scale),
        messages=len(state.ledger.messages),
        experience=state.experience,
        offers_recall=state.offers_recall,
        disturbed_calls=setup.settings.compression.disturbed_calls,
        summarizers=setup.summary_models if setup.may_ask(state) else (),
    )
