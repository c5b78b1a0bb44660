"""Sessions as rows of a table: on one line each where there is room, else on two."""

from collections.abc import Sequence

from msgspec import Struct
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from lowwater.cli.kept_words import ago, amount, on_one_line, span
from lowwater.cli.tables import unclipped

_FIGURES = ("msgs", "turns", "comp.", "cost", "age")


class Row(Struct, frozen=True, kw_only=True):
    """A session in `--json`; times are seconds since the epoch, `cost` is in nano-dollars and null if it is not known."""

    name: str
    title: str
    source: str
    parent: str
    model: str
    messages: int
    turns: int
    compactions: int
    cost: int | None
    opened_at: float
    changed_at: float
    ended_at: float | None
    ended_because: str


def wide_table(rows: Sequence[Row], now: float) -> Table:
    """Return a table with all that is told of a session on one line; what none of them has is left out."""
    words = {
        "session": [row.name for row in rows],
        "title": [row.title for row in rows],
        "source": [row.source for row in rows],
        "model": [row.model for row in rows],
    }
    figures = dict(zip(_FIGURES, zip(*(_figures(row, now) for row in rows), strict=True), strict=True))
    columns = {**words, **figures, "ended": [_ended(row, now) for row in rows]}
    shown = {title: cells for title, cells in columns.items() if any(cells)}
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bright_black")
    for title in shown:
        table.add_column(title, justify="right" if title in figures else "left", no_wrap=True)
    for cells in zip(*shown.values(), strict=True):
        table.add_row(*(Text(on_one_line(cell, 200)) for cell in cells))
    return table


def narrow_table(rows: Sequence[Row], now: float, width: int) -> RenderableType:
    """Return a table in which title, source and end share a column, and all of it can be read in `width` columns."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bright_black")
    table.add_column("session")
    table.add_column("model")
    for title in _FIGURES:
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("", style="bright_black")
    tells_source = len({row.source for row in rows}) > 1
    for row in rows:
        source = f"from {row.source}" if tells_source else ""
        ended = f"ended {_ended(row, now)}" if row.ended_at is not None else ""
        more = " · ".join(said for said in (row.title, source, ended) if said)
        name = Text(on_one_line(row.name, 200))
        table.add_row(name, Text(row.model), *_figures(row, now), Text(on_one_line(more, 200)))
    return unclipped(table, width)


def _figures(row: Row, now: float) -> tuple[str, ...]:
    return (
        f"{row.messages:,}",
        f"{row.turns:,}",
        f"{row.compactions:,}",
        "–" if not row.turns and row.cost == 0 else amount(row.cost),
        span(now - row.changed_at) if row.changed_at else "–",
    )


def _ended(row: Row, now: float) -> str:
    if row.ended_at is None:
        return ""
    because = f" by {on_one_line(row.ended_because, 40)}" if row.ended_because else ""
    return f"{ago(row.ended_at, now)}{because}"
