"""`lowwater efficiency`: what kept sessions cost and what compaction did about it, by model and in all."""

import time
from collections.abc import Sequence
from typing import Annotated

import typer

from lowwater.adapters.models import load_registry
from lowwater.cli.efficiency_page import page
from lowwater.cli.kept_session import EMPTY, all_accounts, complete_session, find_session, later_than
from lowwater.cli.kept_words import moment, read_since
from lowwater.cli.printing import page_width, print_json, print_page
from lowwater.cli.store_flag import StoreAddress, opened_store
from lowwater.core.accounts.advice import sentence
from lowwater.core.accounts.cadence import cadence
from lowwater.core.accounts.efficiency import Efficiency
from lowwater.core.accounts.efficiency import efficiency as efficiency_of
from lowwater.core.stored import Account
from lowwater.errors import BadInput
from lowwater.protocols import Store


def efficiency(
    *,
    since: Annotated[
        str,
        typer.Option(
            metavar="WHEN",
            help="Only what happened since then: 30d, 12h, 2w ago, or a day such as 2026-11-01.",
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

    "Untouched" is about what the calls would have cost had nothing ever been
    compacted; "net" is what was saved of it, summaries and rewriting of the
    cache deducted. Payback is the number of later calls after which a
    compaction had saved what it cost, beside what was predicted when it was
    decided. Models are matched whatever spelling calls used. In JSON money is
    in nano-dollars, and null if it is not known.

    lowwater efficiency                        all sessions
    lowwater efficiency --since 30d
    lowwater efficiency --session refactor-auth --json
    """
    begin = read_since(since, time.time()) if since else None
    with opened_store(store) as opened:
        accounts = _accounts(opened, session, begin)
    found = efficiency_of(accounts, load_registry())
    if json:
        print_json(_said(found, accounts, begin))
        return
    if not accounts:
        raise BadInput(EMPTY if begin is None else f"nothing happened in any session since {moment(begin)}")
    print_page(page(found, cadence(accounts), since=begin, width=page_width()))


def _accounts(store: Store, session: str, begin: float | None) -> list[Account]:
    every = store.accounts([find_session(store, session).name]) if session else all_accounts(store)
    if begin is None:
        return every
    later = (later_than(account, begin) for account in every)
    return [account for account in later if account.records or account.events]


def _said(found: Efficiency, accounts: Sequence[Account], begin: float | None) -> dict[str, object]:
    return {
        "since": begin,
        "total": found.total,
        "models": found.models,
        "summarizers": found.summarizers,
        "repayment": found.repayment,
        "cadence": cadence(accounts),
        "advice": [{"code": each.code, "facts": each.facts, "said": sentence(each)} for each in found.advice],
    }
