"""Small plots of block characters, as wide as they are told."""

from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct
from rich.text import Text

from lowwater.cli.model_words import short

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_MARGIN = 7
"""Columns for the numbers on the left."""
_WIDEST = 4
"""Columns that one value takes where there are few of them."""

_NEAR = 3
"""How many times the highest value a line may be to be drawn."""


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
