"""What a change of the view costs at one moment of a session (docs/economics.md).

A price is the next call with the change, less the next call without it: what the cache still finds before the first
change is read, the rest is written.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from lowwater.economics.bill import nano_dollars
from lowwater.economics.outlook import Outlook
from lowwater.economics.purchase import Purchase, price_of
from lowwater.economics.rent import Meter
from lowwater.economics.summary_cost import SummaryCall, SummaryWork, native_call, summary_calls
from lowwater.economics.warmth import Warmth
from lowwater.engine.laying import Laid
from lowwater.values.layout import Lifetime
from lowwater.values.market import Bargain, Currency, Market, Warm
from lowwater.values.model import Model, Prices
from lowwater.values.situation import scaled
from lowwater.values.view import Item, Summary

_INSTRUCTION = 400
"""Tokens of the words that ask for a summary."""
LEAST_SUMMARY = 300
"""Tokens that any summary has."""
_SURE = 0.99


class Pricing(Struct, frozen=True, kw_only=True):
    """Everything a price depends on; sizes are the model's tokens."""

    items: Sequence[Item]
    laid: Laid
    prompt: int
    scale: float
    model: Model
    """With its prices, or those that stand in for unknown ones."""
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
    """Calls so far; before the first nothing is known of the session."""
    whole: int = 0
    """The size of all messages as they came."""
    messages: int = 0
    """How many that were."""
    summarizers: tuple[Model | None, ...] = ()
    """The models that write summaries, by rung: the same one can ride its cached prefix; None where it is not known."""

    @property
    def prices(self) -> Prices:
        """What the prompt is billed at as it is."""
        return self.prices_of(self.prompt)

    @property
    def hit(self) -> int:
        """Tokens that the cache should find in the prompt as it is."""
        return min(self.prompt, self.warmth.expected())

    @property
    def preamble(self) -> int:
        """Where the first item starts, in tokens."""
        return self.laid.layout.blocks[0].tokens

    @property
    def outlook(self) -> Outlook | None:
        """What the session was like so far; rent in nano-dollars."""
        if not self.calls:
            return None
        return Outlook(
            calls=self.calls, growth=nano_dollars(self.whole * self.prices.cache_read // self.calls)
        )

    def usually_above(self, tail_start: int) -> int:
        """Return by how much a purchase usually costs more than now, when less of the tail than usual is in the cache.

        Usually all of it is but for what a call adds, and its messages are as long as those of the session.
        """
        if not self.calls:
            return 0
        in_tail = len(self.items) - self.tail
        usual = self.whole * in_tail // max(1, self.messages) - self.whole // self.calls
        fresh = max(0, self.prices.cache_write - self.prices.cache_read)
        return nano_dollars(max(0, usual - max(0, self.hit - tail_start)) * fresh)

    def prices_of(self, prompt: int) -> Prices:
        """Return what a prompt of this size is billed at."""
        prices = self.model.prices_at(prompt, self.at)
        assert prices is not None, "unknown prices have a stand-in here"
        return prices

    def starts(self) -> list[int]:
        """Return the token position at which each item starts, and where the last one ends."""
        return self.laid.starts()

    def rent(self, item: Item, tokens: int) -> int:
        """Return what carrying so many tokens of an item has cost since it left the tail."""
        number = item.sources[-1].last if isinstance(item, Summary) else item.number
        return self.meter.rent(number, tokens)

    def rework(self, chance: float, tokens: int) -> int:
        """Return what it can be expected to cost that so many tokens are missed with this chance: a call, and a write."""
        recall = self.prompt * self.prices.cache_read + tokens * self.prices.cache_write
        return nano_dollars(round(chance * recall))

    def risk(self, price: int, *, first_changed: int) -> int:
        """Return what a change that is not free costs if all of the last prompt is in the cache after all."""
        if price <= 0:
            return price
        believed = self.hit - min(first_changed, self.warmth.expected(first_changed))
        lost = min(self.sent, self.prompt) - min(first_changed, self.sent)
        fresh = max(0, self.prices.cache_write - self.prices.cache_read)
        return price + nano_dollars(max(0, lost - believed) * fresh)

    def purchase(self, *, first_changed: int, removes: int, summary_cost: int = 0) -> Purchase:
        """Return the price of removing tokens behind the position of the first change."""
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
        """Return how each summarizer is asked most cheaply, with its rung, the cheapest first; those it fits into."""
        work = SummaryWork(
            prompt=self.prompt, hit=self.hit, replaced=replaced, instruction=_INSTRUCTION, summary=summary
        )
        calls: list[tuple[SummaryCall, int]] = []
        for rung, writer in enumerate(self.summarizers):
            other = self._writer(writer)
            ways = summary_calls(work, self.model, other=other, at=self.at)
            can_ride = writer is not None and writer.name == self.model.name
            calls += [(way, rung) for way in ways if can_ride or way.how == "other"]
        known = [(way, rung) for way, rung in calls if way.cost is not None]
        return sorted(known, key=lambda call: (call[0].cost or 0, call[1]))

    def native_call(self, *, upto: int, summary: int) -> SummaryCall | None:
        """Return what it takes to have the provider compact the first `upto` tokens of the prompt itself, if it can."""
        hit = min(upto, self.warmth.expected(upto))
        work = SummaryWork(
            prompt=upto, hit=hit, replaced=upto, instruction=_INSTRUCTION, summary=max(summary, LEAST_SUMMARY)
        )
        return native_call(work, self.model, lifetime=self.lifetime, at=self.at)

    def _writer(self, writer: Model | None) -> Model:
        """Return who is paid for a summary: where a price is not known, one as dear as the session's own model."""
        if writer is None:
            return self.model
        if self.currency == "usd" and writer.prices is not None:
            return writer
        return replace(self.model, context_length=writer.context_length, max_output=writer.max_output)

    def market(self, bargains: Sequence[Bargain] = ()) -> Market:
        """Return the market with these on sale, and the bounds that tell whether it is worth asking for any."""
        middle = scaled(sum(item.tokens for item in self.items[: self.tail]), self.scale)
        warm = self._warm()
        return Market(
            currency=self.currency,
            warm=warm,
            hit=self.hit,
            kept=self.purchase(first_changed=self.prompt, removes=0).cost_kept,
            bargains=tuple(bargains),
            most_rent=self.meter.most_rent(middle),
            least_price=self._least_price(middle) if warm == "warm" else None,
        )

    def _warm(self) -> Warm:
        if not self.hit:
            return "cold"
        return "warm" if self.warmth.chance >= _SURE else "unsure"

    def _least_price(self, middle: int) -> int | None:
        """Return what has to be written again whatever is removed: the part of the tail that the cache holds.

        None if something may be written for the first time before the tail, or the prompt is above a cliff: then removing
        may cost less than nothing. None, too, if at that price waiting would be in vain.
        """
        tail = self.preamble + middle
        if self.hit < tail or self.prices != self.prices_of(0):
            return None
        fresh = max(0, self.prices.cache_write - self.prices.cache_read)
        least, outlook = nano_dollars((self.hit - tail) * fresh), self.outlook
        saves = nano_dollars(middle * self.prices.cache_read)
        usual = least + self.usually_above(tail)
        if outlook is not None and outlook.is_ripe(saves=saves, price=least, usual=usual):
            return None
        return least
