"""`lowwater sessions list`: what sessions are kept, the newest first."""

import time
from collections.abc import Sequence
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from lowwater.cli.failing import say
from lowwater.cli.kept_words import on_one_line
from lowwater.cli.sessions.costs import costs_of
from lowwater.cli.sessions.flags import AsJson
from lowwater.cli.sessions.listing_table import Row, narrow_table, wide_table
from lowwater.cli.store_flag import StoreAddress, opened_store
from lowwater.core.stored import Listed
from lowwater.errors import DamagedStore
from lowwater.protocols import Store

_SHOWN = 20
"""Rows of a table if nothing is said."""
_UNBOUNDED = 1_000
"""Columns in which any table fits."""


def list_sessions(
    *,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="So many at most; default: 20, all with --json.", show_default=False
        ),
    ] = None,
    source: Annotated[
        str, typer.Option(metavar="NAME", help="Only those from there: cli, import, …", show_default=False)
    ] = "",
    json: AsJson = False,
    store: StoreAddress = "",
) -> None:
    """List the kept sessions, the one changed last first.

    Costs are those of all calls, summaries included; where the price of one
    was not known, the sum is unknown.

    lowwater sessions
    lowwater sessions list --limit 100 --source import
    lowwater sessions --json | jq '.sessions[].name'
    """
    with opened_store(store, is_needed=False) as opened:
        known = [each for each in opened.sessions() if not source or each.about.source == source]
        chosen = known[: limit or (len(known) if json else _SHOWN)]
        rows = rows_of(opened, chosen)
    if json:
        said = msgspec.json.encode({"total": len(known), "sessions": rows})
        typer.echo(msgspec.json.format(said, indent=2).decode())
        return
    console = Console(highlight=False)
    if not known:
        where = f" from {on_one_line(source, 40)}" if source else ""
        console.print(Text(f"No session{where} is kept here yet."))
        return
    wide = wide_table(rows, time.time())
    fits = console.measure(wide, options=console.options.update(width=_UNBOUNDED)).maximum <= console.width
    console.print(wide if fits else narrow_table(rows, time.time(), console.width))
    if len(rows) < len(known):
        console.print(
            Text(f"\n{len(rows):,} of {len(known):,} sessions; --limit shows more.", style="bright_black")
        )


def rows_of(store: Store, chosen: Sequence[Listed]) -> list[Row]:
    """Return sessions with what they cost; of one whose account is damaged that is unknown, and said to be so."""
    costs = _costs(store, [each.name for each in chosen])
    return [
        Row(
            name=each.name,
            title=each.about.title,
            source=each.about.source,
            parent=each.about.parent,
            model=each.model,
            messages=each.messages,
            turns=each.turns,
            compactions=each.compactions,
            cost=costs.get(each.name),
            opened_at=each.opened_at,
            changed_at=each.changed_at,
            ended_at=each.about.ended_at,
            ended_because=each.about.ended_because,
        )
        for each in chosen
    ]


def _costs(store: Store, names: Sequence[str]) -> dict[str, int | None]:
    try:
        accounts = store.accounts(names)
    except DamagedStore as error:
        if len(names) > 1:
            return {name: cost for each in names for name, cost in _costs(store, [each]).items()}
        say(f"warning: {error}")
        return {}
    return {account.session.name: costs_of(account).total for account in accounts}
