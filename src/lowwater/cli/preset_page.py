"""The numbers of `lowwater presets` on a terminal: a table of models, or one model's page."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from difflib import get_close_matches

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lowwater.cli import preset_words
from lowwater.cli.model_words import short
from lowwater.cli.preset_json import Row
from lowwater.cli.preset_words import Figure
from lowwater.core.costs.tuning import Tuning
from lowwater.core.models.registry import Registry

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


def table(rows: Sequence[Row], day: date, registry: Registry) -> Iterator[Table | Text | Padding]:
    """Yield one row for each model, then what the columns mean."""
    grid = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim")
    grid.add_column("", overflow="fold")
    for title in _COLUMNS:
        grid.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        grid.add_row(Text(row.tuning.model), *_cells(row.tuning))
    yield grid
    yield Text()
    largest = max((row.tuning for row in rows), key=lambda tuning: tuning.shape.after)
    less = " Less where that would be more than a fifth of what fits." if _differ(rows) else ""
    yield Text(f"{preset_words.session(largest)}{less} Prices of {day.isoformat()}.")
    yield Text()
    legend = Table.grid(padding=(0, 2, 0, 0))
    for column, means in _LEGEND:
        legend.add_row(Text(column, style="dim"), means)
    yield legend
    for row in rows:
        if row.tuning.prices is None:
            said = f"{row.tuning.model}: prices not known, ratios assumed{_like(row.tuning.model, registry)}."
            yield Text(f"\n{said}", style="yellow")


def _differ(rows: Iterable[Row]) -> bool:
    return len({row.tuning.shape.after for row in rows}) > 1


def _cells(tuning: Tuning) -> tuple[str, ...]:
    riding = tuning.way("riding")
    forced = short(tuning.limits.threshold) + {"cliff": "c", "ceiling": "m"}.get(tuning.forced_by, " ")
    return (
        f"{tuning.ratios.read:.3g}",
        short(tuning.trigger),
        f"{tuning.trigger_share:.0%}",
        f"{tuning.calls:.0f}",
        preset_words.calls(riding.break_even if riding else None).removesuffix(" calls"),
        preset_words.calls(tuning.prune.break_even).removesuffix(" calls"),
        forced,
        preset_words.amount(tuning.amounts.rent, "usd") if tuning.currency == "usd" else "–",
    )


def page(row: Row, registry: Registry) -> Iterator[Table | Text | Padding]:
    """Yield one model's numbers under headings, each with what it means."""
    tuning = row.tuning
    known = f"prices of {row.as_of}" if tuning.prices else "prices not known"
    yield Text.assemble((tuning.model, "bold"), f" · {tuning.provider} · {tuning.context:,} tokens · {known}")
    yield Text(preset_words.session(tuning), style="dim")
    parts = (
        ("When to compact", preset_words.schedule(tuning)),
        ("After how many calls it has paid for itself", preset_words.break_evens(tuning)),
        ("Money" if tuning.prices else "Money, as worth input tokens", preset_words.amounts(tuning)),
        ("Cache lifetime", preset_words.lifetimes(tuning)),
        ("Prices" if tuning.prices else "Prices, assumed", preset_words.prices(tuning)),
    )
    for title, figures in parts:
        yield Text.assemble("\n", (title, "bold"))
        yield Padding(_grid(figures), (0, 0, 0, 2))
    if row.assumptions:
        like = _like(tuning.model, registry) if tuning.prices is None else ""
        yield Text.assemble("\n", ("Assumptions", "bold yellow"))
        yield Padding(Text("\n".join(row.assumptions) + like.replace("; l", "\nL", 1)), (0, 0, 0, 2))


def _like(name: str, registry: Registry) -> str:
    """Return the listed names most like one that is not, behind a semicolon; nothing if none is."""
    names = [model.name for model in registry.models]
    close = [listed for listed in names if name in listed][:3] or get_close_matches(name, names, n=3)
    return f"; listed are {', '.join(close)}" if close else ""


def _grid(figures: Iterable[Figure]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True, width=15)
    grid.add_column(justify="right", no_wrap=True, min_width=11)
    grid.add_column(overflow="fold")
    for figure in figures:
        grid.add_row(figure.label, Text(figure.number, style="bold"), Text(figure.means))
    return grid
