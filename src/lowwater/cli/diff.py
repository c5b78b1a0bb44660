"""`lowwater diff`: what changed in a kept session from one view to another."""

from typing import Annotated

import typer
from rich.text import Text

from lowwater.cli.checkpoints import checkpoint_named
from lowwater.cli.difference_page import difference_lines, difference_said
from lowwater.cli.kept_session import SessionName, find_session, open_kept
from lowwater.cli.kept_words import on_one_line
from lowwater.cli.printing import print_json, print_page
from lowwater.cli.store_flag import StoreAddress, opened_store

_NOW = "now"


def diff(
    name: SessionName,
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="A checkpoint, by name or number.")],
    after: Annotated[
        str | None,
        typer.Argument(metavar="AFTER", help="Another one; without it, the view now.", show_default=False),
    ] = None,
    *,
    full: Annotated[
        bool, typer.Option("--full", help="Show what changed inside messages, line by line.")
    ] = False,
    store: StoreAddress = "",
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of text.")] = False,
) -> None:
    """Show what changed from the view at one checkpoint to that at another, or to the view now.

    A line for each change: which messages, their tokens before and after.
    Every message is in exactly one of them. `lowwater checkpoints` lists what
    BEFORE and AFTER can be; `lowwater recall` shows the messages themselves.

    lowwater diff refactor-auth before-compaction-2
    lowwater diff refactor-auth 1 2 --full
    """
    with opened_store(store) as opened:
        session = open_kept(opened, find_session(opened, name))
        first = checkpoint_named(session, before)
        last = checkpoint_named(session, after) if after is not None else None
        found = session.diff(first.position, after=None if last is None else last.position)
        until = _NOW if last is None else last.name
    if json:
        said = {"session": name, "from": first.name, "to": until}
        print_json(said | difference_said(found, full=full))
        return
    title = f" · {on_one_line(first.name, 200)} → {on_one_line(until, 40)}"
    heading = Text.assemble((on_one_line(name, 200), "bold"), title)
    print_page([heading, *difference_lines(found, full=full)])
