"""`lowwater sessions list` and `show`: stored sessions in a table, and one session on a page."""

import time
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from msgspec import Struct
from msgspec.structs import asdict
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lowwater.cli.command import AsJson
from lowwater.cli.sessions.changes import ledger_of
from lowwater.cli.stored_sessions import SessionName, StoreAddress, accounts_of, named, opened_store
from lowwater.cli.tables import (
    cadence_table,
    fields_of,
    figures_table,
    grid,
    print_json,
    print_lines,
    print_page,
)
from lowwater.cli.wording import ago, amount, moment, on_one_line, printable, span
from lowwater.core.accounts.cadence import Cadence, cadence
from lowwater.core.accounts.figures import Costs, costs_of
from lowwater.core.entries import ModelChanged, Opened
from lowwater.core.formats.files import system_text, tool_names
from lowwater.core.ledger import Ledger
from lowwater.core.stored import About, Account, Landmark, Listed
from lowwater.core.wording import counted
from lowwater.protocols import Store

# list

_FIGURES = ("msgs", "turns", "comp.", "cost", "age")
_SHOWN = 20
"""Rows of the table without --limit."""
_UNBOUNDED = 1_000
"""A width in columns that any table fits into."""


def list_sessions(
    *,
    limit: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="At most this many; default: 20, or all with --json."),
    ] = None,
    source: Annotated[
        str, typer.Option(metavar="NAME", help="Only sessions from this source: cli, import, …")
    ] = "",
    json: AsJson = False,
    store: StoreAddress = "",
) -> None:
    """List the stored sessions, the most recently changed first.

    Costs include all calls, also those that wrote summaries. If the price of
    one of them is not known, the cost is unknown.

    lowwater sessions
    lowwater sessions list --limit 100 --source import
    lowwater sessions --json | jq '.sessions[].name'
    """
    with opened_store(store, is_needed=False) as opened:
        known = [each for each in opened.sessions() if not source or each.about.source == source]
        chosen = known[: limit or (len(known) if json else _SHOWN)]
        rows = session_rows(opened, chosen)
    if json:
        print_json({"total": len(known), "sessions": [row.as_json() for row in rows]})
        return
    if not known:
        where = f" from {on_one_line(source, 40)}" if source else ""
        print_lines([Text(f"No session{where} is kept here yet.")])
        return
    now, console = time.time(), Console(highlight=False)
    wide = wide_table(rows, now)
    if console.measure(wide, options=console.options.update(width=_UNBOUNDED)).maximum <= console.width:
        console.print(wide)
    else:
        print_page([narrow_table(rows, now)])
    if len(rows) < len(known):
        more = f"\n{len(rows):,} of {len(known):,} sessions; --limit shows more."
        print_lines([Text(more, style="bright_black")])


class ListingRow(Struct, frozen=True, kw_only=True):
    """A session with its cost in nano-dollars, None if that is not known."""

    session: Listed
    cost: int | None

    def as_json(self) -> dict[str, object]:
        """Return the row for programs; times are seconds since the epoch."""
        sizes = ("name", "model", "messages", "turns", "compactions", "opened_at", "changed_at")
        return fields_of(self.session, *sizes) | asdict(self.session.about) | {"cost": self.cost}


def session_rows(store: Store, chosen: Sequence[Listed]) -> list[ListingRow]:
    """Return the sessions with their costs; the cost of one whose account is damaged is unknown, with a warning."""
    accounts = accounts_of(store, [each.name for each in chosen])
    costs = {account.session.name: costs_of(account).total for account in accounts}
    return [ListingRow(session=each, cost=costs.get(each.name)) for each in chosen]


def wide_table(rows: Sequence[ListingRow], now: float) -> Table:
    """Return a table with one line for each session, without columns that would be empty."""
    words = {
        "session": [row.session.name for row in rows],
        "title": [row.session.about.title for row in rows],
        "source": [row.session.about.source for row in rows],
        "model": [row.session.model for row in rows],
    }
    figures = dict(zip(_FIGURES, zip(*(_figures(row, now) for row in rows), strict=True), strict=True))
    columns = {**words, **figures, "ended": [_ended(row.session.about, now) for row in rows]}
    shown = {title: cells for title, cells in columns.items() if any(cells)}
    table = figures_table()
    for title in shown:
        table.add_column(title, justify="right" if title in figures else "left", no_wrap=True)
    for cells in zip(*shown.values(), strict=True):
        table.add_row(*(Text(on_one_line(cell, 200)) for cell in cells))
    return table


def narrow_table(rows: Sequence[ListingRow], now: float) -> Table:
    """Return a table for a narrow page: title, source and end share one column."""
    table = figures_table("session", "model", figures=_FIGURES, gap=1)
    table.add_column("", style="bright_black")
    tells_source = len({row.session.about.source for row in rows}) > 1
    for row in rows:
        about = row.session.about
        source = f"from {about.source}" if tells_source else ""
        ended = f"ended {_ended(about, now)}" if about.ended_at is not None else ""
        more = " · ".join(said for said in (about.title, source, ended) if said)
        name = Text(on_one_line(row.session.name, 200))
        table.add_row(name, Text(row.session.model), *_figures(row, now), Text(on_one_line(more, 200)))
    return table


def _figures(row: ListingRow, now: float) -> tuple[str, ...]:
    of = row.session
    return (
        f"{of.messages:,}",
        f"{of.turns:,}",
        f"{of.compactions:,}",
        "–" if not of.turns and row.cost == 0 else amount(row.cost),
        span(now - of.changed_at) if of.changed_at else "–",
    )


def _ended(about: About, now: float) -> str:
    if about.ended_at is None:
        return ""
    because = f" by {on_one_line(about.ended_because, 40)}" if about.ended_because else ""
    return f"{ago(about.ended_at, now)}{because}"


# show

_LINES = 6
"""Lines of a system prompt that are shown without --full."""
_NAMES = 8
"""How many tools and children are named."""


def show(
    name: SessionName,
    *,
    full: Annotated[bool, typer.Option("--full", help="Show the whole system prompt.")] = False,
    json: AsJson = False,
    store: StoreAddress = "",
) -> None:
    """Show all about a session: lineage, models, sizes, costs.

    The history is everything that was stored; the view is what the model is
    shown now. Tokens are counted when messages arrive, in the session's
    vocabulary.

    lowwater sessions show refactor-auth
    lowwater sessions show refac --full
    """
    with opened_store(store) as opened:
        known = opened.sessions()
        card = _card(opened, named(known, name), known)
    if json:
        print_json(card)
    else:
        print_page(draw_card(card, now=time.time(), full=full), most=110)


class ChildSession(Struct, frozen=True, kw_only=True):
    """A session that continues this one."""

    name: str
    title: str


class ModelSpan(Struct, frozen=True, kw_only=True):
    """A model, and the time since when it was used."""

    model: str
    since: float


class Shown(Struct, frozen=True, kw_only=True):
    """A number of messages, and their tokens as counted on arrival."""

    messages: int
    tokens: int


class SessionCard(Struct, frozen=True, kw_only=True):
    """What `sessions show --json` prints; times are seconds since the epoch, money is in nano-dollars, null if not known."""

    name: str
    about: About
    has_parent: bool
    """Whether the session that it continues is still stored."""
    children: tuple[ChildSession, ...]
    model: str
    models: tuple[ModelSpan, ...]
    vocabulary: str
    opened_at: float
    changed_at: float
    entries: int
    turns: int
    compactions: int
    checkpoints: int
    history: Shown
    view: Shown
    system: str
    tools: tuple[str, ...]
    preamble_tokens: int
    costs: Costs
    cost: int | None
    cadence: Cadence


def _card(store: Store, listed: Listed, known: Sequence[Listed]) -> SessionCard:
    outline, ledger = store.outline(listed.name), ledger_of(store, listed.name)
    account = next(iter(store.accounts([listed.name])), Account(session=listed))
    return SessionCard(
        name=listed.name,
        about=listed.about,
        has_parent=any(each.name == listed.about.parent for each in known),
        children=tuple(
            ChildSession(name=each.name, title=each.about.title)
            for each in reversed(known)
            if each.about.parent == listed.name
        ),
        model=ledger.view.model,
        models=_model_lines(ledger, outline.landmarks),
        vocabulary=ledger.vocabulary,
        opened_at=listed.opened_at,
        changed_at=listed.changed_at,
        entries=len(ledger.entries),
        turns=listed.turns,
        compactions=listed.compactions,
        checkpoints=len(ledger.saved),
        history=Shown(messages=len(ledger.messages), tokens=outline.tokens),
        view=Shown(messages=len(ledger.view.items), tokens=ledger.view.tokens),
        system=system_text(ledger.view.system) or _first_instructions(ledger),
        tools=tool_names(ledger.view.tools),
        preamble_tokens=ledger.view.preamble_tokens,
        costs=costs_of(account),
        cost=costs_of(account).total,
        cadence=cadence([account]),
    )


def _model_lines(ledger: Ledger, landmarks: Sequence[Landmark]) -> tuple[ModelSpan, ...]:
    """Return the models in the order in which they were used."""
    told = [ledger.entries[each.position] for each in landmarks if each.kind in {"opened", "model_changed"}]
    return tuple(
        ModelSpan(model=entry.model, since=entry.at)
        for entry in told
        if isinstance(entry, Opened | ModelChanged)
    )


def _first_instructions(ledger: Ledger) -> str:
    """Return the system prompt of a conversation whose first message it is, as in the chat format."""
    first = ledger.message(1) if ledger.messages else None
    return first.text if first is not None and first.role in {"system", "developer"} else ""


def draw_card(card: SessionCard, *, now: float, full: bool) -> Iterator[RenderableType]:
    """Yield the page of a session, block by block."""
    title = f" · {on_one_line(card.about.title, 80)}" if card.about.title else ""
    yield Text(on_one_line(card.name, 200), style="bold") + Text(title)
    table = grid(label=14)
    for label, said in (*_origin(card, now), *_models(card), *_sizes(card), *_cost_lines(card)):
        table.add_row(label, Text(said))
    yield table
    if card.cadence.events:
        yield Text()
        yield cadence_table(card.cadence)
    if card.system:
        yield Text("\nsystem prompt", style="bold")
        yield Padding(_system(card.system, full=full), (0, 0, 0, 2), expand=False)


def _origin(card: SessionCard, now: float) -> Iterator[tuple[str, str]]:
    about = card.about
    yield "source", on_one_line(about.source, 80)
    yield "opened", _when(card.opened_at, now)
    yield "changed", _when(card.changed_at, now)
    if about.ended_at is not None:
        because = f", by {on_one_line(about.ended_because, 80)}" if about.ended_because else ""
        yield "ended", f"{_when(about.ended_at, now)}{because}"
    if about.parent:
        yield "continues", on_one_line(about.parent, 80) + ("" if card.has_parent else " (no longer kept)")
    for number, child in enumerate(card.children[:_NAMES]):
        named = f" · {on_one_line(child.title, 60)}" if child.title else ""
        yield "" if number else "continued by", on_one_line(child.name, 200) + named
    if len(card.children) > _NAMES:
        yield "", f"and {len(card.children) - _NAMES:,} more"


def _when(at: float, now: float) -> str:
    return f"{moment(at)}, {ago(at, now)}" if at else "never"


def _models(card: SessionCard) -> Iterator[tuple[str, str]]:
    for number, used in enumerate(card.models):
        yield "" if number else "models", f"{on_one_line(used.model, 60)} since {moment(used.since)}"
    if card.models and card.models[-1].model != card.model:
        yield "", f"{on_one_line(card.model, 60)} again, by a rewind"


def _sizes(card: SessionCard) -> Iterator[tuple[str, str]]:
    yield "history", f"{_size(card.history)} in {counted(card.turns, 'turn')}"
    left = f", {card.view.tokens / card.history.tokens:.0%} of it" if card.history.tokens else ""
    yield "view", f"{_size(card.view)}{left}; counted in {card.vocabulary or 'no vocabulary'}"
    if card.preamble_tokens:
        yield "before it", f"system prompt and tools, {counted(card.preamble_tokens, 'token')}"
    if card.tools:
        more = f" and {len(card.tools) - _NAMES:,} more" if len(card.tools) > _NAMES else ""
        names = ", ".join(on_one_line(tool, 40) for tool in card.tools[:_NAMES])
        yield "tools", f"{names}{more}"
    yield "compactions", f"{card.compactions:,}, {counted(card.checkpoints, 'checkpoint')}"


def _size(shown: Shown) -> str:
    return f"{counted(shown.messages, 'message')}, {counted(shown.tokens, 'token')}"


def _cost_lines(card: SessionCard) -> Iterator[tuple[str, str]]:
    if not card.turns and card.costs.total == 0:
        yield "cost", "no call was recorded"
        return
    costs = card.costs
    parts = f"calls {amount(costs.calls)}, summaries {amount(costs.summaries)}" if card.cadence.events else ""
    yield "cost", amount(costs.total) + (f" ({parts})" if parts else "")
    if card.cadence.events:
        yield "untouched", f"about {amount(costs.untouched)} without compaction"


def _system(text: str, *, full: bool) -> Text:
    lines = printable(text).strip().split("\n")
    if full or len(lines) <= _LINES:
        return Text("\n".join(lines))
    rest = f"\n… {counted(len(lines) - _LINES, 'line')} more; --full shows them"
    return Text("\n".join(lines[:_LINES])) + Text(rest, style="bright_black")
