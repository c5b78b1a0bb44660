"""How often it pays to compact a session that grows steadily, by who writes the summary.

After a compaction the prompt has preamble, summary and tail. Each call adds g tokens, and as many leave the tail and start
to pay rent: the n-th call carries n·g tokens too many, so that n calls have paid r·g·n²/2. A compaction costs F, whatever
it removes: what stands behind its first change is written again, and a summary is asked for. The cost per call,
r·g·n/2 + F/n, is least at n* = sqrt(2F/(r·g)). That is where the rent paid has reached F, so the policy `rent-or-buy`
arrives there without knowing the growth. The context length is in none of this.
"""

from math import inf, isfinite
from typing import Literal

from msgspec import Struct

from lowwater.economics.break_even import (
    Compaction,
    Ratios,
    break_even,
    optimal_turns,
    other_summary,
    own_summary,
)

By = Literal["riding", "not riding", "other"]


class Shape(Struct, frozen=True, kw_only=True):
    """A session that grows steadily, in tokens."""

    growth: int
    """What a call adds to the prompt."""
    preamble: int
    """Tools and system."""
    tail: int
    """The newest messages, which stay."""
    summary: int
    instruction: int = 400
    """The words that ask for a summary."""

    @property
    def after(self) -> int:
        """The prompt a compaction leaves."""
        return self.preamble + self.summary + self.tail

    def compaction(self, replaced: int) -> Compaction:
        """Return the compaction that replaces so much, the summary before it included."""
        return Compaction(
            before=self.preamble,
            replaced=replaced,
            kept=self.tail,
            summary=self.summary,
            instruction=self.instruction,
        )


class Way(Struct, frozen=True, kw_only=True):
    """One way to get summaries written, and how often it then pays to compact; amounts in input tokens."""

    by: By
    """The session's own model after the same request, its prefix cached or not, or another model."""
    break_even: float | None
    """Calls after which a full compaction has paid for itself; None is never."""
    fixed: float
    """F: what a compaction costs however much it removes."""
    calls: float | None
    """n*: calls between two compactions; None if no compaction ever pays."""
    trigger: int | None
    """The prompt size that is then reached, if nothing forces a compaction before."""
    per_token: float
    """What a summary costs for each token more that it replaces."""
    per_call: float
    """What rent and compactions come to at each call: by it ways are compared."""


def own_way(at: Ratios, shape: Shape, replaced: int, *, by: Literal["riding", "not riding"]) -> Way:
    """Return the way in which the session's own model writes the summary after the same request."""
    how: Literal["riding", "cold"] = "riding" if by == "riding" else "cold"
    cost, least = (own_summary(at, what, how=how) for what in _both(shape, replaced))
    carried = at.read if by == "riding" else 1.0
    return _way(at, shape, replaced, by=by, cost=cost, least=least, carried=carried)


def other_way(at: Ratios, shape: Shape, replaced: int, *, input: float, output: float) -> Way:
    """Return the way in which another model does, at its prices as multiples of this model's input price."""
    cost, least = (other_summary(what, input=input, output=output) for what in _both(shape, replaced))
    return _way(at, shape, replaced, by="other", cost=cost, least=least, carried=input)


def _both(shape: Shape, replaced: int) -> tuple[Compaction, Compaction]:
    """Return the full compaction, and the one that replaces nothing but the summary before it."""
    return shape.compaction(replaced), shape.compaction(shape.summary)


def _way(
    at: Ratios, shape: Shape, replaced: int, *, by: By, cost: float, least: float, carried: float
) -> Way:
    """Return a way whose full summary costs `cost`, that of nothing new `least`, each token more `carried`."""
    fixed = (at.write - at.read) * (shape.summary + shape.tail) + least
    calls = optimal_turns(at, fixed=fixed, growth=shape.growth)
    paid = break_even(at, shape.compaction(replaced), cost)
    pays = isfinite(calls)
    return Way(
        by=by,
        break_even=paid if isfinite(paid) else None,
        fixed=fixed,
        calls=calls if pays else None,
        trigger=shape.after + round(calls * shape.growth) if pays else None,
        per_token=carried,
        per_call=at.read * shape.growth * calls / 2 + fixed / calls + carried * shape.growth if pays else inf,
    )
