"""`lowwater status`: one kept session in numbers, or a line for each."""

import time
from typing import Annotated

import typer

from lowwater.adapters.models import load_registry
from lowwater.cli.kept_session import (
    EMPTY,
    all_accounts,
    complete_session,
    find_session,
    newest_session,
    open_kept,
)
from lowwater.cli.printing import page_width, print_json, print_page
from lowwater.cli.settings_flags import with_settings
from lowwater.cli.status_lines import line_of, lines_table
from lowwater.cli.status_page import Looked, page
from lowwater.cli.store_flag import StoreAddress, opened_store
from lowwater.core.accounts.advice import sentence
from lowwater.core.accounts.cadence import cadence
from lowwater.core.accounts.efficiency import compactions, efficiency
from lowwater.core.accounts.figures import Figures, Gathered, figures
from lowwater.core.accounts.payback import paybacks
from lowwater.core.models.registry import Registry
from lowwater.core.stored import Account
from lowwater.errors import BadInput
from lowwater.protocols import Store
from lowwater.settings import Settings
from lowwater.settings.resolve import Resolved


@with_settings
def status(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="A kept session; without it, the newest.",
            show_default=False,
            autocompletion=complete_session,
        ),
    ] = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="A line for each session.")] = False,
    store: StoreAddress = "",
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of text.")] = False,
    settings: Resolved,
) -> None:
    """Show a kept session in numbers: window, cache, costs, and what compaction did about them.

    The plot has the size of the prompt at each turn, ▲ where it was compacted,
    and the threshold as a line. "Saved" counts tokens at every call that did
    not carry them; "net" is what was saved in money, all that compacting cost
    deducted. In JSON money is in nano-dollars, and null if it is not known.

    lowwater status                    the session used last
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
            _show(_looked(opened, name, settings.settings), json=json)


def _looked(store: Store, name: str | None, settings: Settings) -> Looked:
    listed = newest_session(store) if name is None else find_session(store, name)
    session = open_kept(store, listed, settings)
    (account,) = store.accounts([listed.name])
    registry = load_registry()
    return Looked(
        account=account,
        status=session.status(),
        model=registry.find(session.route.model),
        efficiency=efficiency([account], registry),
        cadence=cadence([account]),
    )


def _show(looked: Looked, *, json: bool) -> None:
    if json:
        print_json(_said(looked))
    else:
        print_page(page(looked, width=page_width(), now=time.time()))


def _show_all(store: Store, *, json: bool) -> None:
    registry = load_registry()
    accounts = all_accounts(store)
    lines = [line_of(account, total_of(account, registry)) for account in accounts]
    if json:
        print_json({"sessions": lines})
        return
    if not lines:
        raise BadInput(EMPTY)
    print_page([lines_table(lines, width=page_width(), now=time.time())])


def total_of(account: Account, registry: Registry) -> Figures:
    """Return what one session adds up to, without looking at models and summarizers apart."""
    bought = paybacks(account, registry)
    gathered = Gathered(sessions=1, records=account.records, events=compactions(account), paybacks=bought)
    return figures("", gathered)


def _said(looked: Looked) -> dict[str, object]:
    account, found = looked.account, looked.efficiency
    return {
        "session": account.session,
        "status": looked.status,
        "cost": found.total.cost,
        "untouched": found.total.untouched,
        "unpriced_turns": found.total.unpriced_turns,
        "efficiency": {
            "passes": found.total.passes,
            "tokens_saved": found.total.saved,
            "compaction_cost": found.total.compaction_cost,
            "net": found.total.net,
            "repayment": found.repayment,
            "advice": [
                {"code": each.code, "facts": each.facts, "said": sentence(each)} for each in found.advice
            ],
        },
        "cadence": looked.cadence,
        "prompts": looked.prompts,
        "compactions": [
            {"turn": turn, "mode": event.mode, "before": event.before, "after": event.after}
            for turn, event in zip(looked.compacted_before, compactions(account), strict=True)
        ],
    }
