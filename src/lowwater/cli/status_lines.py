"""Kept sessions on one line each, for `lowwater status --all`."""

from collections.abc import Iterator, Sequence

from msgspec import Struct
from rich.cells import cell_len
from rich.text import Text

from lowwater.account.figures import Figures
from lowwater.cli.kept_words import ago, amount, figure, fitted, on_one_line
from lowwater.cli.model_words import short
from lowwater.cli.sessions.costs import costs_of
from lowwater.values.stored import Account

_TITLES = ("turns", "prompt", "passes", "cost", "net", "changed")
_LEAST = 12
"""Columns that a name and a model have at least."""
_MODEL = 20
"""Columns that a model has at most."""


class Line(Struct, frozen=True, kw_only=True):
    """One session on one line; money is in nano-dollars and None if it is not known."""

    name: str
    title: str
    model: str
    turns: int
    prompt: int | None
    """The size of its last prompt."""
    compactions: int
    cost: int | None
    """Calls and summaries; None as soon as the price of one is not known."""
    net: int | None
    changed_at: float


def line_of(account: Account, total: Figures) -> Line:
    """Return a session on one line."""
    last = account.records[-1].usage if account.records else None
    return Line(
        name=account.session.name,
        title=account.session.about.title,
        model=account.session.model,
        turns=total.turns,
        prompt=None if last is None else last.prompt,
        compactions=total.passes,
        cost=costs_of(account).total,
        net=total.net,
        changed_at=account.session.changed_at,
    )


def draw_lines(lines: Sequence[Line], *, width: int, now: float) -> Iterator[Text]:
    """Yield a heading and a line for each session; the name takes what the figures leave, a title only what is left then."""
    rows = [_figures(line, now) for line in lines]
    columns = [max(map(len, column)) for column in zip(_TITLES, *rows, strict=True)]
    gap = "  " if width >= sum(columns) + 2 * (len(columns) + 1) + 2 * _LEAST else " "
    free = width - sum(columns) - len(gap) * (len(columns) + 1)
    model = max(_LEAST, min(_MODEL, free - _LEAST, max(len(line.model) for line in lines)))
    room = max(_LEAST, free - model)
    heading = [fitted("session", room), fitted("model", model)]
    heading += [f"{title:>{size}}" for title, size in zip(_TITLES, columns, strict=True)]
    yield Text(gap.join(heading), style="bright_black")
    for line, row in zip(lines, rows, strict=True):
        cells = [f"{cell:>{size}}" for cell, size in zip(row, columns, strict=True)]
        *before, net, changed = cells
        yield Text.assemble(
            _name(line, room),
            f"{gap}{fitted(line.model, model)}{gap}{gap.join(before)}{gap}",
            (net, "red" if line.net is not None and line.net < 0 else "green" if line.net else ""),
            (f"{gap}{changed}", "bright_black"),
        )


def _figures(line: Line, now: float) -> tuple[str, ...]:
    counts = (figure(line.turns), short(line.prompt), figure(line.compactions))
    return (*counts, amount(line.cost), amount(line.net), ago(line.changed_at, now))


def _name(line: Line, room: int) -> Text:
    name = on_one_line(line.name, room)
    name = fitted(name, min(room, cell_len(name)))
    left = room - cell_len(name) - 1
    title = fitted(on_one_line(line.title, max(1, left)), left) if line.title and left >= _LEAST else ""
    return Text.assemble(name, (f" {title}" if title else " " * (room - cell_len(name)), "bright_black"))
