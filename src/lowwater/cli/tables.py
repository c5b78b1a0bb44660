"""Printing pages and JSON; tables that are never cut off, bars and small plots."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import msgspec
import typer
from msgspec import Struct
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Column, Table
from rich.text import Text

from lowwater.cli.wording import amount, figure, short
from lowwater.core.accounts.cadence import Cadence

LABEL = 10
"""Width of a label, including the gap before its value."""
_MAX_WIDTH, _MIN_WIDTH = 120, 40
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_MARGIN = 7
"""Columns for the axis labels on the left."""
_MAX_VALUE_WIDTH = 4
"""The most columns that one value is drawn with."""
_MAX_LINE_RATIO = 3
"""A line is drawn if it is at most this many times the highest value."""
_MIN_TEXT_WIDTH = 16
"""The least width at which folded text is still readable."""
_PLOTTED = frozenset("█▉▊▋▌▍▎▏▇▆▅▄▃▂▁░ ")


class Plot(Struct, frozen=True, kw_only=True):
    """Values to plot, the indexes of those to mark, and a height to draw a line at."""

    values: Sequence[int | None]
    """None leaves a gap."""
    marked: Collection[int] = ()
    line: int | None = None

    @property
    def top(self) -> int:
        """The value at full height."""
        return max(self._highest, self.line or 0, 1) if self.has_line else max(self._highest, 1)

    @property
    def has_line(self) -> bool:
        """Whether the line is drawn: a line far above all values would flatten the plot."""
        return self.line is not None and self.line <= _MAX_LINE_RATIO * self._highest

    @property
    def _highest(self) -> int:
        return max((value for value in self.values if value is not None), default=0)


def page_width(most: int = _MAX_WIDTH) -> int:
    """Return the width of a page: that of the terminal, within limits."""
    return max(_MIN_WIDTH, min(Console().width, most))


def print_page(blocks: Iterable[RenderableType], *, most: int = _MAX_WIDTH) -> None:
    """Print blocks one below the other; nothing in a table is cut off, however narrow the terminal is."""
    console, width = Console(highlight=False), page_width(most)
    for block in blocks:
        console.print(fitted_block(block, width), width=width)


def fitted_block(block: RenderableType, width: int) -> RenderableType:
    """Return a block so that nothing in it is cut off; an expanding table already fits."""
    return unclipped(block, width) if isinstance(block, Table) and not block.expand else block


def print_lines(lines: Iterable[Text]) -> None:
    """Print lines without wrapping them; much faster than `print_page` for hundreds of lines."""
    console = Console(highlight=False)
    for line in lines:
        console.print(line, no_wrap=True, overflow="ignore", crop=False)


def print_json(said: object) -> None:
    """Print a value as JSON."""
    typer.echo(msgspec.json.format(msgspec.json.encode(said), indent=2).decode())


def fields_of(value: object, *names: str) -> dict[str, Any]:
    """Return some attributes of a value, for JSON."""
    return {name: getattr(value, name) for name in names}


def grid(title: str = "", *, label: int | None = LABEL) -> Table:
    """Return an empty table of labels and values; labels have a fixed width, or as much as they need."""
    table = Table(
        box=None,
        show_header=False,
        padding=(0, 2, 0, 0),
        pad_edge=False,
        title=title or None,
        title_justify="left",
        title_style="bold",
    )
    table.add_column(style="bright_black", no_wrap=True, width=label - 2 if label else None)
    table.add_column(overflow="fold")
    return table


def cadence_table(of: Cadence) -> Table:
    """Return a table of the cadence metrics."""
    table = grid("cadence", label=28)
    table.add_row("compactions per 100 turns", figure(of.events_per_100_turns))
    table.add_row("turns between them", figure(of.turns_between_events))
    table.add_row("tokens reclaimed by each", figure(of.reclaimed_per_event, places=0))
    table.add_row("tokens rewritten", figure(of.rewritten))
    table.add_row("earliest changed message", figure(of.earliest_changed))
    mean = (
        f"; a summary has {of.mean_summary_tokens:,.0f} tokens" if of.mean_summary_tokens is not None else ""
    )
    table.add_row("summary calls", f"{of.summary_calls:,}{mean}")
    table.add_row(
        "prunes per summary", f"{figure(of.prunes_per_summary)} ({of.prunes:,} to {of.summaries:,})"
    )
    table.add_row("prompt + summary tokens", figure(of.prompt_and_summary_tokens))
    if of.last_mode:
        table.add_row("last mode", of.last_mode)
    if of.skips:
        table.add_row(
            "left as it was", ", ".join(f"{code} {times:,}" for code, times in list(of.skips.items())[:3])
        )
    return table


def net(nano: int | None) -> Text:
    """Return a net saving, red if it is a loss."""
    return Text(
        amount(nano), style="red" if nano is not None and nano < 0 else "green" if nano else "default"
    )


def figures_table(
    *texts: str, figures: Sequence[str] = (), gap: int = 2, room: int | None = None, header: bool = True
) -> Table:
    """Return an empty table without rules: columns of text, then right-aligned ones; `room` limits the first column."""
    table = Table(
        box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style="bright_black", show_header=header
    )
    for number, title in enumerate(texts):
        table.add_column(title, no_wrap=True, overflow="ellipsis", max_width=None if number else room)
    for title in figures:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def bars_table(*, room: int | None = None) -> Table:
    """Return an empty table of labels, bars and what is said of them."""
    return figures_table("", "", "", header=False, room=room)


def draw_plot(plot: Plot, *, width: int, height: int = 6, named: str = "turn") -> Iterator[Text]:
    """Yield the plot line by line: bars (the highest of values that share a column), marks, and the ends of the axis."""
    room, count = max(1, width - _MARGIN), len(plot.values)
    columns = min(room, count * max(1, min(_MAX_VALUE_WIDTH, room // max(count, 1))))
    heights = _heights(plot.values, columns)
    line = _row(plot.line, plot.top, height) if plot.has_line and plot.line else None
    for row in range(height, 0, -1):
        label = f"{_label(row, line, plot, height):>{_MARGIN - 1}} "
        cells = _cells(heights, row, height, plot.top, is_line=row == line)
        yield Text(label, style="bright_black") + cells
    marks = [" "] * columns
    for at in plot.marked:
        marks[_columns(min(at, count - 1), count, columns)[0]] = "▲"
    yield Text(" " * _MARGIN) + Text("".join(marks).rstrip(), style="magenta")
    first, last = f"{named} 1", f"{count:,}"
    ends = f"{first}{last:>{max(len(last) + 1, columns - len(first))}}"
    yield Text(f"{'':>{_MARGIN}}{ends}", style="bright_black")


def bar(part: float, whole: float, width: int, *, style: str = "cyan") -> Text:
    """Return a bar that fills its share of the width; at least one cell if `part` is positive."""
    cells = min(width, round(width * part / whole)) if whole > 0 else 0
    return Text("█" * max(cells, int(part > 0 and whole > 0)), style=style)


def _heights(values: Sequence[int | None], columns: int) -> list[int | None]:
    """Return the highest value in each column."""
    heights: list[int | None] = [None] * columns
    for at, value in enumerate(values):
        if value is not None:
            for column in range(*_columns(at, len(values), columns)):
                heights[column] = max(heights[column] or 0, value)
    return heights


def _columns(at: int, count: int, columns: int) -> tuple[int, int]:
    """Return the first column of a value and the one after its last."""
    first = at * columns // count
    return first, max(first + 1, (at + 1) * columns // count)


def _row(value: int, top: int, height: int) -> int:
    """Return the row of a value, counted from 1 at the bottom."""
    return max(1, min(height, -(-value * height // top)))


def _label(row: int, line: int | None, plot: Plot, height: int) -> str:
    if row == line and plot.line is not None:
        return short(plot.line)
    return short(plot.top) if row == height else "0" if row == 1 else ""


def _cells(heights: Sequence[int | None], row: int, height: int, top: int, *, is_line: bool) -> Text:
    text = Text()
    for value in heights:
        eighths = 0 if not value else max(1, round(8 * height * value / top)) - 8 * (row - 1)
        if eighths > 0:
            text.append(_EIGHTHS[min(8, eighths)], style="cyan")
        else:
            text.append("┄" if is_line else " ", style="yellow")
    return text


def unclipped(table: Table, width: int) -> RenderableType:
    """Return the table so that nothing in it is cut off at `width` columns.

    If it fits, it stays as it is. Otherwise bars are dropped, then text columns are folded (never the first column). If that
    is not enough, each row becomes its first cell with the others listed below.
    """
    if not all(isinstance(cell, str | Text) for column in table.columns for cell in column.cells):
        return table
    cells = [[_text(cell) for cell in column.cells] for column in table.columns]
    sizes = [max(map(_widest, (_text(column.header), *rows))) for column, rows in _with_cells(table, cells)]
    # rich measures the content of a column but renders within max_width.
    for column in table.columns:
        column.max_width = None
    if table.show_header and _total_width(table, sizes) > width and _gap(table) > 1:
        table.padding = (0, 1, 0, 0)
    if _total_width(table, sizes) <= width:
        _narrow_to(table, sizes, width)
        return table
    kept = [at for at, rows in enumerate(cells) if not _is_plot(rows)]
    folding = [at for at in kept[1:] if table.columns[at].justify != "right"]
    fixed = _total_width(
        table, [0 if at in folding else max(sizes[at], table.columns[at].width or 0) for at in kept]
    )
    shares = _shares([sizes[at] for at in folding], width - fixed)
    if shares is None:
        return _stacked(table, cells, kept)
    for at, share in zip(folding, shares, strict=True):
        column = table.columns[at]
        column.no_wrap, column.overflow = False, "fold"
        column.width = column.min_width = share
    table.columns = [table.columns[at] for at in kept]
    for at, column in enumerate(table.columns):
        column._index = at
    return table


def _narrow_to(table: Table, sizes: Sequence[int], width: int) -> None:
    """Shrink columns of a fixed width, those with most spare room first, until the table fits."""
    widths = [max(size, column.width or 0) for size, column in zip(sizes, table.columns, strict=True)]
    while _total_width(table, widths) > width:
        roomiest = max(range(len(widths)), key=lambda at: widths[at] - sizes[at])
        widths[roomiest] -= 1
    for column, size in zip(table.columns, widths, strict=True):
        if column.width is not None:
            column.width = size


def _shares(sizes: Sequence[int], room: int) -> list[int] | None:
    """Return the width that each text column gets of `room`; None if that is too little to read."""
    shares = list(sizes)
    while sum(shares) > room:
        widest = max(range(len(shares)), key=lambda at: shares[at], default=-1)
        if widest < 0 or shares[widest] <= _MIN_TEXT_WIDTH:
            return None
        shares[widest] -= 1
    return shares


def _stacked(table: Table, cells: Sequence[Sequence[Text]], kept: Sequence[int]) -> Text:
    """Return each row as its first cell, with the other cells below it."""
    blocks = []
    for row, made in enumerate(table.rows):
        first, *others = (cells[at][row] for at in kept)
        titles = [_text(table.columns[at].header).plain for at in kept[1:]]
        figures = [
            f"{title} {cell.plain}".strip() for title, cell in zip(titles, others, strict=True) if cell.plain
        ]
        block = Text.assemble((first.plain, "bold"), *((f"\n  {line}", "") for line in _lines(figures)))
        block.stylize(made.style or "")
        blocks.append(block)
    return Text("\n").join(blocks)


def _lines(figures: Sequence[str]) -> list[str]:
    """Return the figures joined to short lines, a few on each."""
    lines: list[str] = []
    for each in figures:
        if lines and len(lines[-1]) + len(each) < 34:
            lines[-1] += f" · {each}"
        else:
            lines.append(each)
    return lines


def _with_cells(table: Table, cells: Sequence[Sequence[Text]]) -> list[tuple[Column, Sequence[Text]]]:
    return list(zip(table.columns, cells, strict=True))


def _total_width(table: Table, sizes: Sequence[int]) -> int:
    return sum(sizes) + _gap(table) * (len(sizes) if table.pad_edge else max(0, len(sizes) - 1))


def _gap(table: Table) -> int:
    return table.padding[1] + table.padding[3]


def _is_plot(rows: Sequence[Text]) -> bool:
    drawn = "".join(row.plain for row in rows)
    return bool(drawn.strip()) and set(drawn) <= _PLOTTED


def _widest(text: Text) -> int:
    return max(map(cell_len, text.plain.split("\n")))


def _text(cell: RenderableType) -> Text:
    return cell if isinstance(cell, Text) else Text.from_markup(str(cell))
