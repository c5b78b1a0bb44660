"""What an audit finds: figures by day and model, misses by cause, the client's own compactions."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeVar, get_args

from msgspec import Struct

Cause = Literal[
    "first",
    "compaction",
    "model_changed",
    "expired",
    "start_changed",
    "prefix_edited",
    "uncached",
    "boundary",
    "evicted",
]
NotEstimated = Literal["numpy", "no_prices", "no_sizes", "copied", "too_large", "cut"]
"""Why nothing is said about what other schedules would have cost: numpy is missing; no price or no prompt's size is
known; the session goes on from another that was told already; it does not fit the window whatever one does; only
some of its days were asked for."""
DayOf = Callable[[float], str]
"""Names the day of a moment, as YYYY-MM-DD."""
CAUSES: tuple[Cause, ...] = get_args(Cause)


class Figures(Struct, frozen=True, kw_only=True):
    """What calls consumed and cost."""

    calls: int = 0
    uncached: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_long: int = 0
    output: int = 0
    cost: int | None = None
    """Of the calls whose price is known."""
    unpriced: int = 0
    """Calls that are missing from `cost`: no price is known, or no prompt was recorded."""

    @property
    def prompt(self) -> int:
        """All input tokens."""
        return self.uncached + self.written + self.cache_read

    @property
    def written(self) -> int:
        """Tokens written to the cache, at either lifetime."""
        return self.cache_write + self.cache_write_long

    @property
    def hit_share(self) -> float | None:
        """The share of all input that was read from the cache."""
        return self.cache_read / self.prompt if self.prompt else None


class Missed(Struct, frozen=True, kw_only=True):
    """Calls that read less of the cache than they could have, for one cause."""

    misses: int = 0
    tokens: int = 0
    """What was written or billed as input again instead of being read."""
    cost: int | None = None
    """What that cost more than reading."""


class Spending(Struct, frozen=True, kw_only=True):
    """Where the money went, in nano-dollars; only calls whose price is known."""

    reads: int = 0
    writes: int = 0
    uncached: int = 0
    output: int = 0


class Row(Struct, frozen=True, kw_only=True):
    """One model on one day of one session."""

    day: str
    """As YYYY-MM-DD; empty if no time was recorded."""
    model: str
    figures: Figures
    spending: Spending = Spending()
    missed: dict[Cause, Missed] = {}


class Native(Struct, frozen=True, kw_only=True):
    """A compaction that the recording client made itself: what it cost and what it saved until the next one, or the end."""

    at: float | None
    trigger: str
    call: int
    """The call right after it, from 0 in the session."""
    before: int
    after: int
    """The prompts of the calls around it."""
    served: int
    """The calls from it to the next summary or the end."""
    kind: str = "summary"
    """`summary`, or `prune` if only results were cleared."""
    summary_cost: int | None = None
    """As recorded; where it is not, an estimate: the summary is taken to have ridden the cached prompt."""
    summary_recorded: bool = False
    rewrite_cost: int | None = None
    """What writing again cost more than reading at the call after it."""
    saved: int | None = None
    """What the calls cost less for not carrying what it removed."""
    day: str = ""
    earlier: int | None = None
    """How many calls before it rent-or-buy would have acted first; None if not before it."""

    @property
    def net(self) -> int | None:
        """What it saved in the end."""
        if self.saved is None or self.summary_cost is None or self.rewrite_cost is None:
            return None
        return self.saved - self.summary_cost - self.rewrite_cost


class Saving(Struct, frozen=True, kw_only=True):
    """What other schedules would have changed, told on a model of the session at its own prices."""

    calls: int
    """Those it was estimated on: the first of a very long session."""
    modelled: int
    """Nano-dollars that the model says the session cost with the compactions that the client made."""
    never: int
    """Nano-dollars that the same session would have cost less without any compaction below the wall; often negative."""
    rent_or_buy: int
    """The same with rent-or-buy, expected rework included."""
    actions: int
    """What rent-or-buy would have done: prunes and summaries."""


class Foreseen(Struct, frozen=True, kw_only=True):
    """The input side of the bill as the cache rules foresee it from sizes and times, beside what was recorded."""

    foreseen: int
    recorded: int

    @property
    def error(self) -> float:
        """How far off it is, as a share of what was recorded."""
        return self.foreseen / self.recorded - 1 if self.recorded else 0.0


class AuditedSession(Struct, frozen=True, kw_only=True):
    """One recorded session."""

    id: str
    agent: str
    path: str
    model: str
    parent: str = ""
    relation: str = ""
    started_at: float | None = None
    ended_at: float | None = None
    rows: tuple[Row, ...] = ()
    peak_prompt: int = 0
    natives: tuple[Native, ...] = ()
    foreseen: Foreseen | None = None
    saving: Saving | None = None
    not_estimated: NotEstimated | None = None
    """Why there is no saving; None where there is one."""
    broken: int = 0
    broken_at: tuple[str, ...] = ()
    """The first places that could not be read."""
    copied: int = 0
    """Calls that a file before it had told already, and that are not counted again."""


T = TypeVar("T", Figures, Missed, Spending)


def known_sum(amounts: Iterable[int | None]) -> int | None:
    """Return the sum of the amounts that are known; None if none is."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None


def plus(one: T, other: T) -> T:
    """Return two of a kind added field by field."""
    fields: dict[str, Any] = {
        name: known_sum((getattr(one, name), getattr(other, name))) for name in one.__struct_fields__
    }
    return type(one)(**fields)


def total(kind: type[T], each: Iterable[T]) -> T:
    """Return all of a kind added up."""
    summed = kind()
    for one in each:
        summed = plus(summed, one)
    return summed


def merged_missed(each: Iterable[Mapping[Cause, Missed]]) -> dict[Cause, Missed]:
    """Return misses by cause added up, in the order of the causes."""
    found: dict[Cause, Missed] = {}
    for missed in each:
        for cause, one in missed.items():
            found[cause] = plus(found[cause], one) if cause in found else one
    return {cause: found[cause] for cause in CAUSES if cause in found}
