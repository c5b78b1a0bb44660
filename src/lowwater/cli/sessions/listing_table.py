"""Sessions as rows of a table: on one line each where there is room, else on two."""

from collections.abc import Sequence

from msgspec import Struct
from rich.cells import cell_len, set_cell_size
from rich.table import Table
from rich.text import Text

from lowwater.cli.kept_words import ago, amount, on_one_line, span

_FIGURES = ("msgs", "turns", "comp.", "cost", "age")
_WIDTHS = (8, 7, 7, 10, 9)
"""Columns that figures have below each other where words have little room."""
_MODEL = 16
"""Columns that a model's name has in any case."""


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
        table.add_column(title, justify="right" if title in figures else "left", no_wrap=True, max_width=30)
    for cells in zip(*shown.values(), strict=True):
        table.add_row(*(Text(on_one_line(cell, 80)) for cell in cells))
    return table


def narrow_table(rows: Sequence[Row], now: float, width: int) -> Text:
    """Return a table in which title, source and end stand below the name, where there is something to say."""
    room = max(30, width - sum(_WIDTHS) - 2)
    names, models = (_widest(words) for words in ([row.name for row in rows], [row.model for row in rows]))
    models = min(models, max(_MODEL, room - names))
    names = min(names, room - models)

    def line(name: str, model: str, figures: Sequence[str]) -> str:
        words = f"{_sized(name, names)}  {_sized(model, models)}"
        return words + "".join(f"{figure:>{wide}}" for figure, wide in zip(figures, _WIDTHS, strict=True))

    lines = [Text(line("session", "model", _FIGURES), style="bright_black")]
    tells_source = len({row.source for row in rows}) > 1
    for row in rows:
        lines.append(Text(line(row.name, row.model, _figures(row, now))))
        source = f"from {row.source}" if tells_source else ""
        ended = f"ended {_ended(row, now)}" if row.ended_at is not None else ""
        more = " · ".join(said for said in (row.title, source, ended) if said)
        if more:
            lines.append(Text(f"  {on_one_line(more, max(20, width - 2))}", style="bright_black"))
    return Text("\n").join(lines)


def _widest(words: Sequence[str]) -> int:
    return max(7, *(cell_len(on_one_line(word, 80)) for word in words))


def _sized(word: str, cells: int) -> str:
    """Return a word in so many cells, cut with an ellipsis."""
    said = on_one_line(word, 80)
    return set_cell_size(said, cells) if cell_len(said) <= cells else f"{set_cell_size(said, cells - 1)}…"


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
