"""The findings of `lowwater audit` on a terminal: where the money went, why the cache missed, what could be saved."""

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Literal

from rich.table import Table
from rich.text import Text

from lowwater.cli.audit_compactions import compactions_said
from lowwater.cli.audit_tables import TOP, lines_table, plain_table
from lowwater.cli.audit_words import CAUSE_WORDS, SPENDING_WORDS, from_the_end
from lowwater.cli.kept_words import amount, figure, on_one_line, printable, share
from lowwater.cli.model_words import short
from lowwater.cli.plots import Course, bar, draw_course
from lowwater.core.wording import counted
from lowwater.lab.audit.findings import Figures
from lowwater.lab.audit.report import Line, Possible, Report, by_day, estimate_gaps

By = Literal["session", "model", "day"]

_CENT, _DOLLAR = 10_000_000, 1_000_000_000
_FEW_DAYS = 3
_SHOWN_UNREAD = 3
_ENOUGH = 10
"""Sessions below which it is not said how well they were foreseen."""


def page(report: Report, *, by: By, width: int, interrupted: bool) -> Iterator[Table | Text]:
    """Yield everything to show, a block each."""
    days = [line for line in by_day(report.sessions) if line.name]
    yield _head(report, days, interrupted=interrupted)
    if report.total.figures.cost:
        yield _title("where the money went")
        yield _spending(report.total, width)
    if any(missed.misses for missed in report.total.missed.values()):
        yield _title("tokens that a warm cache would have spared, and what they cost more than reading")
        yield _misses(report.total, width)
    yield _title({"session": "sessions", "model": "models", "day": "days"}[by])
    yield from lines_table(report, by=by, width=width)
    if by != "session" and report.total.figures.cost:
        yield _title(f"dearest {counted(min(TOP, len(report.sessions)), 'session')}")
        yield from lines_table(report, by="session", width=width, most=TOP)
    if len(days) >= _FEW_DAYS:
        yield from _plot(days, width)
    yield from compactions_said(report, width=width)
    if report.possible is not None:
        yield from _possible(report.possible, width)
    elif report.sessions:
        yield _title("what compaction could do")
        yield Text(
            estimate_gaps(report), style="yellow" if "numpy" in report.not_estimated else "bright_black"
        )
    yield from _remarks(report)


def _title(text: str) -> Text:
    return Text(f"\n{text}", style="bold")


def _head(report: Report, days: list[Line], *, interrupted: bool) -> Text:
    total = report.total.figures
    spent = "" if total.cost is None else f", {amount(total.cost)}"
    when = "" if not days else f", {days[0].name}"
    when += f" to {days[-1].name}" if len(days) > 1 else ""
    stopped = ("interrupted: what was read so far\n", "bold yellow") if interrupted else ""
    return Text.assemble(
        stopped,
        (counted(len(report.sessions), "session"), "bold"),
        f", {counted(total.calls, 'call')}{spent}{when}\n",
        _tokens(total),
    )


def _tokens(total: Figures) -> str:
    unpriced = f"; what {counted(total.unpriced, 'call')} cost is unknown" if total.unpriced else ""
    if not total.prompt:
        return f"no prompt's size was recorded{unpriced}"
    return (
        f"{short(total.prompt)} tokens sent, {share(total.hit_share)} read from the cache, "
        f"{short(total.output)} answered{unpriced}"
    )


def _spending(total: Line, width: int) -> Table:
    table = plain_table()
    for _ in range(2):
        table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    table.add_column(no_wrap=True, justify="right")
    parts = {words: getattr(total.spending, name) for name, words in SPENDING_WORDS.items()}
    whole, most = sum(parts.values()), max(parts.values())
    for words, cost in parts.items():
        if not cost:
            continue
        table.add_row(words, bar(cost, most, max(10, width - 44)), amount(cost), share(cost / whole))
    return table


def _misses(total: Line, width: int) -> Table:
    table = plain_table(header=True)
    table.add_column("cause", no_wrap=True)
    for title in ("calls", "tokens", "cost"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    most = max((missed.cost or 0 for missed in total.missed.values()), default=0)
    room = max(4, width - 72)
    for cause, missed in sorted(total.missed.items(), key=lambda one: (-(one[1].cost or 0), -one[1].tokens)):
        style = "bright_black" if cause in ("first", "boundary") else "yellow"
        table.add_row(
            CAUSE_WORDS[cause],
            figure(missed.misses),
            short(missed.tokens),
            amount(missed.cost),
            bar(missed.cost or 0, most, room, style=style),
        )
    return table


def _plot(days: list[Line], width: int) -> Iterator[Text]:
    """Yield what each day cost as columns; days without a session are gaps."""
    costs = {date.fromisoformat(line.name): line.figures.cost for line in days}
    first, last = min(costs), max(costs)
    every = [first + timedelta(days=at) for at in range((last - first).days + 1)]
    most = max(cost or 0 for cost in costs.values())
    if not most:
        return
    unit, named = (_DOLLAR, "dollars") if most >= 10 * _DOLLAR else (_CENT, "cents")
    values = [None if (cost := costs.get(each)) is None else round(cost / unit) for each in every]
    yield _title(f"{named} a day, {first} to {last}")
    yield from draw_course(Course(values=values), width=width, named="day")


def _possible(possible: Possible, width: int) -> Iterator[Table | Text]:
    yield _title("what compaction could do")
    table = plain_table()
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    costs = {
        "without any": possible.never,
        "as recorded": possible.recorded,
        "rent-or-buy": possible.rent_or_buy,
    }
    most = max(costs.values())
    for words, cost in costs.items():
        about = "" if words == "as recorded" else "about "
        style = "green" if words == "rent-or-buy" else "cyan"
        table.add_row(words, bar(cost, most, max(10, width - 40), style=style), f"{about}{amount(cost)}")
    yield table
    yield Text(
        f"{_rent_or_buy(possible)} An estimate: {counted(possible.sessions, 'session')} played again on recorded sizes and pauses, at the "
        "prices they had and with later uses of what was removed paid for, once as the client compacted and once under "
        'each rule; the difference counts. "Without any" compacts only where the window is full.',
        style="bright_black",
    )


def _rent_or_buy(possible: Possible) -> str:
    less = possible.recorded - possible.rent_or_buy
    if not possible.actions:
        return "Rent-or-buy would have left these sessions alone."
    saved = f"saved about {amount(less)} ({share(less / possible.recorded)})" if less > 0 else ""
    done = saved or f"cost about {amount(-less)} more"
    return f"Rent-or-buy would have {done} with {possible.actions:,} prunes and summaries."


def _remarks(report: Report) -> Iterator[Text]:
    """Yield what a reader should know about the figures."""
    told = []
    if report.possible is not None and report.not_estimated:
        told.append(estimate_gaps(report))
    if report.accuracy is not None and report.accuracy.sessions >= _ENOUGH:
        off = report.accuracy
        told.append(
            f"The cache rules foresee a session's input bill within {off.median_error:.1%} (median), "
            f"{off.p90_error:.0%} (nine of ten), from its sizes and times."
        )
    if report.copied:
        told.append(
            f"{counted(report.copied, 'call')} that forks and resumed sessions repeat are counted once."
        )
    if report.broken:
        where = (
            f", the first at {from_the_end(printable(report.broken_at[0]), 60)}" if report.broken_at else ""
        )
        told.append(f"{counted(report.broken, 'broken line')} left out{where}.")
    if report.unread:
        told.append(f"{counted(len(report.unread), 'file')} without a session or not read to the end:")
        told += [
            f"  {from_the_end(printable(one.path), 60)}: {on_one_line(one.why, 80)}"
            for one in report.unread[:_SHOWN_UNREAD]
        ]
    if report.kept:
        told.append(
            f"{report.kept:,} of {counted(report.files, 'file')} had not changed since they were read last."
        )
    if told:
        yield Text("\n" + "\n".join(told), style="bright_black")
