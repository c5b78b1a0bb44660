"""`lowwater sessions delete` and `prune`: sessions that are to be gone for good."""

import sys
import time
from collections.abc import Sequence
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from lowwater.cli.kept_session import complete_session
from lowwater.cli.kept_words import ago, moment, on_one_line, read_since
from lowwater.cli.sessions.flags import AsJson, Yes
from lowwater.cli.sessions.named import exactly_named
from lowwater.cli.store_flag import StoreAddress, opened_store
from lowwater.core.stored import Listed
from lowwater.core.wording import counted
from lowwater.errors import BadInput
from lowwater.protocols import Store

_NAMED = 10
"""Sessions that are named one by one before they go; of more only the number is told."""


def delete(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME…", help="Whole names of sessions.", autocompletion=complete_session),
    ],
    *,
    yes: Yes = False,
    json: AsJson = False,
    store: StoreAddress = "",
) -> None:
    """Delete sessions for good: messages, search index and accounts.

    Nothing is deleted if one of the names is unknown. What another session
    also has, such as the one that continues it, stays there.

    lowwater sessions delete scratch
    lowwater sessions delete old-1 old-2 --yes
    """
    with opened_store(store) as opened:
        known = opened.sessions()
        chosen = [exactly_named(known, name) for name in dict.fromkeys(names)]
        if not yes:
            _ask(chosen)
        gone = _delete(opened, chosen)
    _tell(gone, json=json, dry_run=False)


def prune(
    *,
    older_than: Annotated[
        str,
        typer.Option(
            metavar="AGE|DATE", help="30d, 12h, 2w, or a day such as 2026-11-01.", show_default=False
        ),
    ],
    source: Annotated[
        str, typer.Option(metavar="NAME", help="Only those from there: cli, import, …", show_default=False)
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be deleted.")] = False,
    yes: Yes = False,
    json: AsJson = False,
    store: StoreAddress = "",
) -> None:
    """Delete the sessions that nothing happened in for so long.

    What counts is the last change of a session, not when it began.

    lowwater sessions prune --older-than 30d --dry-run
    lowwater sessions prune --older-than 2w --source import --yes
    """
    now = time.time()
    before = read_since(older_than, now)
    if before > now:
        raise BadInput(f"{moment(before)} is in the future, and every session is older: name an earlier day")
    with opened_store(store) as opened:
        chosen = [
            each
            for each in opened.sessions()
            if 0 < each.changed_at < before and (not source or each.about.source == source)
        ]
        if chosen and not (yes or dry_run):
            _ask(chosen)
        gone = chosen if dry_run else _delete(opened, chosen)
    _tell(gone, json=json, dry_run=dry_run)


def _ask(chosen: Sequence[Listed]) -> None:
    """Go on only if the user says yes; where there is nobody to ask, refuse."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise BadInput(f"there is nobody to ask whether to delete {_several(chosen)}: say --yes")
    console = Console(stderr=True, highlight=False)
    for line in _lines(chosen):
        console.print(line)
    typer.confirm(f"Delete {_several(chosen)} for good?", abort=True, err=True)


def _delete(store: Store, chosen: Sequence[Listed]) -> list[Listed]:
    """Delete sessions and return those that were still there."""
    kept = {each.name for each in store.sessions()}
    there = [each for each in chosen if each.name in kept]
    if there:
        store.delete(*(each.name for each in there))
    return there


def _tell(gone: Sequence[Listed], *, json: bool, dry_run: bool) -> None:
    if json:
        said = {
            "deleted": [] if dry_run else [each.name for each in gone],
            "would_delete": [each.name for each in gone] if dry_run else [],
            "messages": sum(each.messages for each in gone),
        }
        typer.echo(msgspec.json.format(msgspec.json.encode(said), indent=2).decode())
        return
    console = Console(highlight=False)
    for line in _lines(gone):
        console.print(line)
    done = f"{_several(gone)} would be deleted" if dry_run else f"Deleted {_several(gone)}"
    console.print(Text(f"{done}." if gone else "Nothing to delete.", style="bold"))


def _lines(chosen: Sequence[Listed]) -> list[Text]:
    now = time.time()
    lines = [
        Text(f"  {on_one_line(each.name, 40)}")
        + Text(
            f"  {counted(each.messages, 'message')}, changed {ago(each.changed_at, now)}",
            style="bright_black",
        )
        for each in chosen[:_NAMED]
    ]
    if len(chosen) > _NAMED:
        lines.append(Text(f"  … and {len(chosen) - _NAMED:,} more", style="bright_black"))
    return lines


def _several(chosen: Sequence[Listed]) -> str:
    messages = sum(each.messages for each in chosen)
    return f"{counted(len(chosen), 'session')} with {counted(messages, 'message')}"
