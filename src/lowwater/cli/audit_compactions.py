"""The clients' own compactions on a terminal: what they cost, what they saved, and when rent-or-buy would have acted."""

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from lowwater.cli.audit_tables import TOP, plain_table
from lowwater.cli.audit_words import from_the_end, session_name
from lowwater.cli.cadence_page import net
from lowwater.cli.kept_words import amount, figure
from lowwater.cli.model_words import short
from lowwater.core.wording import counted
from lowwater.lab.audit.findings import AuditedSession, Native
from lowwater.lab.audit.report import Report

_LEAST = 12
_OTHERS = 58
"""Columns that all but the session's name take."""


def compactions_said(report: Report, *, width: int) -> Iterator[Table | Text]:
    """Yield what the clients' own compactions did, and those with the largest sums."""
    of = report.compacted
    if not of.compactions:
        return
    yield Text(f"\n{counted(of.compactions, 'compaction')} by the clients themselves", style="bold")
    yield _largest(report, width)
    said = []
    if of.net is not None:
        said.append(
            f"In all they cost {amount(of.cost)} and saved {amount(of.saved)} against carrying everything on: "
            f"net {amount(of.net)}. Where the call for the summary is not recorded, it is taken to have ridden the cache."
        )
    if of.late and of.calls_late is not None:
        said.append(
            f"{of.late:,} of {of.compactions:,} came later than rent-or-buy would have acted first, "
            f"by {of.calls_late:,.0f} calls in the median."
        )
    yield Text(" ".join(said), style="bright_black")


def _largest(report: Report, width: int) -> Table:
    every = [(session, native) for session in report.sessions for native in session.natives]
    every.sort(key=lambda one: -abs(one[1].net or 0))
    table = plain_table(header=True)
    room = max(_LEAST, width - _OTHERS)
    table.add_column("session", no_wrap=True, max_width=room)
    for title in ("before", "after", "calls", "cost", "saved", "net", "late"):
        table.add_column(title, justify="right", no_wrap=True)
    for session, native in every[:TOP]:
        table.add_row(*_cells(session, native, room))
    return table


def _cells(session: AuditedSession, native: Native, room: int) -> list[str | Text]:
    known = native.summary_cost is not None and native.rewrite_cost is not None
    cost = (native.summary_cost or 0) + (native.rewrite_cost or 0) if known else None
    return [
        Text(from_the_end(session_name(session), room)),
        short(native.before),
        short(native.after),
        figure(native.served),
        amount(cost),
        amount(native.saved),
        net(native.net),
        "–" if native.earlier is None else figure(native.earlier),
    ]
