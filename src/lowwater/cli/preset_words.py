"""The numbers that a model's prices imply, each with what it means and the setting it belongs to."""

from collections.abc import Iterator
from math import floor, log10

from msgspec import Struct

from lowwater.cli.model_words import duration
from lowwater.core.costs.tuning import DEAD, Tuning
from lowwater.core.decisions import Currency
from lowwater.core.limits import derive_limits
from lowwater.core.wording import money
from lowwater.settings import CompressionSettings

_NEVER = "never"
_NANO = 1_000_000_000
_SMALL = 0.01
"""Dollars below which two digits that count are shown, however many zeros stand before them."""
_POINTS = {"wall": "the wall", "cliff": "the cliff", "ceiling": "the ceiling (max_view_tokens)"}
_LABELS = {"riding": "summary, riding", "not riding": "not riding", "other": "another model"}


class Figure(Struct, frozen=True, kw_only=True):
    """One number of the page, and what it says."""

    label: str
    number: str
    means: str


def schedule(tuning: Tuning) -> Iterator[Figure]:
    """Yield when a compaction comes: by rent, and by size."""
    yield Figure(label="trigger", number=tokens(tuning.trigger, tuning), means=_trigger(tuning))
    yield Figure(
        label="every",
        number=f"{tuning.calls:.0f} calls",
        means=f"A compaction leaves {tuning.shape.after:,} tokens; the runway from there is {tokens(tuning.runway, tuning)}.",
    )
    yield Figure(label="threshold", number=f"{tuning.trigger_share:.2f}", means=_threshold(tuning))
    limits = tuning.limits
    yield Figure(
        label="forced at",
        number=f"{limits.threshold:,}",
        means=f"At {_POINTS[tuning.forced_by]} a compaction comes whatever it costs, and tries to get down to"
        f" {limits.target:,}: {limits.runway / tuning.shape.growth:.0f} calls of runway.",
    )
    if tuning.amounts.over_cliff is not None:
        more = amount(tuning.amounts.over_cliff, tuning.currency)
        yield Figure(
            label="cliff",
            number=f"{limits.cliff:,}",
            means=f"From here on the whole request is billed at higher prices: a warm call costs {more} more at once.",
        )


def break_evens(tuning: Tuning) -> Iterator[Figure]:
    """Yield after how many calls each kind of compaction has paid for itself."""
    said = {
        "riding": f"{tuning.replaced:,} tokens become a summary, which the model writes itself, asked for behind its cached"
        " prompt.",
        "not riding": "The same, but the request for the summary finds nothing in the cache.",
        "other": f"The same with summaries by {tuning.other} (summary_model).",
    }
    for way in sorted(tuning.ways, key=lambda way: list(said).index(way.by)):
        best = f" Best every {way.calls:.0f} calls." if way.calls is not None else ""
        yield Figure(label=_LABELS[way.by], number=calls(way.break_even), means=said[way.by] + best)
    prune = tuning.prune
    yield Figure(
        label="prune",
        number=calls(prune.break_even),
        means=f"Placeholders for {prune.removes:,} tokens of old results; {prune.survives:,} behind the first of them are"
        " written again. Before a cold call it pays at once.",
    )


def amounts(tuning: Tuning) -> Iterator[Figure]:
    """Yield what all that is in money, or in input tokens where no price is known."""

    def figure(label: str, nano: int, means: str) -> Figure:
        return Figure(label=label, number=amount(nano, tuning.currency), means=means)

    of = tuning.amounts
    yield figure("rent", of.rent, f"At each call, for {DEAD:,} tokens that nobody needs any more.")
    yield figure("compaction", of.compaction, "Its price over a warm cache, which the rent has to reach.")
    at_once = " Below zero it pays at once." if of.cold_compaction < 0 else ""
    yield figure(
        "… if cold",
        of.cold_compaction,
        f"The same before a cold call, which writes everything again anyway.{at_once}",
    )
    yield figure("… prune, cold", -of.cold_saves, f"For {DEAD:,} tokens that need not be written again.")
    yield figure(
        "warm call", of.warm_call, f"The input of a call with {tokens(tuning.trigger, tuning)} tokens."
    )
    yield figure(
        "full rewrite", of.cold_call, "The same with nothing in the cache: what a lost prefix costs."
    )


def lifetimes(tuning: Tuning) -> Iterator[Figure]:
    """Yield which cache lifetime pays for which pauses."""
    sold = tuning.lifetimes
    if sold.short is None:
        said = "Not published: warmth is a chance that falls with the pause, and prices are weighed by it."
        yield Figure(label="lifetime", number="unknown", means=said)
        return
    short = duration(sold.short)
    if sold.long is None:
        said = "The only one on sale: a call after a longer pause is cold."
        yield Figure(label="lifetime", number=short, means=said)
        return
    long = duration(sold.long)
    if sold.within_costs is None or sold.between_saves is None or sold.beyond_costs is None:
        said = f"Or {long}, which has no price of its own: there is nothing to weigh."
        yield Figure(label="lifetime", number=short, means=said)
        return

    def figure(label: str, nano: int, means: str) -> Figure:
        return Figure(label=label, number=amount(nano, tuning.currency), means=means)

    yield Figure(
        label=f"{long} pays from",
        number=f"{sold.least_share:.1%}" if sold.least_share is not None else _NEVER,
        means=f"Of the pauses between calls, the share that must be longer than {short} and shorter than {long}"
        " (cache_ttl: auto measures them).",
    )
    yield figure("… shorter", sold.within_costs, f"What {long} costs more at a call after less than {short}.")
    yield figure(
        "… in between", -sold.between_saves, "What it costs, below zero saves, where it alone is warm."
    )
    yield figure("… longer", sold.beyond_costs, "What it costs more where it is cold too.")


def prices(tuning: Tuning) -> Iterator[Figure]:
    """Yield the price ratios that all the rest follows from."""
    at = tuning.ratios
    yield Figure(
        label="cache read",
        number=f"{at.read:.3g}",
        means="× input. A token that is carried along pays this at every call: its rent.",
    )
    yield Figure(
        label="cache write",
        number=f"{at.write:.3g}",
        means="× input. What stands behind a change is written again at this price.",
    )
    yield Figure(label="output", number=f"{at.output:.3g}", means="× input, for the words of a summary.")


def session(tuning: Tuning) -> str:
    """Return the session that the numbers are for, as a sentence."""
    shape = tuning.shape
    return (
        f"For a session that adds {shape.growth:,} tokens a call to {shape.preamble:,} of tools and system, keeps a tail"
        f" of {shape.tail:,} and writes summaries of {shape.summary:,}."
    )


def tokens(number: int, tuning: Tuning) -> str:
    """Return a size, in round numbers where it is no limit but an optimum."""
    return f"{round(number, -2) if tuning.trigger_by == 'rent' else number:,}"


def calls(number: float | None) -> str:
    """Return a number of calls; `never` for none."""
    return _NEVER if number is None else f"{round(number, 6):.1f} calls"


def amount(nano: int, currency: Currency) -> str:
    """Return an amount so that a small one is not shown as nothing; input tokens as a bare number."""
    dollars = abs(nano) / _NANO
    if currency == "tokens" or not nano or dollars >= _SMALL:
        return money(nano, currency).removesuffix(" input tokens")
    digits = 1 - floor(log10(dollars))
    return f"{'-' if nano < 0 else ''}${dollars:.{digits}f}"


def _trigger(tuning: Tuning) -> str:
    share = f"Tokens, {tuning.trigger_share:.0%} of the window"
    first = tuning.ways[0]
    if tuning.trigger_by == "rent":
        writer = f" with summaries by {tuning.other}" if first.by == "other" else ""
        return (
            f"{share}: there the rent paid reaches the price of a compaction{writer}. The policy rent-or-buy finds it by"
            " itself; the size of the window does not matter."
        )
    would = f", which would be at {first.trigger:,}" if first.trigger is not None else ""
    return f"{share}: {_POINTS[tuning.trigger_by]} comes before the rent has reached the price{would}."


def _threshold(tuning: Tuning) -> str:
    share = round(tuning.trigger_share, 2)
    limits = derive_limits(tuning.context, CompressionSettings(threshold=share))
    said = f"That as the setting `threshold` (default {CompressionSettings().threshold}), for policies that fire at a share"
    if abs(limits.threshold - tuning.trigger) > tuning.context // 100:
        return f"{said}; its own limits make it {limits.threshold:,}."
    return f"{said}."
