"""`lowwater status`: the figures of one stored session, or of all of them together."""

import time
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from msgspec import Struct
from msgspec.structs import asdict
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from lowwater.adapters.models import load_registry
from lowwater.cli.command import AsJson, Since, with_settings
from lowwater.cli.inspect import draw_preamble
from lowwater.cli.stored_sessions import (
    EMPTY,
    OptionalSession,
    StoreAddress,
    accounts_of,
    later_than,
    opened_store,
    session_or_newest,
)
from lowwater.cli.tables import (
    LABEL,
    Plot,
    bar,
    bars_table,
    cadence_table,
    draw_plot,
    figures_table,
    grid,
    net,
    page_width,
    print_json,
    print_page,
)
from lowwater.cli.wording import (
    ago,
    amount,
    cache_state,
    day,
    figure,
    moment,
    on_one_line,
    read_since,
    recall_json,
    recall_sentence,
    share,
    short,
)
from lowwater.core.accounts.advice import advice_sentence
from lowwater.core.accounts.cadence import Cadence, cadence, turns_before_events
from lowwater.core.accounts.efficiency import Efficiency, compactions, efficiency, total_of
from lowwater.core.accounts.figures import Figures, Repayment, Summarizing, costs_of
from lowwater.core.accounts.tool_schemas import Preamble, preamble_of, start_cost
from lowwater.core.events import Compaction
from lowwater.core.models.model import Model
from lowwater.core.stored import Account
from lowwater.core.tokens.counting import count_preamble
from lowwater.core.wording import counted
from lowwater.errors import BadInput
from lowwater.protocols import Store
from lowwater.session.factories import counter_for
from lowwater.session.internals import internals
from lowwater.session.reopen import open_kept
from lowwater.session.session import Session
from lowwater.session.status import Status
from lowwater.settings import Settings
from lowwater.settings.resolve import Resolved

_MAX_TITLE = 40
"""Characters shown of a title."""
_MAX_LINES = 20
"""Sessions listed below what all of them cost together."""
_MOST_TOOLS = 5
_UNLIMITED_CONSOLE = Console(width=1_000)
_SIDE_BY_SIDE, _WIDE = 112, 105
_MIN_NAME_WIDTH = 12
_MIN_MODEL_WIDTH = 12
"""The least width of the column with the model's name."""
_LEVELS = {"info": "cyan", "notice": "cyan", "warning": "yellow", "critical": "red"}


class SessionFigures(Struct, frozen=True, kw_only=True):
    """What the page of one session is made from."""

    account: Account
    status: Status
    model: Model
    efficiency: Efficiency
    cadence: Cadence
    start: Preamble = Preamble(system=0)
    """What every request begins with, in the model's tokens."""

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
    name: OptionalSession = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="All sessions together, by model.")] = False,
    since: Since = "",
    store: StoreAddress = "",
    json: AsJson = False,
    settings: Resolved,
) -> None:
    """Show what a stored session, or all of them, cost and saved.

    One session: its window, cache and costs, and a plot of the prompt at each
    turn, with ▲ at compactions and a line at the threshold. All sessions: costs
    by model, payback, summaries, a line for each session, and what the numbers
    recommend.

    "Saved" adds up the tokens that later calls did not have to carry, "net" is
    the money saved less the cost of the compactions, "untouched" estimates the
    cost without any. Payback is the number of later calls after which a
    compaction had saved what it cost. In JSON, money is in nano-dollars, or
    null if unknown.

    lowwater status                    the newest session
    lowwater status refactor-auth
    lowwater status --all --since 30d
    lowwater status --json | jq .efficiency.net
    """
    if everything and name is not None:
        raise BadInput("--all shows every session: leave out the name, or leave out --all")
    begin = read_since(since, time.time()) if since else None
    with opened_store(store) as opened:
        if everything:
            _show_all(opened, begin, json=json)
        else:
            _show(_figures_of(opened, name, begin, settings.settings), json=json)


def _show(shown: SessionFigures, *, json: bool) -> None:
    if json:
        print_json(_session_json(shown))
    else:
        print_page(session_page(shown, width=page_width(), now=time.time()))


def _show_all(store: Store, begin: float | None, *, json: bool) -> None:
    accounts, registry = _since(accounts_of(store), begin), load_registry()
    found, paced = efficiency(accounts, registry), cadence(accounts)
    lines = [session_line(account, total_of(account, registry)) for account in accounts]
    if json:
        print_json({"since": begin, "sessions": lines, "cadence": paced, **_efficiency_json(found)})
    elif not lines:
        raise BadInput(EMPTY if begin is None else f"nothing happened in any session since {moment(begin)}")
    else:
        print_page(efficiency_page(found, paced, since=begin, width=page_width(), lines=lines))


def _figures_of(store: Store, name: str | None, begin: float | None, settings: Settings) -> SessionFigures:
    listed = session_or_newest(store, name)
    session = open_kept(store, listed, settings)
    found = _since(store.accounts([listed.name]), begin)
    if not found:
        raise BadInput(f"nothing happened in {on_one_line(listed.name, 60)} since {moment(begin or 0.0)}")
    registry = load_registry()
    return SessionFigures(
        account=found[0],
        status=session.status(),
        model=registry.find(internals(session).route.model),
        efficiency=efficiency(found, registry),
        cadence=cadence(found),
        start=_start_of(session),
    )


def _start_of(session: Session) -> Preamble:
    """Return what a session's requests begin with; counts are scaled to the model's tokens."""
    known = internals(session)
    view, tokenizer, scale = known.ledger.view, counter_for(known.route.model), known.scale

    def count(system: bytes, tools: bytes) -> int:
        return round(scale * count_preamble(system, tools, tokenizer))

    return preamble_of(
        view.tools,
        [each.message for each in known.ledger.messages],
        system=count(view.system, b""),
        count=lambda tools: count(b"", tools),
    )


def _since(accounts: list[Account], begin: float | None) -> list[Account]:
    if begin is None:
        return accounts
    later = (later_than(account, begin) for account in accounts)
    return [account for account in later if account.records or account.events]


def _efficiency_json(found: Efficiency) -> dict[str, object]:
    return {
        "total": found.total,
        "models": found.models,
        "summarizers": found.summarizers,
        "repayment": found.repayment,
        "advice": [
            {"code": each.code, "facts": each.facts, "said": advice_sentence(each)} for each in found.advice
        ],
    }


_OF_THE_PROCESS = frozenset({"about", "decision", "expected_usage", "last_compaction"})
"""What a status says that other commands print, or that only the process with the call under way knows."""


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
            "advice": _efficiency_json(found)["advice"],
        },
        "models": found.models,
        "summarizers": found.summarizers,
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
    used = [record.usage for record in shown.account.records if record.usage is not None]
    yield from draw_preamble(
        shown.start,
        shown.status.prompt,
        cost=lambda tokens: start_cost(tokens, used, shown.model),
        of="in all calls",
        most=_MOST_TOOLS,
    )
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
    if len(shown.efficiency.models) > 1:
        yield Text("\nmodels", style="bold")
        yield _by_model(shown.efficiency, width)
    if shown.efficiency.summarizers:
        yield Text("\nsummaries", style="bold")
        yield _summaries(shown.efficiency.summarizers)
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


def sessions_table(lines: Sequence[SessionLine], *, width: int, now: float) -> Table:
    """Return a table with a line for each session; titles are shown only if everything else still fits."""
    table = _sessions_table(lines, now=now, has_titles=any(line.title for line in lines))
    if _excess(table, width) > 0:
        table = _sessions_table(lines, now=now, has_titles=False)
    if (excess := _excess(table, width)) > 0:
        # The beginning of a name is enough to find the session; half a figure is useless.
        longest = max(len(on_one_line(line.name, 200)) for line in lines)
        table = _sessions_table(lines, now=now, has_titles=False, room=max(_MIN_NAME_WIDTH, longest - excess))
    return table


def _excess(table: Table, width: int) -> int:
    return Measurement.get(_UNLIMITED_CONSOLE, _UNLIMITED_CONSOLE.options, table).maximum - width


def _sessions_table(
    lines: Sequence[SessionLine], *, now: float, has_titles: bool, room: int | None = None
) -> Table:
    figures = ("turns", "prompt", "passes", "cost", "net", "changed")
    table = figures_table("session", "model", figures=figures, room=room)
    for line in lines:
        title = f" {on_one_line(line.title, _MAX_TITLE)}" if has_titles and line.title else ""
        table.add_row(
            Text.assemble(on_one_line(line.name, 200), (title, "bright_black")),
            Text(line.model),
            figure(line.turns),
            short(line.prompt),
            figure(line.compactions),
            amount(line.cost),
            net(line.net),
            Text(ago(line.changed_at, now), style="bright_black"),
        )
    return table


def efficiency_page(
    found: Efficiency,
    of: Cadence,
    *,
    since: float | None,
    width: int,
    lines: Sequence[SessionLine] = (),
) -> Iterator[Table | Text]:
    """Yield the blocks of the page of all sessions, with a table of the newest `lines`."""
    total = found.total
    begun = f" since {day(since)}" if since is not None else ""
    yield Text.assemble(
        (counted(total.sessions, "session"), "bold"),
        f", {counted(total.turns, 'turn')}, {counted(total.passes, 'compaction')}{begun}\n",
    )
    yield _by_model(found, width)
    if any(each.untouched for each in found.models):
        yield Text("\npaid for calls █, saved ░, of what they would have cost untouched", style="bold")
        yield _saved(found.models, width)
    if found.repayment.compactions:
        yield Text("\npayback, in later calls", style="bold")
        yield from _payback(found.repayment, width)
    if found.summarizers:
        yield Text("\nsummaries", style="bold")
        yield _summaries(found.summarizers)
    if found.total.passes:
        yield Text()
        yield cadence_table(of)
    if lines:
        yield Text("\nsessions", style="bold")
        yield sessions_table(lines[:_MAX_LINES], width=width, now=time.time())
    if len(lines) > _MAX_LINES:
        yield Text(f"and {len(lines) - _MAX_LINES:,} older: --json has them all", style="bright_black")
    if found.advice:
        yield Text("\nrecommendations", style="bold")
        for each in found.advice:
            yield _bullet(advice_sentence(each))


def _by_model(found: Efficiency, width: int) -> Table:
    is_wide = width >= _WIDE
    titles = ["turns", "prompts", "cached", "cost", "passes", "saved", "for it", "net"]
    titles = ["sessions", *titles[:4], "untouched", *titles[4:]] if is_wide else titles
    rows = [_cells(each, is_wide=is_wide) for each in (*found.models, found.total)]
    taken = sum(max(map(len, column)) for column in zip(titles, *rows, strict=True))
    gap = 2 if is_wide else 1
    room = max(_MIN_MODEL_WIDTH, width - taken - gap * (len(titles) + 1))
    table = figures_table("model", figures=titles, gap=gap, room=room)
    for each, cells in zip(found.models, rows, strict=False):
        table.add_row(Text(each.model), *cells)
    if len(found.models) != 1:
        table.add_row("in all", *rows[-1], style="bold")
    return table


def _cells(of: Figures, *, is_wide: bool) -> list[Text]:
    cells = [figure(of.turns), short(of.prompt), share(of.cache_read_share), amount(of.cost)]
    cells = [figure(of.sessions), *cells, amount(of.untouched)] if is_wide else cells
    cells += [figure(of.passes), short(of.saved), amount(of.compaction_cost)]
    return [*map(Text, cells), net(of.net)]


def _saved(models: Sequence[Figures], width: int) -> Table:
    """Return bars on one scale: what each model's calls cost, and what they would have cost without compaction."""
    table = bars_table(room=20)
    room = max(10, width - 62)
    most = max(each.untouched or 0 for each in models)
    for each in models:
        if each.untouched is None or each.untouched <= 0 or each.cost is None:
            continue
        paid = bar(each.cost, most, room)
        saved = max(0, round(room * each.untouched / most) - len(paid))
        less = 1 - each.cost / each.untouched
        change = f"{less:.0%} less" if less >= 0 else f"{-less:.0%} more"
        said = f"{amount(each.cost)} of {amount(each.untouched)}, {change}"
        table.add_row(
            Text(each.model), paid + Text("░" * saved, style="green"), Text(said, style="bright_black")
        )
    return table


def _payback(paid: Repayment, width: int) -> Iterator[Table | Text]:
    if paid.predicted is not None and paid.realised is not None:
        table = bars_table()
        most = max(paid.predicted, paid.realised)
        room = max(10, width - 40)
        for said, calls in (("predicted", paid.predicted), ("realised", paid.realised)):
            table.add_row(said, f"{calls:,.1f}", bar(calls, most, room))
        yield table
    yield Text(
        f"of {counted(paid.compactions, 'purchase')}: {repayment_sentence(paid)}", style="bright_black"
    )


def _summaries(summarizers: Sequence[Summarizing]) -> Table:
    titles = ("in place", "tokens", "per 1,000", "score", "rejected")
    table = figures_table("by", figures=titles, room=30)
    for each in summarizers:
        price = "–" if each.cost_per_1000 is None else amount(each.cost_per_1000)
        after = "" if each.repaired_score is None else f" → {share(each.repaired_score)}"
        score = f"{share(each.score)}{after}"
        cells = (figure(each.summaries), figure(each.tokens), price, score, figure(each.rejected))
        table.add_row(Text(on_one_line(each.by, 40)), *cells)
    return table


def _bullet(said: str) -> Table:
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_row(Text("•", style="yellow"), Text(said))
    return table


def costs_sentence(of: Figures) -> str:
    """Return the cost of calls and summaries, the cost without compaction, and the number of turns without a price."""
    summaries = f" and {amount(of.summary_cost)} for summaries" if of.summary_cost != 0 else ""
    untouched = f"; about {amount(of.untouched)} untouched" if of.untouched is not None and of.passes else ""
    missing = f" ({counted(of.unpriced_turns, 'turn')} not priced)" if of.unpriced_turns else ""
    return f"{amount(of.cost)} for calls{summaries}{untouched}{missing}"


def payback_sentence(of: Repayment) -> str:
    """Return how many compactions have paid for themselves, and after how many calls compared with the prediction."""
    if of.predicted is None or of.realised is None:
        return repayment_sentence(of)
    return f"{repayment_sentence(of)}; after {of.realised:.1f} later calls, predicted {of.predicted:.1f}"


def repayment_sentence(of: Repayment) -> str:
    """Return how many compactions have paid for themselves."""
    parts = [f"{of.paid:,} paid back"] if of.paid else []
    parts += [f"{of.open:,} not yet"] if of.open else []
    undone = f" ({of.undone:,} undone)" if of.undone else ""
    parts += [f"{of.failed:,} never will{undone}"] if of.failed else []
    parts += [f"{of.unknown:,} cannot be told"] if of.unknown else []
    return ", ".join(parts) or "nothing to pay back"
