"""The findings of an audit: figures by day and model, misses by cause, the client's own compactions."""

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
NotEstimated = Literal["no_prices", "no_sizes", "copied", "too_large", "cut"]
"""Why there is no estimate for other schedules: no price or no prompt size is known; the session continues
another one, with which it was counted; no schedule fits it into the window; `--since` left out some of its days."""
DayOf = Callable[[float], str]
"""Returns the day of a timestamp, as YYYY-MM-DD."""
CAUSES: tuple[Cause, ...] = get_args(Cause)


class AuditFigures(Struct, frozen=True, kw_only=True):
    """What calls consumed and cost."""

    calls: int = 0
    uncached: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_long: int = 0
    output: int = 0
    cost: int | None = None
    """The cost of the calls with a known price."""
    unpriced: int = 0
    """Calls not included in `cost`: their price is unknown, or no prompt size was recorded."""

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
    """Tokens written or billed as input again instead of being read."""
    cost: int | None = None
    """The extra cost over reading them."""


class Spending(Struct, frozen=True, kw_only=True):
    """Spending by kind of token in nano-dollars, for the calls with a known price."""

    reads: int = 0
    writes: int = 0
    uncached: int = 0
    output: int = 0


class AuditRow(Struct, frozen=True, kw_only=True):
    """One model on one day of one session."""

    day: str
    """As YYYY-MM-DD; empty if no time was recorded."""
    model: str
    figures: AuditFigures
    spending: Spending = Spending()
    missed: dict[Cause, Missed] = {}


class Native(Struct, frozen=True, kw_only=True):
    """A compaction made by the recording client: what it cost, and what it saved until the next summary or the end."""

    at: float | None
    trigger: str
    call: int
    """The index of the call right after it."""
    before: int
    after: int
    """Prompt tokens of the calls before and after it."""
    served: int
    """The number of calls until the next summary or the end."""
    kind: str = "summary"
    """`summary`, or `prune` if only results were cleared."""
    summary_cost: int | None = None
    """As recorded, or estimated: a request on the cached prompt."""
    summary_recorded: bool = False
    rewrite_cost: int | None = None
    """The extra cost of rewriting the cache at the call after it."""
    saved: int | None = None
    """What later calls saved because they did not carry what it removed."""
    day: str = ""
    earlier: int | None = None
    """How many calls earlier rent-or-buy would have acted; None if not earlier."""

    @property
    def net(self) -> int | None:
        """What it saved after deducting its cost."""
        if self.saved is None or self.summary_cost is None or self.rewrite_cost is None:
            return None
        return self.saved - self.summary_cost - self.rewrite_cost


class Stretch(Struct, frozen=True, kw_only=True):
    """The calls after one of the client's compactions, or after another place in a session, to compare with."""

    call: int
    """The number of its first call in the session."""
    calls: int
    """The number of its calls: 30, unless the session ends or is compacted earlier."""
    is_compaction: bool = False
    version: str = ""
    """The client's version; empty if not recorded, and for other places."""
    day: str = ""
    prompt: int = 0
    """The prompt tokens of the call before it; 0 if not recorded."""
    begins_turn: bool = False
    """Whether a user message came right before its first call."""
    repeating: tuple[int, ...] = ()
    """Which of its calls, from 0, repeat something from before it."""
    only_repeating: tuple[int, ...] = ()
    """Those that do nothing else."""
    works: int | None = None
    """The first of its calls that changes something; None if none does."""
    call_cost: int | None = None
    """The mean cost of its calls but the first, which pays for the new prompt."""
    subjects: tuple[str, ...] = ()
    """The paths and commands repeated, only if they were asked for."""


class Carried(Struct, frozen=True, kw_only=True):
    """What one tool's results, or everything of another kind, took of the prompts."""

    name: str
    calls: int
    """How often the tool was called."""
    tokens: int
    """Prompt tokens, counted at each call that carried them."""
    cost: int
    """Its share of the input cost, by size."""


class Saving(Struct, frozen=True, kw_only=True):
    """What other schedules would have saved, estimated on a model of the session at its own prices."""

    calls: int
    """The calls of the estimate: only the first ones of a very long session."""
    modelled: int
    """The modelled cost of the session with the client's compactions, in nano-dollars."""
    never: int
    """Nano-dollars saved by compacting only at the wall; often negative."""
    rent_or_buy: int
    """Nano-dollars saved by rent-or-buy, including expected rework."""
    actions: int
    """The number of prunes and summaries by rent-or-buy."""


class Foreseen(Struct, frozen=True, kw_only=True):
    """The input part of the bill: as predicted by the cache rules from sizes and times, and as recorded."""

    foreseen: int
    recorded: int

    @property
    def error(self) -> float:
        """The error of the prediction, as a share of what was recorded."""
        return self.foreseen / self.recorded - 1 if self.recorded else 0.0


class PromptKinds(Struct, frozen=True, kw_only=True):
    """What one prompt held, in tokens, by kind of content; the sum is the prompt."""

    start: int = 0
    """The system prompt and the definitions of tools: whatever no recorded message accounts for."""
    user: int = 0
    answers: int = 0
    """What the model said and the calls it made."""
    results: int = 0
    summaries: int = 0


class CallColumns(Struct, frozen=True, kw_only=True):
    """The calls of a session as columns, one per figure; calls copied from another session are left out."""

    number: tuple[int, ...]
    """Their places in the session, from 1."""
    at: tuple[float | None, ...]
    read: tuple[int, ...]
    written: tuple[int, ...]
    uncached: tuple[int, ...]
    output: tuple[int, ...]
    cost: tuple[int | None, ...]
    held: tuple[PromptKinds, ...]
    """What the prompts held, divided by size."""
    cause: tuple[Cause | None, ...]
    """Why the call read less from the cache than it could have."""
    missed: tuple[int, ...]
    """How many tokens less."""
    missed_cost: tuple[int | None, ...]


class PauseCosts(Struct, frozen=True, kw_only=True):
    """The pauses that outlast the cache, and what they cost, in nano-dollars beyond calls that find their prefix warm."""

    pauses: int = 0
    """How many gaps are longer than the provider's default lifetime."""
    calls: int = 0
    """How many calls were examined."""
    let_go: int = 0
    """With the default lifetime and nothing done."""
    kept_warm: int = 0
    """With minimal calls for as long as the rule expects them to pay."""
    pings: int = 0
    """How many minimal calls that takes."""
    compacted: int = 0
    """With a summary before every expiry, written by the session's model from its warm prefix; rework is not counted."""
    by_rule: int = 0
    """With whichever of these the rule expects to cost least."""
    longer: int | None = 0
    """With the long lifetime all the time; None if a provider does not offer one."""


class AuditedSession(Struct, frozen=True, kw_only=True):
    """One recorded session."""

    id: str
    agent: str
    path: str
    model: str
    parent: str = ""
    relation: str = ""
    project: str = ""
    """The folder that the agent worked in."""
    title: str = ""
    """The beginning of what the user said first."""
    started_at: float | None = None
    ended_at: float | None = None
    rows: tuple[AuditRow, ...] = ()
    peak_prompt: int = 0
    natives: tuple[Native, ...] = ()
    stretches: tuple[Stretch, ...] = ()
    carried: tuple[Carried, ...] = ()
    calls: CallColumns | None = None
    """None if the report leaves out some of its days."""
    foreseen: Foreseen | None = None
    pauses: PauseCosts | None = None
    """None without times, prices or a published cache lifetime."""
    saving: Saving | None = None
    not_estimated: NotEstimated | None = None
    """Why `saving` is None."""
    broken: int = 0
    broken_at: tuple[str, ...] = ()
    """The first places in the file that could not be read."""
    copied: int = 0
    """Calls already counted with an earlier file."""


T = TypeVar("T", AuditFigures, Missed, Spending)


def sum_of_known(amounts: Iterable[int | None]) -> int | None:
    """Return the sum of the amounts that are known; None if none is."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None


def plus(one: T, other: T) -> T:
    """Return the sum of two structs, field by field."""
    fields: dict[str, Any] = {
        name: sum_of_known((getattr(one, name), getattr(other, name))) for name in one.__struct_fields__
    }
    return type(one)(**fields)


def total(kind: type[T], each: Iterable[T]) -> T:
    """Return the sum of all structs of a kind."""
    summed = kind()
    for one in each:
        summed = plus(summed, one)
    return summed


def merged_missed(each: Iterable[Mapping[Cause, Missed]]) -> dict[Cause, Missed]:
    """Return the sum of misses by cause, in the order of `CAUSES`."""
    found: dict[Cause, Missed] = {}
    for missed in each:
        for cause, one in missed.items():
            found[cause] = plus(found[cause], one) if cause in found else one
    return {cause: found[cause] for cause in CAUSES if cause in found}
