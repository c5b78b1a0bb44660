"""The shape of `lowwater presets --json`, which programs may rely on."""

import msgspec
from msgspec import Struct

from lowwater.core.cache.lifetimes import Lifetimes
from lowwater.core.costs.tuning import DEAD, By, Point, Shape, Tuning

_NANO = 1_000_000_000


class RatioShape(Struct, frozen=True, kw_only=True):
    """Prices as multiples of the input price; `assumed` if the model's are not known."""

    read: float
    write: float
    output: float
    assumed: bool


class WayShape(Struct, frozen=True, kw_only=True):
    """A way to get summaries: `break_even` and `best_every` in calls, `best_at` in tokens; null is never."""

    by: By
    model: str
    break_even: float | None
    best_every: float | None
    best_at: int | None


class PruneShape(Struct, frozen=True, kw_only=True):
    """An example of placeholders for old results."""

    removes: int
    survives: int
    break_even: float | None


class ForcedShape(Struct, frozen=True, kw_only=True):
    """The nearest size that forces a compaction, and how far that then has to get."""

    at: int
    by: Point
    wall: int
    cliff: int | None
    target: int
    runway: int


class DollarShape(Struct, frozen=True, kw_only=True):
    """Amounts in dollars; negative is saved."""

    rent_per_call: float
    compaction: float
    compaction_if_cold: float
    cold_prune: float
    warm_call: float
    cold_call: float
    crossing_the_cliff: float | None
    dead_tokens: int
    """What `rent_per_call` and `cold_prune` are for."""


class LifetimeShape(Struct, frozen=True, kw_only=True):
    """Seconds; `least_share` of calls must come between the two for the long one to pay."""

    short: int | None
    long: int | None
    least_share: float | None


class PresetShape(Struct, frozen=True, kw_only=True):
    """One model's numbers; `usd` is null if its prices are not known."""

    model: str
    provider: str
    as_of: str
    context_length: int
    session: Shape
    ratios: RatioShape
    trigger: int
    trigger_share: float
    trigger_by: Point
    calls_between: float
    runway: int
    forced: ForcedShape
    full_compaction_replaces: int
    ways: tuple[WayShape, ...]
    prune: PruneShape
    usd: DollarShape | None
    lifetimes: LifetimeShape
    assumptions: tuple[str, ...]


class Row(Struct, frozen=True, kw_only=True):
    """A model's numbers with what its prices rest on."""

    tuning: Tuning
    as_of: str
    assumptions: tuple[str, ...] = ()


def presets_json(rows: list[Row]) -> str:
    """Return the numbers as a JSON list, one object for each model."""
    return msgspec.json.format(msgspec.json.encode([_shape(row) for row in rows]), indent=2).decode()


def _shape(row: Row) -> PresetShape:
    tuning = row.tuning
    at, limits, prune = tuning.ratios, tuning.limits, tuning.prune
    return PresetShape(
        model=tuning.model,
        provider=tuning.provider,
        as_of=row.as_of,
        context_length=tuning.context,
        session=tuning.shape,
        ratios=RatioShape(read=at.read, write=at.write, output=at.output, assumed=tuning.currency != "usd"),
        trigger=tuning.trigger,
        trigger_share=tuning.trigger_share,
        trigger_by=tuning.trigger_by,
        calls_between=tuning.calls,
        runway=tuning.runway,
        forced=ForcedShape(
            at=limits.threshold,
            by=tuning.forced_by,
            wall=limits.wall,
            cliff=limits.cliff,
            target=limits.target,
            runway=limits.runway,
        ),
        full_compaction_replaces=tuning.replaced,
        ways=_ways(tuning),
        prune=PruneShape(removes=prune.removes, survives=prune.survives, break_even=prune.break_even),
        usd=_dollars(tuning),
        lifetimes=_lifetimes(tuning.lifetimes),
        assumptions=row.assumptions,
    )


def _ways(tuning: Tuning) -> tuple[WayShape, ...]:
    return tuple(
        WayShape(
            by=way.by,
            model=(tuning.other or "") if way.by == "other" else tuning.model,
            break_even=way.break_even,
            best_every=way.calls,
            best_at=way.trigger,
        )
        for way in tuning.ways
    )


def _dollars(tuning: Tuning) -> DollarShape | None:
    if tuning.currency != "usd":
        return None
    of = tuning.amounts
    return DollarShape(
        rent_per_call=of.rent / _NANO,
        compaction=of.compaction / _NANO,
        compaction_if_cold=of.cold_compaction / _NANO,
        cold_prune=-of.cold_saves / _NANO,
        warm_call=of.warm_call / _NANO,
        cold_call=of.cold_call / _NANO,
        crossing_the_cliff=None if of.over_cliff is None else of.over_cliff / _NANO,
        dead_tokens=DEAD,
    )


def _lifetimes(sold: Lifetimes) -> LifetimeShape:
    return LifetimeShape(short=sold.short, long=sold.long, least_share=sold.least_share)
