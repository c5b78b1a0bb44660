"""Tables that never lose a figure, and small plots."""

from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct
from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Column, Table
from rich.text import Text

from lowwater.cli.wording import short

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_MARGIN = 7
"""Columns for the numbers on the left."""
_WIDEST = 4
"""Columns that one value takes where there are few of them."""
_NEAR = 3
"""How many times the highest value a line may be to be drawn."""
_LEAST = 16
"""Columns in which a name can still be read when it is folded."""
_PLOTTED = frozenset("█▉▊▋▌▍▎▏▇▆▅▄▃▂▁░ ")


class Course(Struct, frozen=True, kw_only=True):
    """Values in order, the indexes of those to mark, and a height to draw a line at."""

    values: Sequence[int | None]
    """None leaves a gap."""
    marked: Collection[int] = ()
    line: int | None = None

    @property
    def top(self) -> int:
        """What the full height stands for."""
        return max(self._highest, self.line or 0, 1) if self.has_line else max(self._highest, 1)

    @property
    def has_line(self) -> bool:
        """Whether the line is drawn: one far above all values would press them flat."""
        return self.line is not None and self.line <= _NEAR * self._highest

    @property
    def _highest(self) -> int:
        return max((value for value in self.values if value is not None), default=0)


def draw_course(course: Course, *, width: int, height: int = 6, named: str = "turn") -> Iterator[Text]:
    """Yield the values as columns, the highest of those that share one, with marks and the ends of the axis below."""
    room, count = max(1, width - _MARGIN), len(course.values)
    columns = min(room, count * max(1, min(_WIDEST, room // max(count, 1))))
    heights = _heights(course.values, columns)
    line = _row(course.line, course.top, height) if course.has_line and course.line else None
    for row in range(height, 0, -1):
        label = f"{_label(row, line, course, height):>{_MARGIN - 1}} "
        cells = _cells(heights, row, height, course.top, is_line=row == line)
        yield Text(label, style="bright_black") + cells
    marks = [" "] * columns
    for at in course.marked:
        marks[_columns(min(at, count - 1), count, columns)[0]] = "▲"
    yield Text(" " * _MARGIN) + Text("".join(marks).rstrip(), style="magenta")
    first, last = f"{named} 1", f"{count:,}"
    ends = f"{first}{last:>{max(len(last) + 1, columns - len(first))}}"
    yield Text(f"{'':>{_MARGIN}}{ends}", style="bright_black")


def bar(part: float, whole: float, width: int, *, style: str = "cyan") -> Text:
    """Return a bar that fills its share of the width; something is never nothing."""
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
    """Return from which column up to which a value is drawn."""
    first = at * columns // count
    return first, max(first + 1, (at + 1) * columns // count)


def _row(value: int, top: int, height: int) -> int:
    """Return the row, from 1 at the bottom, that a height lies in."""
    return max(1, min(height, -(-value * height // top)))


def _label(row: int, line: int | None, course: Course, height: int) -> str:
    if row == line and course.line is not None:
        return short(course.line)
    return short(course.top) if row == height else "0" if row == 1 else ""


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
    """Return the table so that everything in it can be read in `width` columns; figures and names are never cut.

    Where there is room it is the table as it was. Else bars go, then words fold onto more lines, though never the name
    that a row begins with; where there is still too little room, each row is a name with its figures listed below.
    """
    if not all(isinstance(cell, str | Text) for column in table.columns for cell in column.cells):
        return table
    cells = [[_text(cell) for cell in column.cells] for column in table.columns]
    sizes = [max(map(_widest, (_text(column.header), *rows))) for column, rows in _both(table, cells)]
    # A table measures what is in it, not what a column was limited to.
    for column in table.columns:
        column.max_width = None
    if table.show_header and _whole(table, sizes) > width and _gap(table) > 1:
        table.padding = (0, 1, 0, 0)
    if _whole(table, sizes) <= width:
        _narrow_to(table, sizes, width)
        return table
    kept = [at for at, rows in enumerate(cells) if not _is_plot(rows)]
    folding = [at for at in kept[1:] if table.columns[at].justify != "right"]
    fixed = _whole(
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
    """Take from columns of a fixed width what they do not need, the roomiest first, until the table fits."""
    widths = [max(size, column.width or 0) for size, column in zip(sizes, table.columns, strict=True)]
    while _whole(table, widths) > width:
        roomiest = max(range(len(widths)), key=lambda at: widths[at] - sizes[at])
        widths[roomiest] -= 1
    for column, size in zip(table.columns, widths, strict=True):
        if column.width is not None:
            column.width = size


def _shares(sizes: Sequence[int], room: int) -> list[int] | None:
    """Return the columns that each of several words gets of a room; None if that is too little to read them."""
    shares = list(sizes)
    while sum(shares) > room:
        widest = max(range(len(shares)), key=lambda at: shares[at], default=-1)
        if widest < 0 or shares[widest] <= _LEAST:
            return None
        shares[widest] -= 1
    return shares


def _stacked(table: Table, cells: Sequence[Sequence[Text]], kept: Sequence[int]) -> Text:
    """Return each row as its first cell and, below it, what else it has."""
    blocks = []
    for row, made in enumerate(table.rows):
        first, *others = (cells[at][row] for at in kept)
        titles = [_text(table.columns[at].header).plain for at in kept[1:]]
        told = [
            f"{title} {cell.plain}".strip() for title, cell in zip(titles, others, strict=True) if cell.plain
        ]
        block = Text.assemble((first.plain, "bold"), *((f"\n  {said}", "") for said in _lines(told)))
        block.stylize(made.style or "")
        blocks.append(block)
    return Text("\n").join(blocks)


def _lines(told: Sequence[str]) -> list[str]:
    """Return figures with their titles, a few to a line."""
    lines: list[str] = []
    for said in told:
        if lines and len(lines[-1]) + len(said) < 34:
            lines[-1] += f" · {said}"
        else:
            lines.append(said)
    return lines


def _both(table: Table, cells: Sequence[Sequence[Text]]) -> list[tuple[Column, Sequence[Text]]]:
    return list(zip(table.columns, cells, strict=True))


def _whole(table: Table, sizes: Sequence[int]) -> int:
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
