"""`lowwater efficiency`: what stored sessions cost and what compaction saved."""

import time
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from lowwater.adapters.models import load_registry
from lowwater.cli.stored_sessions import (
    EMPTY,
    StoreAddress,
    all_accounts,
    cadence_table,
    complete_session,
    find_session,
    later_than,
    net,
    opened_store,
    page_width,
    print_json,
    print_page,
)
from lowwater.cli.tables import bar
from lowwater.cli.wording import amount, day, figure, moment, on_one_line, read_since, share, short
from lowwater.core.accounts.advice import advice_sentence
from lowwater.core.accounts.cadence import Cadence, cadence
from lowwater.core.accounts.efficiency import Efficiency
from lowwater.core.accounts.efficiency import efficiency as efficiency_of
from lowwater.core.accounts.figures import Figures, Repayment, Summarizing
from lowwater.core.stored import Account
from lowwater.core.wording import counted
from lowwater.errors import BadInput
from lowwater.protocols import Store

_WIDE = 105
_TOTAL = "in all"
_MIN_MODEL_WIDTH = 12
"""The least width of the column with the model's name."""


def efficiency(
    *,
    since: Annotated[
        str,
        typer.Option(
            metavar="WHEN",
            help="Only what happened since then: 30d, 12h, 2w, or a day such as 2026-11-01.",
            show_default=False,
        ),
    ] = "",
    session: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Only this session.",
            show_default=False,
            autocompletion=complete_session,
        ),
    ] = "",
    store: StoreAddress = "",
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of text.")] = False,
) -> None:
    """Show what sessions cost, what compaction saved, and what the numbers recommend.

    "Untouched" estimates what the calls would have cost without compaction;
    "net" is what was saved after deducting the cost of summaries and of
    rewriting the cache. Payback is the number of later calls after which a
    compaction had saved what it cost, next to the prediction made when it was
    decided. Different spellings of a model's name are counted together. In
    JSON, money is in nano-dollars, or null if unknown.

    lowwater efficiency                        all sessions
    lowwater efficiency --since 30d
    lowwater efficiency --session refactor-auth --json
    """
    begin = read_since(since, time.time()) if since else None
    with opened_store(store) as opened:
        accounts = _accounts(opened, session, begin)
    found = efficiency_of(accounts, load_registry())
    if json:
        print_json(_efficiency_json(found, accounts, begin))
        return
    if not accounts:
        raise BadInput(EMPTY if begin is None else f"nothing happened in any session since {moment(begin)}")
    print_page(efficiency_page(found, cadence(accounts), since=begin, width=page_width()))


def _accounts(store: Store, session: str, begin: float | None) -> list[Account]:
    every = store.accounts([find_session(store, session).name]) if session else all_accounts(store)
    if begin is None:
        return every
    later = (later_than(account, begin) for account in every)
    return [account for account in later if account.records or account.events]


def _efficiency_json(
    found: Efficiency, accounts: Sequence[Account], begin: float | None
) -> dict[str, object]:
    return {
        "since": begin,
        "total": found.total,
        "models": found.models,
        "summarizers": found.summarizers,
        "repayment": found.repayment,
        "cadence": cadence(accounts),
        "advice": [
            {"code": each.code, "facts": each.facts, "said": advice_sentence(each)} for each in found.advice
        ],
    }


def efficiency_page(
    found: Efficiency, of: Cadence, *, since: float | None, width: int
) -> Iterator[Table | Text]:
    """Yield the blocks of the page."""
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
    table = _table(gap=gap)
    model = max(_MIN_MODEL_WIDTH, width - taken - gap * (len(titles) + 1))
    table.add_column("model", no_wrap=True, overflow="ellipsis", max_width=model)
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    for each, cells in zip(found.models, rows, strict=False):
        table.add_row(Text(each.model), *cells)
    if len(found.models) != 1:
        table.add_row(_TOTAL, *rows[-1], style="bold")
    return table


def _cells(of: Figures, *, is_wide: bool) -> list[Text]:
    cells = [figure(of.turns), short(of.prompt), share(of.cache_read_share), amount(of.cost)]
    cells = [figure(of.sessions), *cells, amount(of.untouched)] if is_wide else cells
    cells += [figure(of.passes), short(of.saved), amount(of.compaction_cost)]
    return [*map(Text, cells), net(of.net)]


def _saved(models: Sequence[Figures], width: int) -> Table:
    """Return bars on one scale: what each model's calls cost, and what they would have cost without compaction."""
    table = _table(header=False)
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=20)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
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
        table = _table(header=False)
        for _ in range(3):
            table.add_column(no_wrap=True)
        most = max(paid.predicted, paid.realised)
        room = max(10, width - 40)
        for said, calls in (("predicted", paid.predicted), ("realised", paid.realised)):
            table.add_row(said, f"{calls:,.1f}", bar(calls, most, room))
        yield table
    yield Text(
        f"of {counted(paid.compactions, 'purchase')}: {repayment_sentence(paid)}", style="bright_black"
    )


def _summaries(summarizers: Sequence[Summarizing]) -> Table:
    table = _table()
    table.add_column("by", no_wrap=True, overflow="ellipsis", max_width=30)
    for title in ("in place", "tokens", "per 1,000", "score", "rejected"):
        table.add_column(title, justify="right", no_wrap=True)
    for each in summarizers:
        price = "–" if each.cost_per_1000 is None else amount(each.cost_per_1000)
        cells = (figure(each.summaries), figure(each.tokens), price, share(each.score), figure(each.rejected))
        table.add_row(Text(on_one_line(each.by, 40)), *cells)
    return table


def _bullet(said: str) -> Table:
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_row(Text("•", style="yellow"), Text(said))
    return table


def _table(*, header: bool = True, gap: int = 2) -> Table:
    return Table(
        box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style="bright_black", show_header=header
    )


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
