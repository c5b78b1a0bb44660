"""What a gateway's clients cost in one run, on standard error: standard output belongs to the client."""

import sys
import time

import msgspec
from rich.console import Console

from lowwater.adapters.models import load_registry
from lowwater.cli.failing import say
from lowwater.cli.kept_session import all_accounts, later_than
from lowwater.cli.kept_words import amount
from lowwater.cli.printing import page_width
from lowwater.cli.status import total_of
from lowwater.cli.status_lines import Line, line_of, lines_table
from lowwater.core.accounts.figures import Figures
from lowwater.core.stored import Account
from lowwater.core.wording import counted
from lowwater.protocols import Store


def print_bill(store: Store, *, since: float, nothing: str, json: bool = False) -> None:
    """Print what was spent since a moment, session by session, and what compaction saved of it; or that `nothing` was."""
    registry = load_registry()
    accounts = [later_than(each, since) for each in all_accounts(store) if each.session.changed_at >= since]
    totals = [total_of(account, registry) for account in accounts]
    lines = [line_of(account, total) for account, total in zip(accounts, totals, strict=True)]
    if json:
        sys.stderr.write(msgspec.json.encode(_said(accounts, lines, totals)).decode() + "\n")
    elif not lines:
        say(nothing)
    else:
        _print(accounts, lines, totals)


def _print(accounts: list[Account], lines: list[Line], totals: list[Figures]) -> None:
    console = Console(file=sys.stderr, highlight=False)
    console.print()
    console.print(lines_table(lines, width=page_width(), now=time.time()))
    calls = counted(sum(total.turns for total in totals), "call")
    console.print(f"{calls} for {amount(_cost(lines))}; compaction saved {amount(_net(totals))}")
    if off := _thinking_off(accounts):
        console.print(
            f"thinking was disabled in {counted(off, 'call')}: a compaction took away what began it"
        )


def _said(accounts: list[Account], lines: list[Line], totals: list[Figures]) -> dict[str, object]:
    """Return the bill for programs; money is in nano-dollars, null where a price is not known."""
    return {
        "calls": sum(total.turns for total in totals),
        "cost": _cost(lines),
        "net": _net(totals),
        "thinking_off": _thinking_off(accounts),
        "sessions": lines,
    }


def _thinking_off(accounts: list[Account]) -> int:
    """Return in how many calls a thinking budget was disabled because the provider would have refused it."""
    return sum(record.thinking_off for account in accounts for record in account.records)


def _cost(lines: list[Line]) -> int | None:
    known = [line.cost for line in lines]
    return None if None in known else sum(each or 0 for each in known)


def _net(totals: list[Figures]) -> int | None:
    nets = [total.net for total in totals]
    return None if None in nets else sum(each or 0 for each in nets)
