"""`lowwater sessions diff`: shows what changed between two views of a stored session."""

from collections.abc import Iterator
from typing import Annotated

import typer
from rich.padding import Padding
from rich.text import Text

from lowwater.cli.command import AsJson
from lowwater.cli.sessions.checkpoints import checkpoint_named
from lowwater.cli.stored_sessions import SessionName, StoreAddress, find_session, opened_store
from lowwater.cli.tables import fields_of, print_json, print_page
from lowwater.cli.wording import on_one_line, printable
from lowwater.core.accounts.difference import Difference, words_of
from lowwater.session.reopen import open_kept

_KINDS = {
    "edited": "yellow",
    "summarised": "magenta",
    "restored": "cyan",
    "appended": "green",
    "dropped": "red",
    "model": "blue",
    "preamble": "blue",
}
_UNDER = " " * 6
"""The prefixes of lines that show changes inside a message."""
_SIGNS = {"+": "green", "-": "red", "@": "cyan"}
_NOW = "now"


def difference_lines(difference: Difference, *, full: bool = False) -> Iterator[Text | Padding]:
    """Yield a difference line by line, with changes inside messages if `full`."""
    for number, line in enumerate(printable(words_of(difference, full=full)).splitlines()):
        if line.startswith(_UNDER):
            inside = line.removeprefix(_UNDER)
            style = _SIGNS.get(inside[:1], "bright_black")
            yield Padding(Text(inside, style=style), (0, 0, 0, len(_UNDER)))
        else:
            yield Text(line, style=_style(line) if number else "bold")


def difference_json(difference: Difference, *, full: bool) -> dict[str, object]:
    """Return a difference as JSON values; with changed texts if `full`."""
    told = ("kind", "numbers", "messages", "before", "after", *(["parts"] if full else []))
    whole = fields_of(difference, "before", "after", "is_empty", "models", "preamble")
    return whole | {"changes": [fields_of(change, *told) for change in difference.changes]}


def _style(line: str) -> str:
    words = line.split(maxsplit=1)
    return _KINDS.get(words[0] if words else "", "bright_black")


def diff(
    name: SessionName,
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="A checkpoint, by name or number.")],
    after: Annotated[
        str | None, typer.Argument(metavar="AFTER", help="Another one; without it, the view now.")
    ] = None,
    *,
    full: Annotated[
        bool, typer.Option("--full", help="Show what changed inside messages, line by line.")
    ] = False,
    store: StoreAddress = "",
    json: AsJson = False,
) -> None:
    """Show what changed in view since a checkpoint.

    Each line is one change: the messages, and their tokens before and after.
    Every message is in exactly one line. `lowwater sessions checkpoints` lists possible
    values of BEFORE and AFTER; `lowwater recall` shows the messages themselves.

    lowwater sessions diff refactor-auth before-compaction-2
    lowwater sessions diff refactor-auth 1 2 --full
    """
    with opened_store(store) as opened:
        session = open_kept(opened, find_session(opened, name))
        first = checkpoint_named(session, before)
        last = checkpoint_named(session, after) if after is not None else None
        found = session.diff(first.position, after=None if last is None else last.position)
        until = _NOW if last is None else last.name
    if json:
        said = {"session": name, "from": first.name, "to": until}
        print_json(said | difference_json(found, full=full))
        return
    title = f" · {on_one_line(first.name, 200)} → {on_one_line(until, 40)}"
    heading = Text.assemble((on_one_line(name, 200), "bold"), title)
    print_page([heading, *difference_lines(found, full=full)])
