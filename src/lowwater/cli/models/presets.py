"""`lowwater models presets`: what a model's prices say about when to compact."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from difflib import get_close_matches
from math import floor, log10
from typing import Annotated

import typer
from msgspec import Struct
from msgspec.structs import asdict
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lowwater.adapters.models import load_registry, noon
from lowwater.cli.command import AsJson
from lowwater.cli.models.show import current_models, readable
from lowwater.cli.tables import fields_of, figures_table, print_json, print_page
from lowwater.cli.wording import duration, short
from lowwater.core.costs.tuning import DEAD, Amounts, Tuning, limits_of, tuning_of
from lowwater.core.decisions import Currency
from lowwater.core.limits import derive_limits
from lowwater.core.models.model import Model
from lowwater.core.models.registry import Registry
from lowwater.core.wording import money
from lowwater.errors import BadInput
from lowwater.settings import CompressionSettings

_NEVER = "never"
_NANO_PER_DOLLAR = 1_000_000_000
_SMALL_AMOUNT = 0.01
"""Amounts below this many dollars are shown with two significant digits."""
_POINTS = {"wall": "the wall", "cliff": "the cliff", "ceiling": "the ceiling (max_view_tokens)"}
_LABELS = {"warm": "summary, cached", "cold": "not cached", "other": "another model"}
_COLUMNS = ("read", "trigger", "share", "every", "full", "prune", "forced", "rent")
_LEGEND = (
    ("read", "a cache read, as a multiple of the input price"),
    ("trigger", "the prompt at which a compaction has earned its price"),
    ("share", "the same as a share of the window"),
    ("every", "calls from one compaction to the next"),
    ("full", "calls until a summary of 120,000 tokens (or what fits) has paid"),
    ("prune", "calls until placeholders for a third of them have paid"),
    ("forced", "the wall, c a cliff, m max_view_tokens: there it cannot wait"),
    ("rent", "of 10,000 dead tokens at each call; – if no price is known"),
)
_GROWTH, _MAX_PREAMBLE_AND_TAIL, _SUMMARY = 2_000, 20_000, 3_000
_MAX_SHARE_DIVISOR = 5
"""The preamble (tools and system) and the tail are each assumed to be at most this fraction (1/N) of what fits."""
_TOKENS_READ_PER_WRITTEN = 40
"""Tokens read per token of summary written, for comparing the cost of models that could write it."""


class SessionAssumptions(Struct, frozen=True, kw_only=True):
    """The session that the options describe; None means derived from the model."""

    growth: int
    preamble: int | None
    tail: int | None
    summary: int | None
    ceiling: int | None
    summary_model: str | None


class ModelTuning(Struct, frozen=True, kw_only=True):
    """A model's numbers, the day of its prices, and the assumptions made."""

    tuning: Tuning
    as_of: str
    assumptions: tuple[str, ...] = ()


class Figure(Struct, frozen=True, kw_only=True):
    """One number of a model's page, with its meaning."""

    label: str
    number: str
    means: str


def presets(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MODEL",
            help="Models in any spelling: one for a page, several for a table; by default the current models.",
        ),
    ] = None,
    *,
    growth: Annotated[
        int, typer.Option(metavar="N", min=1, help="Tokens that each call adds to the prompt.")
    ] = _GROWTH,
    preamble: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Tokens of tools and system prompt; by default 20,000, or a fifth of what fits.",
        ),
    ] = None,
    tail: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Tokens of the newest messages, which are kept; by default 20,000, or a fifth of what fits.",
        ),
    ] = None,
    summary: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Tokens of a summary; by default 3,000, if they fit."),
    ] = None,
    summary_model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Another model to write the summaries; by default the provider's cheapest, for comparison.",
        ),
    ] = None,
    max_view_tokens: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="A ceiling for the prompt, like the setting of this name."),
    ] = None,
    as_of: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%d"], metavar="DATE", help="Use the prices of that day; by default today's."
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every listed model, not only the current ones.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Show when compaction pays, at the prices of a model.

    No number here is set by hand: each follows from the model's prices and
    cache rules, for a session that grows steadily. The policy rent-or-buy
    arrives at them by itself; for other policies they tell you what to set. An
    unknown model is not an error: its price ratios are assumed, and marked so.

    lowwater models presets                                the current models
    lowwater models presets claude-opus-5.5                what each number means
    lowwater models presets claude-opus-5.5 --growth 500   a chat, not a coder
    lowwater models presets gpt-6.1-sol deepseek-flash     side by side
    """
    day = as_of.date() if as_of else datetime.now(tz=UTC).date()
    registry = load_registry(as_of=day)
    assumed = SessionAssumptions(
        growth=growth,
        preamble=preamble,
        tail=tail,
        summary=summary,
        ceiling=max_view_tokens,
        summary_model=summary_model,
    )
    chosen = [registry.find(readable(name)) for name in models or ()]
    shown = chosen or (list(registry.models) if everything else current_models(registry.models))
    rows = [_tuning_for(model, assumed, registry, day) for model in shown]
    if json:
        print_json(presets_json(rows))
    else:
        print_page(_model_page(rows[0], registry) if len(chosen) == 1 else _models_table(rows, day, registry))


def _tuning_for(model: Model, assumed: SessionAssumptions, registry: Registry, day: date) -> ModelTuning:
    part = min(
        _MAX_PREAMBLE_AND_TAIL, limits_of(model, ceiling=assumed.ceiling).threshold // _MAX_SHARE_DIVISOR
    )
    named = registry.find(readable(assumed.summary_model)) if assumed.summary_model is not None else None
    if named is not None and named.prices is None:
        raise BadInput(
            f"{named.name} has no known price to compare with: name another model with --summary-model"
        )
    tuning = tuning_of(
        model,
        growth=assumed.growth,
        preamble=part if assumed.preamble is None else assumed.preamble,
        tail=part if assumed.tail is None else assumed.tail,
        summary=min(_SUMMARY, part) if assumed.summary is None else assumed.summary,
        other=named or _cheapest_summarizer(model, registry),
        prefer_other=named is not None,
        ceiling=assumed.ceiling,
        at=noon(day).timestamp(),
    )
    return ModelTuning(tuning=tuning, as_of=day.isoformat(), assumptions=model.assumptions)


def _cheapest_summarizer(model: Model, registry: Registry) -> Model | None:
    """Return the provider's cheapest model for writing a summary; None if that is `model` itself."""

    def cost(other: Model) -> int:
        return other.prices.input * _TOKENS_READ_PER_WRITTEN + other.prices.output if other.prices else 0

    sold = [
        other for other in registry.models if other.provider == model.provider and other.prices is not None
    ]
    cheapest = min(sold, key=cost, default=None)
    if cheapest is None or model.prices is None or cost(cheapest) >= cost(model):
        return None
    return cheapest


def _models_table(
    rows: Sequence[ModelTuning], day: date, registry: Registry
) -> Iterator[Table | Text | Padding]:
    """Yield a table with a row per model, then the meaning of the columns."""
    grid = figures_table("", figures=_COLUMNS, gap=1)
    for row in rows:
        grid.add_row(Text(row.tuning.model), *_cells(row.tuning))
    yield grid
    yield Text()
    largest = max((row.tuning for row in rows), key=lambda tuning: tuning.shape.after)
    less = " Less where that would be more than a fifth of what fits." if _shapes_differ(rows) else ""
    yield Text(f"{_session_sentence(largest)}{less} Prices of {day.isoformat()}.")
    yield Text()
    legend = Table.grid(padding=(0, 2, 0, 0))
    for column, means in _LEGEND:
        legend.add_row(Text(column, style="dim"), means)
    yield legend
    for row in rows:
        if row.tuning.prices is None:
            said = f"{row.tuning.model}: prices not known, ratios assumed{_similar_names(row.tuning.model, registry)}."
            yield Text(f"\n{said}", style="yellow")


def _shapes_differ(rows: Iterable[ModelTuning]) -> bool:
    return len({row.tuning.shape.after for row in rows}) > 1


def _cells(tuning: Tuning) -> tuple[str, ...]:
    warm = tuning.way("warm")
    forced = short(tuning.limits.threshold) + {"cliff": "c", "ceiling": "m"}.get(tuning.forced_by, " ")
    return (
        f"{tuning.ratios.read:.3g}",
        short(tuning.trigger),
        f"{tuning.trigger_share:.0%}",
        f"{tuning.calls:.0f}",
        _calls(warm.break_even if warm else None).removesuffix(" calls"),
        _calls(tuning.prune.break_even).removesuffix(" calls"),
        forced,
        _amount(tuning.amounts.rent, "usd") if tuning.currency == "usd" else "–",
    )


def _model_page(row: ModelTuning, registry: Registry) -> Iterator[Table | Text | Padding]:
    """Yield one model's numbers under headings, each with its meaning."""
    tuning = row.tuning
    known = f"prices of {row.as_of}" if tuning.prices else "prices not known"
    yield Text.assemble((tuning.model, "bold"), f" · {tuning.provider} · {tuning.context:,} tokens · {known}")
    yield Text(_session_sentence(tuning), style="dim")
    parts = (
        ("When to compact", _schedule_figures(tuning)),
        ("After how many calls it has paid for itself", _break_even_figures(tuning)),
        ("Money" if tuning.prices else "Money, as worth input tokens", _amount_figures(tuning)),
        ("Cache lifetime", _lifetime_figures(tuning)),
        ("Prices" if tuning.prices else "Prices, assumed", _price_figures(tuning)),
    )
    for title, figures in parts:
        yield Text.assemble("\n", (title, "bold"))
        yield Padding(_figures_table(figures), (0, 0, 0, 2))
    if row.assumptions:
        like = _similar_names(tuning.model, registry) if tuning.prices is None else ""
        yield Text.assemble("\n", ("Assumptions", "bold yellow"))
        yield Padding(Text("\n".join(row.assumptions) + like.replace("; l", "\nL", 1)), (0, 0, 0, 2))


def _similar_names(name: str, registry: Registry) -> str:
    """Return '; listed are …' with the listed names most similar to `name`; empty if there are none."""
    names = [model.name for model in registry.models]
    close = [listed for listed in names if name in listed][:3] or get_close_matches(name, names, n=3)
    return f"; listed are {', '.join(close)}" if close else ""


def _figures_table(figures: Iterable[Figure]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True, width=15)
    grid.add_column(justify="right", no_wrap=True, min_width=11)
    grid.add_column(overflow="fold")
    for figure in figures:
        grid.add_row(figure.label, Text(figure.number, style="bold"), Text(figure.means))
    return grid


def _session_sentence(tuning: Tuning) -> str:
    """Return a sentence that describes the assumed session."""
    shape = tuning.shape
    return (
        f"For a session that adds {shape.growth:,} tokens a call to {shape.preamble:,} of tools and system, keeps a tail"
        f" of {shape.tail:,} and writes summaries of {shape.summary:,}."
    )


def _schedule_figures(tuning: Tuning) -> Iterator[Figure]:
    """Yield when a compaction is due: by rent paid, and by size."""
    yield Figure(label="trigger", number=_tokens(tuning.trigger, tuning), means=_trigger(tuning))
    yield Figure(
        label="every",
        number=f"{tuning.calls:.0f} calls",
        means=f"A compaction leaves {tuning.shape.after:,} tokens; the runway from there is {_tokens(tuning.runway, tuning)}.",
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
        more = _amount(tuning.amounts.over_cliff, tuning.currency)
        yield Figure(
            label="cliff",
            number=f"{limits.cliff:,}",
            means=f"From here on the whole request is billed at higher prices: a warm call costs {more} more at once.",
        )


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


def _break_even_figures(tuning: Tuning) -> Iterator[Figure]:
    """Yield after how many calls each kind of compaction pays for itself."""
    said = {
        "warm": f"{tuning.replaced:,} tokens become a summary, which the model writes itself, asked for behind its cached"
        " prompt.",
        "cold": "The same, but the request for the summary finds nothing in the cache.",
        "other": f"The same with summaries by {tuning.other} (summary_model).",
    }
    for way in sorted(tuning.ways, key=lambda way: list(said).index(way.by)):
        best = f" Best every {way.calls:.0f} calls." if way.calls is not None else ""
        yield Figure(label=_LABELS[way.by], number=_calls(way.break_even), means=said[way.by] + best)
    prune = tuning.prune
    yield Figure(
        label="prune",
        number=_calls(prune.break_even),
        means=f"Placeholders for {prune.removes:,} tokens of old results; {prune.survives:,} behind the first of them are"
        " written again. Before a cold call it pays at once.",
    )


def _amount_figures(tuning: Tuning) -> Iterator[Figure]:
    """Yield the costs behind these numbers: in money, or in input tokens if no price is known."""

    def figure(label: str, nano: int, means: str) -> Figure:
        return Figure(label=label, number=_amount(nano, tuning.currency), means=means)

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
        "warm call", of.warm_call, f"The input of a call with {_tokens(tuning.trigger, tuning)} tokens."
    )
    yield figure(
        "full rewrite", of.cold_call, "The same with nothing in the cache: what a lost prefix costs."
    )


def _lifetime_figures(tuning: Tuning) -> Iterator[Figure]:
    """Yield which cache lifetime is cheaper for which pauses between calls."""
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
        return Figure(label=label, number=_amount(nano, tuning.currency), means=means)

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


def _price_figures(tuning: Tuning) -> Iterator[Figure]:
    """Yield the price ratios from which everything else follows."""
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


def _tokens(number: int, tuning: Tuning) -> str:
    """Return a size; rounded where it is an optimum and not a limit."""
    return f"{round(number, -2) if tuning.trigger_by == 'rent' else number:,}"


def _calls(number: float | None) -> str:
    """Return a number of calls, or `never`."""
    return _NEVER if number is None else f"{round(number, 6):.1f} calls"


def _amount(nano: int, currency: Currency) -> str:
    """Return an amount of money, small ones with enough digits; input tokens as a bare number."""
    dollars = abs(nano) / _NANO_PER_DOLLAR
    if currency == "tokens" or not nano or dollars >= _SMALL_AMOUNT:
        return money(nano, currency).removesuffix(" input tokens")
    digits = 1 - floor(log10(dollars))
    return f"{'-' if nano < 0 else ''}${dollars:.{digits}f}"


def presets_json(rows: list[ModelTuning]) -> list[dict[str, object]]:
    """Return the numbers as JSON values, one object per model; None means never, or that prices are unknown."""
    return [_model_json(row) for row in rows]


def _model_json(row: ModelTuning) -> dict[str, object]:
    tuning = row.tuning
    limits, is_assumed = tuning.limits, tuning.currency != "usd"
    return {
        "model": tuning.model,
        "provider": tuning.provider,
        "as_of": row.as_of,
        "context_length": tuning.context,
        "session": tuning.shape,
        "ratios": asdict(tuning.ratios) | {"assumed": is_assumed},
        "trigger": tuning.trigger,
        "trigger_share": tuning.trigger_share,
        "trigger_by": tuning.trigger_by,
        "calls_between": tuning.calls,
        "runway": tuning.runway,
        "forced": {
            "at": limits.threshold,
            "by": tuning.forced_by,
            **fields_of(limits, "wall", "cliff", "target", "runway"),
        },
        "full_compaction_replaces": tuning.replaced,
        "ways": [
            {
                "by": way.by,
                "model": (tuning.other or "") if way.by == "other" else tuning.model,
                "break_even": way.break_even,
                "best_every": way.calls,
                "best_at": way.trigger,
            }
            for way in tuning.ways
        ],
        "prune": tuning.prune,
        "usd": None if is_assumed else _dollars(tuning.amounts),
        "lifetimes": fields_of(tuning.lifetimes, "short", "long", "least_share"),
        "assumptions": row.assumptions,
    }


def _dollars(of: Amounts) -> dict[str, float | None]:
    """Return amounts in dollars; negative ones are savings, and `dead_tokens` are what rent and prune are about."""
    nano = {
        "rent_per_call": of.rent,
        "compaction": of.compaction,
        "compaction_if_cold": of.cold_compaction,
        "cold_prune": -of.cold_saves,
        "warm_call": of.warm_call,
        "cold_call": of.cold_call,
        "crossing_the_cliff": of.over_cliff,
    }
    dollars = {name: None if each is None else each / _NANO_PER_DOLLAR for name, each in nano.items()}
    return dollars | {"dead_tokens": DEAD}
