"""`lowwater status`: the figures of one stored session, or one line for each."""

import time
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from msgspec import Struct
from msgspec.structs import asdict
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from lowwater.adapters.models import load_registry
from lowwater.cli.command import with_settings
from lowwater.cli.efficiency import costs_sentence, payback_sentence
from lowwater.cli.sessions.listing import costs_of
from lowwater.cli.stored_sessions import (
    EMPTY,
    LABEL,
    StoreAddress,
    all_accounts,
    cadence_table,
    complete_session,
    find_session,
    grid,
    net,
    newest_session,
    open_kept,
    opened_store,
    page_width,
    print_json,
    print_page,
)
from lowwater.cli.tables import Plot, draw_plot, unclipped
from lowwater.cli.wording import (
    ago,
    amount,
    cache_state,
    figure,
    on_one_line,
    recall_json,
    recall_sentence,
    share,
    short,
)
from lowwater.core.accounts.advice import advice_sentence
from lowwater.core.accounts.cadence import Cadence, cadence, turns_before_events
from lowwater.core.accounts.efficiency import Efficiency, compactions, efficiency
from lowwater.core.accounts.figures import Figures, Gathered, figures
from lowwater.core.accounts.payback import paybacks
from lowwater.core.events import Compaction
from lowwater.core.models.model import Model
from lowwater.core.models.registry import Registry
from lowwater.core.stored import Account
from lowwater.core.wording import counted
from lowwater.errors import BadInput
from lowwater.protocols import Store
from lowwater.session.internals import internals
from lowwater.session.status import Status
from lowwater.settings import Settings
from lowwater.settings.resolve import Resolved

_FIGURE_TITLES = ("turns", "prompt", "passes", "cost", "net", "changed")
_MAX_TITLE = 40
"""Characters shown of a title."""
_UNLIMITED_CONSOLE = Console(width=1_000)
_SIDE_BY_SIDE = 112
_LEVELS = {"info": "cyan", "notice": "cyan", "warning": "yellow", "critical": "red"}


class SessionFigures(Struct, frozen=True, kw_only=True):
    """What the page of one session is made from."""

    account: Account
    status: Status
    model: Model
    efficiency: Efficiency
    cadence: Cadence

    @property
    def prompts(self) -> list[int | None]:
        """Prompt tokens at each turn: as the provider reported them, else as expected."""
        usages = (record.usage or record.expected for record in self.account.records)
        return [None if usage is None else usage.prompt for usage in usages]

    @property
    def compacted_before(self) -> list[int]:
        """For each compaction, the number of turns before it."""
        events = zip(self.account.events, turns_before_events(self.account), strict=True)
        return [turns for event, turns in events if isinstance(event, Compaction)]


class SessionLine(Struct, frozen=True, kw_only=True):
    """One session as a line of a table; money is in nano-dollars, None if unknown."""

    name: str
    title: str
    model: str
    turns: int
    prompt: int | None
    """Tokens of its last prompt."""
    compactions: int
    cost: int | None
    """Cost of calls and summaries; None if the price of any of them is unknown."""
    net: int | None
    changed_at: float


@with_settings
def status(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="A stored session; by default the most recent one.",
            show_default=False,
            autocompletion=complete_session,
        ),
    ] = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Show one line for each session.")] = False,
    store: StoreAddress = "",
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of text.")] = False,
    settings: Resolved,
) -> None:
    """Show the figures of a stored session: window, cache, costs, and what compaction saved.

    The plot shows the size of the prompt at each turn, with ▲ at compactions
    and a line at the threshold. "Saved" adds up the tokens that later calls
    did not have to carry; "net" is the money saved after deducting the cost of
    the compactions. In JSON, money is in nano-dollars, or null if unknown.

    lowwater status                    the most recent session
    lowwater status refactor-auth
    lowwater status --all              a line for each
    lowwater status --json | jq .efficiency.net
    """
    if everything and name is not None:
        raise BadInput("--all shows every session: leave out the name, or leave out --all")
    with opened_store(store) as opened:
        if everything:
            _show_all(opened, json=json)
        else:
            _show(_figures_of(opened, name, settings.settings), json=json)


def _show(shown: SessionFigures, *, json: bool) -> None:
    if json:
        print_json(_session_json(shown))
    else:
        print_page(session_page(shown, width=page_width(), now=time.time()))


def _show_all(store: Store, *, json: bool) -> None:
    registry = load_registry()
    accounts = all_accounts(store)
    lines = [session_line(account, total_of(account, registry)) for account in accounts]
    if json:
        print_json({"sessions": lines})
        return
    if not lines:
        raise BadInput(EMPTY)
    print_page([sessions_table(lines, width=page_width(), now=time.time())])


def _figures_of(store: Store, name: str | None, settings: Settings) -> SessionFigures:
    listed = newest_session(store) if name is None else find_session(store, name)
    session = open_kept(store, listed, settings)
    (account,) = store.accounts([listed.name])
    registry = load_registry()
    return SessionFigures(
        account=account,
        status=session.status(),
        model=registry.find(internals(session).route.model),
        efficiency=efficiency([account], registry),
        cadence=cadence([account]),
    )


_OF_THE_PROCESS = frozenset({"expected_usage"})
"""What a status says about the call under way, which is none of this command's."""


def _session_json(shown: SessionFigures) -> dict[str, object]:
    account, found = shown.account, shown.efficiency
    return {
        "session": account.session,
        "status": {key: value for key, value in asdict(shown.status).items() if key not in _OF_THE_PROCESS},
        "cost": found.total.cost,
        "untouched": found.total.untouched,
        "unpriced_turns": found.total.unpriced_turns,
        "efficiency": {
            "passes": found.total.passes,
            "tokens_saved": found.total.saved,
            "compaction_cost": found.total.compaction_cost,
            "net": found.total.net,
            "repayment": found.repayment,
            "recall": recall_json([found.total]),
            "advice": [
                {"code": each.code, "facts": each.facts, "said": advice_sentence(each)}
                for each in found.advice
            ],
        },
        "cadence": shown.cadence,
        "prompts": shown.prompts,
        "compactions": [
            {"turn": turn, "mode": event.mode, "before": event.before, "after": event.after}
            for turn, event in zip(shown.compacted_before, compactions(account), strict=True)
        ],
    }


def session_page(shown: SessionFigures, *, width: int, now: float) -> Iterator[Table | Text]:
    """Yield the blocks of one session's page."""
    yield from _title(shown, width, now)
    yield Text()
    yield _current_state(shown, width, now)
    if any(shown.prompts):
        yield Text("\nprompt at each turn", style="bold")
        plot = Plot(values=shown.prompts, marked=shown.compacted_before, line=shown.status.threshold or None)
        yield from draw_plot(plot, width=width)
    saved, paced = _efficiency(shown.efficiency), cadence_table(shown.cadence)
    yield Text()
    if width >= _SIDE_BY_SIDE:
        both = Table.grid(padding=(0, 4, 0, 0), expand=True)
        both.add_column(ratio=1)
        both.add_column(ratio=1)
        both.add_row(saved, paced)
        yield both
    else:
        yield saved
        yield Text()
        yield paced
    for each in shown.efficiency.advice:
        yield Text(f"\n{advice_sentence(each)}", style="yellow")


def _title(shown: SessionFigures, width: int, now: float) -> Iterator[Text]:
    session, about = shown.account.session, shown.account.session.about
    room = max(20, width - 50)
    yield Text.assemble(
        (on_one_line(session.name, 200), "bold"), f" · {shown.status.model} · {shown.status.policy}"
    )
    parts = [on_one_line(about.title, room)] if about.title else []
    parts += [f"from {on_one_line(about.source, 20)}", f"opened {ago(session.opened_at, now)}"]
    parts += [f"changed {ago(session.changed_at, now)}"]
    yield Text(" · ".join(parts), style="bright_black")
    lineage = [f"continues {on_one_line(about.parent, 60)}"] if about.parent else []
    if about.ended_at is not None:
        lineage += [
            f"ended {ago(about.ended_at, now)}: {on_one_line(about.ended_because, 40) or 'no reason given'}"
        ]
    if lineage:
        yield Text(" · ".join(lineage), style="bright_black")


def _current_state(shown: SessionFigures, width: int, now: float) -> Table:
    """Return the window as a bar, with the view, the cache and the costs below it."""
    status, total = shown.status, shown.efficiency.total
    table = grid()
    table.add_row("window", _window(status, width - LABEL))
    reached = status.prompt / status.threshold if status.threshold else None
    level = Text(f", level {status.level}", style=_LEVELS[status.level]) if status.level else Text()
    table.add_row("", Text(f"{status.prompt:,} tokens, {share(reached)} of the {status.acts_at}") + level)
    table.add_row("", Text(_legend(status), style="bright_black"))
    table.add_row("view", f"{status.messages:,} of {counted(status.history, 'message')}")
    table.add_row("cache", f"{status.caching}{cache_state(shown.account.records, shown.model, now)}")
    if total.turns:
        cached = (
            f", {share(total.cache_read_share)} read from cache" if total.cache_read_share is not None else ""
        )
        off = f" (foreseen within {total.foreseen_off:.1%})" if total.foreseen_off is not None else ""
        said = f"{total.turns:,} with {total.prompt:,} prompt tokens{cached}{off}, {total.output:,} output"
        table.add_row("turns", said)
        table.add_row("cost", costs_sentence(total))
    return table


def _legend(status: Status) -> str:
    if status.threshold == status.wall:
        named = "wall" if status.acts_at == "wall" else f"{status.acts_at} and wall"
        return f"┃ {named} {status.wall:,}   context {status.context:,}"
    return f"╎ {status.acts_at} {status.threshold:,}   ┃ wall {status.wall:,}   context {status.context:,}"


def _window(status: Status, width: int) -> Text:
    """Return the context window as a bar, with marks at the threshold and the wall."""
    whole = max(status.context, status.prompt, 1)
    used = round(width * status.prompt / whole)
    style = (
        "red" if status.prompt > status.wall else "yellow" if status.prompt >= status.threshold else "green"
    )
    cells = [("█", style)] * used + [("░", "bright_black")] * (width - used)
    for at, character, colour in ((status.threshold, "╎", "yellow"), (status.wall, "┃", "red")):
        cells[max(0, min(width - 1, round(width * at / whole) - 1))] = (character, colour)
    return Text.assemble(*cells)


def _efficiency(found: Efficiency) -> Table:
    total = found.total
    table = grid("efficiency")
    table.add_row("passes", f"{total.passes:,}, {total.reclaimed:,} tokens taken out of the prompt")
    table.add_row("saved", f"{total.saved:,} tokens not carried, over all calls")
    parts = f"summaries {amount(total.summary_cost)}, rewriting {amount(total.rewriting_cost)}"
    table.add_row("cost", f"{amount(total.compaction_cost)}: {parts}")
    table.add_row("net", net(total.net))
    if total.passes:
        table.add_row("payback", payback_sentence(found.repayment))
    if total.recall_offered:
        table.add_row("recall", recall_sentence([total]))
    return table


def session_line(account: Account, total: Figures) -> SessionLine:
    """Return a session's line, given the totals of its account."""
    last = account.records[-1].usage if account.records else None
    return SessionLine(
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


def total_of(account: Account, registry: Registry) -> Figures:
    """Return one session's totals over all models and summarizers."""
    bought = paybacks(account, registry)
    gathered = Gathered(sessions=1, records=account.records, events=compactions(account), paybacks=bought)
    return figures("", gathered)


def sessions_table(lines: Sequence[SessionLine], *, width: int, now: float) -> RenderableType:
    """Return a table with a line for each session; titles are shown only if everything else still fits."""
    for has_titles in (any(line.title for line in lines), False):
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bright_black")
        table.add_column("session")
        table.add_column("model")
        for title in _FIGURE_TITLES:
            table.add_column(title, justify="right", no_wrap=True)
        for line in lines:
            table.add_row(_name_cell(line, has_title=has_titles), Text(line.model), *_figure_cells(line, now))
        if (
            not has_titles
            or Measurement.get(_UNLIMITED_CONSOLE, _UNLIMITED_CONSOLE.options, table).maximum <= width
        ):
            break
    return unclipped(table, width)


def _figure_cells(line: SessionLine, now: float) -> tuple[str | Text, ...]:
    counts = (figure(line.turns), short(line.prompt), figure(line.compactions))
    net = Text(
        amount(line.net),
        style="red" if line.net is not None and line.net < 0 else "green" if line.net else "",
    )
    return (*counts, amount(line.cost), net, Text(ago(line.changed_at, now), style="bright_black"))


def _name_cell(line: SessionLine, *, has_title: bool) -> Text:
    title = f" {on_one_line(line.title, _MAX_TITLE)}" if has_title and line.title else ""
    return Text.assemble(on_one_line(line.name, 200), (title, "bright_black"))
