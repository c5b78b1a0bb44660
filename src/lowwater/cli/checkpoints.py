"""`lowwater checkpoints`: lists and names the checkpoints of a stored session."""

import time
from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec
import typer
from rich.table import Table
from rich.text import Text

from lowwater.cli.stored_sessions import (
    SessionName,
    StoreAddress,
    find_session,
    open_kept,
    opened_store,
    page_width,
    print_json,
    print_page,
)
from lowwater.cli.tables import bar
from lowwater.cli.wording import ago, moment, on_one_line
from lowwater.core.turns.rewind import Checkpoint
from lowwater.core.wording import counted
from lowwater.errors import BadInput
from lowwater.session.internals import internals
from lowwater.session.session import Session


def checkpoints(
    name: SessionName,
    *,
    call_it: Annotated[
        str,
        typer.Option("--name", metavar="X", help="Give the present position this name.", show_default=False),
    ] = "",
    store: StoreAddress = "",
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of text.")] = False,
) -> None:
    """List the checkpoints of a session: before each compaction and rewind, and those with a name.

    Each line has a number or a name for `lowwater rewind` and `lowwater diff`,
    and the size of the view there, in tokens and messages.

    lowwater checkpoints refactor-auth
    lowwater checkpoints refactor-auth --name tests-pass
    """
    with opened_store(store) as opened:
        session = open_kept(opened, find_session(opened, name))
        if call_it:
            session.checkpoint(call_it)
        found = session.checkpoints()
        if json:
            print_json(_said(session, found))
        else:
            print_page(checkpoints_page(session, found, page_width()))


def checkpoint_named(session: Session, wanted: str) -> Checkpoint:
    """Return the checkpoint with this name, or this number in the list; raise BadInput if there is none."""
    found = session.checkpoints()
    for each in found:
        if each.name == wanted:
            return each
    if wanted.isdecimal() and 1 <= int(wanted) <= len(found):
        return found[int(wanted) - 1]
    newest = ", ".join(on_one_line(each.name, 200) for each in found[-5:]) or "none yet"
    raise BadInput(f"there is no checkpoint “{on_one_line(wanted, 60)}”; the newest are: {newest}")


def checkpoints_page(session: Session, found: Sequence[Checkpoint], width: int) -> Iterator[Text | Table]:
    """Yield a line for each checkpoint."""
    now, view = time.time(), internals(session).ledger.view
    said = f"{counted(len(found), 'checkpoint')}; the view now has {view.tokens:,} tokens in {len(view.items):,} messages"
    yield Text.assemble((on_one_line(session.name, 200), "bold"), f" · {said}")
    if not found:
        yield Text("A compaction makes one by itself; --name gives the present position a name.")
        return
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bright_black")
    table.add_column("#", justify="right", style="bright_black")
    table.add_column("name", no_wrap=True, overflow="ellipsis")
    table.add_column("when", no_wrap=True, style="bright_black")
    table.add_column("messages", justify="right")
    table.add_column("tokens", justify="right")
    table.add_column("", no_wrap=True)
    largest = max(each.tokens for each in found)
    for number, each in enumerate(found, start=1):
        when = ago(each.at, now) if width < 100 else f"{moment(each.at)}, {ago(each.at, now)}"
        table.add_row(
            str(number),
            Text(on_one_line(each.name, 200)),
            when,
            f"{each.messages:,}",
            f"{each.tokens:,}",
            bar(each.tokens, largest, max(5, width - (76 if width < 100 else 94))),
        )
    yield table


def _said(session: Session, found: Sequence[Checkpoint]) -> dict[str, object]:
    listed = [
        {"number": number, **msgspec.structs.asdict(each)} for number, each in enumerate(found, start=1)
    ]
    return {
        "session": session.name,
        "view": {
            "tokens": internals(session).ledger.view.tokens,
            "messages": len(internals(session).ledger.view.items),
        },
        "checkpoints": listed,
    }
