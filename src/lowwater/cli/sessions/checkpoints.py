"""`lowwater sessions checkpoints`: lists and names the checkpoints of a stored session."""

import time
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from msgspec.structs import asdict
from rich.table import Table
from rich.text import Text

from lowwater.cli.command import AsJson
from lowwater.cli.stored_sessions import SessionName, StoreAddress, find_session, opened_store
from lowwater.cli.tables import bar, figures_table, page_width, print_json, print_page
from lowwater.cli.wording import ago, moment, on_one_line
from lowwater.core.turns.rewind import Checkpoint
from lowwater.core.wording import counted
from lowwater.errors import BadInput
from lowwater.session.internals import internals
from lowwater.session.reopen import open_kept
from lowwater.session.session import Session


def checkpoints(
    name: SessionName,
    *,
    call_it: Annotated[
        str, typer.Option("--name", metavar="X", help="Give the present position this name.")
    ] = "",
    store: StoreAddress = "",
    json: AsJson = False,
) -> None:
    """List the points that a session can be taken back to.

    There is one before each compaction and rewind, and one wherever --name set it.
    Each line has a number or a name for `lowwater rewind` and `lowwater sessions diff`,
    and the size of the view there, in tokens and messages.

    lowwater sessions checkpoints refactor-auth
    lowwater sessions checkpoints refactor-auth --name tests-pass
    """
    with opened_store(store) as opened:
        session = open_kept(opened, find_session(opened, name))
        if call_it:
            session.checkpoint(call_it)
        found = session.checkpoints()
        if json:
            listed = [{"number": number, **asdict(each)} for number, each in enumerate(found, start=1)]
            shown = internals(session).ledger.view
            view = {"tokens": shown.tokens, "messages": len(shown.items)}
            print_json({"session": session.name, "view": view, "checkpoints": listed})
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
    table = figures_table(figures=("#",))
    table.add_column("name", no_wrap=True, overflow="ellipsis")
    table.add_column("when", no_wrap=True, style="bright_black")
    for title in ("messages", "tokens"):
        table.add_column(title, justify="right")
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
