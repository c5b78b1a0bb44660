"""Tables of an audit: a line for each session, model or day."""

from collections.abc import Iterator, Sequence

from msgspec import Struct
from rich.table import Table
from rich.text import Text

from lowwater.cli.audit_words import from_the_end, session_name
from lowwater.cli.kept_words import amount, figure, share
from lowwater.cli.model_words import short
from lowwater.lab.audit.report import Line, Report, by_day, by_model, dearest, line_of

TOP = 5
MOST = 30
"""Lines that are shown of a long list."""
_WIDE = 105
_LEAST = 12
_NO_DAY = "no time recorded"
_NO_MODEL = "not named"


def lines_table(report: Report, *, by: str, width: int, most: int = MOST) -> Iterator[Table | Text]:
    """Yield the table by session, model or day, and how many lines it leaves out."""
    match by:
        case "session":
            sessions = dearest(report.sessions)
            named = [_Named(name=session_name(each), line=line_of(each)) for each in sessions]
        case "model":
            named = [_Named(name=line.name or _NO_MODEL, line=line) for line in by_model(report.sessions)]
        case _:
            named = [_Named(name=line.name or _NO_DAY, line=line) for line in by_day(report.sessions)]
    yield _table(named[-most:] if by == "day" else named[:most], by, width)
    if len(named) > most == MOST:
        yield Text(f"and {len(named) - most:,} more: --json has them all", style="bright_black")


class _Named(Struct, frozen=True, kw_only=True):
    name: str
    line: Line


def plain_table(*, header: bool = False, gap: int = 2) -> Table:
    """Return an empty table without lines."""
    return Table(
        box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style="bright_black", show_header=header
    )


def _table(named: Sequence[_Named], of: str, width: int) -> Table:
    is_wide, gap = width >= _WIDE, 2 if width >= _WIDE else 1
    titles = ["calls", "sent", "cached", "written", "cost", "misses"]
    titles = [*titles[:2], "plain", "read", *titles[2:4], "answers", *titles[4:]] if is_wide else titles
    titles = titles if of == "session" else ["sessions", *titles]
    rows = [_cells(each.line, is_wide=is_wide, is_session=of == "session") for each in named]
    taken = sum(max(map(len, column)) for column in zip(titles, *rows, strict=True))
    room = max(_LEAST, width - taken - gap * (len(titles) + 1))
    table = plain_table(header=True, gap=gap)
    table.add_column(of, no_wrap=True, overflow="ellipsis", max_width=room)
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    for each, cells in zip(named, rows, strict=True):
        shown = from_the_end(each.name, room) if of == "session" else each.name
        table.add_row(Text(shown), *cells)
    return table


def _cells(line: Line, *, is_wide: bool, is_session: bool) -> list[str]:
    of = line.figures
    cells = [figure(of.calls), short(of.prompt), share(of.hit_share), short(of.written)]
    if is_wide:
        cells = [*cells[:2], short(of.uncached), short(of.cache_read), *cells[2:], short(of.output)]
    cells += [amount(of.cost), "–" if line.lost is None else amount(line.lost)]
    return cells if is_session else [figure(line.sessions), *cells]
