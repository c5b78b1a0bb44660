"""Kept sessions on one line each, for `lowwater status --all`."""

from collections.abc import Sequence

from msgspec import Struct
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from lowwater.cli.kept_words import ago, amount, figure, on_one_line
from lowwater.cli.model_words import short
from lowwater.cli.sessions.costs import costs_of
from lowwater.cli.tables import unclipped
from lowwater.core.accounts.figures import Figures
from lowwater.core.stored import Account

_TITLES = ("turns", "prompt", "passes", "cost", "net", "changed")
_TITLE = 40
"""Characters of a title that are shown."""
_ENDLESS = Console(width=1_000)


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


def lines_table(lines: Sequence[Line], *, width: int, now: float) -> RenderableType:
    """Return a line for each session; titles are shown where everything else has room beside them."""
    for has_titles in (any(line.title for line in lines), False):
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bright_black")
        table.add_column("session")
        table.add_column("model")
        for title in _TITLES:
            table.add_column(title, justify="right", no_wrap=True)
        for line in lines:
            table.add_row(_name(line, has_title=has_titles), Text(line.model), *_figures(line, now))
        if not has_titles or Measurement.get(_ENDLESS, _ENDLESS.options, table).maximum <= width:
            break
    return unclipped(table, width)


def _figures(line: Line, now: float) -> tuple[str | Text, ...]:
    counts = (figure(line.turns), short(line.prompt), figure(line.compactions))
    net = Text(
        amount(line.net),
        style="red" if line.net is not None and line.net < 0 else "green" if line.net else "",
    )
    return (*counts, amount(line.cost), net, Text(ago(line.changed_at, now), style="bright_black"))


def _name(line: Line, *, has_title: bool) -> Text:
    title = f" {on_one_line(line.title, _TITLE)}" if has_title and line.title else ""
    return Text.assemble(on_one_line(line.name, 200), (title, "bright_black"))
