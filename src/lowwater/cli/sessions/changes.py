"""`lowwater sessions delete`, `prune`, `verify`, `salvage` and `backup`."""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from lowwater.adapters.settings import load_settings
from lowwater.cli.command import FAILED, say
from lowwater.cli.kept_sessions import (
    StoreAddress,
    command_line,
    complete_session,
    named,
    opened_store,
    print_command,
    print_json,
    print_lines,
    quoted,
    several,
)
from lowwater.cli.wording import ago, moment, on_one_line, read_since
from lowwater.core.ledger import Ledger
from lowwater.core.stored import Listed
from lowwater.core.wording import counted
from lowwater.errors import BadInput
from lowwater.protocols import Store
from lowwater.session import factories
from lowwater.session.plugins import policy_names
from lowwater.session.repository import SessionRepository

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of text.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Redact = Annotated[
    bool | None,
    typer.Option(
        "--redact/--no-redact",
        help="Conceal secrets (keys, tokens); default: the setting privacy.redact.",
        show_default=False,
    ),
]
_NAMED = 10
"""Sessions that are named one by one before they go; of more only the number is told."""
NewFile = Annotated[Path, typer.Argument(metavar="FILE", help="A file that does not exist yet.")]


def redacts(flag: bool | None) -> bool:
    """Tell whether secrets are to be concealed: what was said, or else what the settings say."""
    if flag is not None:
        return flag
    resolved = load_settings(config=None, env=os.environ, flags={}, policies=policy_names)
    for warning in resolved.warnings:
        say(f"warning: {warning}")
    return resolved.settings.privacy.redact


def exactly_named(known: Sequence[Listed], wanted: str) -> Listed:
    """Return the session of exactly this name, or raise a BadInput that names those like it."""
    exact = next((each for each in known if each.name == wanted), None)
    if exact is not None:
        return exact
    begin = [each for each in known if wanted and each.name.startswith(wanted)]
    if begin:
        raise BadInput(
            f"there is no session {quoted(wanted)}: write the whole name, such as {several(begin[:2])}"
        )
    return named(known, wanted)


def ledger_of(store: Store, name: str) -> Ledger:
    """Return the ledger of a session, or raise BadInput if it is gone meanwhile."""
    found = SessionRepository(name, store).find()
    if found is None:
        raise BadInput(f"the session {quoted(name)} has just been deleted")
    return found.ledger


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


def verify(*, json: AsJson = False, store: StoreAddress = "") -> None:
    """Read everything that is kept and say what is damaged; nothing is changed.

    Every message and entry is compared with the digest it was stored with.
    The exit code is 1 if anything is wrong. `salvage` gets out what is whole.

    lowwater sessions verify
    lowwater sessions verify --store sqlite:///copy.db --json
    """
    address = store.strip() or factories.default_address()
    found = factories.verify(address)
    if json:
        print_json(
            {
                "store": address,
                "whole": found.is_whole,
                "problems": found.problems,
                "sessions": found.sessions,
            }
        )
    else:
        print_lines([Text(f"file: {problem}", style="red") for problem in found.problems])
        print_lines(
            [
                Text(f"{on_one_line(each.name, 60)}: {each.problem}", style="red")
                for each in found.sessions
                if each.problem
            ]
        )
        messages = sum(each.messages for each in found.sessions)
        kept = f"{counted(len(found.sessions), 'session')} with {counted(messages, 'message')}"
        print_lines([Text(f"{kept}: {'all whole' if found.is_whole else 'damaged'}.", style="bold")])
        if not found.is_whole:
            command = command_line(["sessions", "salvage", "salvaged.db"], store=store)
            print_command("What is whole can be written into a new store:", command)
    if not found.is_whole:
        raise typer.Exit(FAILED)


def salvage(to: NewFile, *, redact: Redact = None, json: AsJson = False, store: StoreAddress = "") -> None:
    """Write all that is whole in a damaged store into a new one.

    The damaged file is only read, page by page: it may be cut short, and its
    tables broken. A message that is lost keeps its place, with a note in it, so
    that numbers, handles and summaries still mean what they meant. Keep the old
    file until you have looked at the new one. SQLite files only.

    lowwater sessions salvage new.db
    lowwater sessions salvage new.db --store sqlite:///damaged.db
    """
    address = store.strip() or factories.default_address()
    found = factories.salvaged(address, to, redact=redacts(redact))
    if json:
        print_json({"from": address, "to": str(to), "sessions": found})
        return
    for each in found:
        lost = factories.lost_words(each) or "whole"
        print_lines([Text(f"{on_one_line(each.name, 60)}: {counted(each.messages, 'message')}, {lost}")])
    whole = sum(each.is_whole for each in found)
    said = f"{counted(len(found), 'session')} written to {to}, {whole:,} of them whole."
    print_lines([Text(said, style="bold")])
    command = command_line(["sessions", "verify"], store=f"sqlite:///{to}")
    print_command("To look at the new store, then put it in the place of the old:", command)


def backup(to: NewFile, *, json: AsJson = False, store: StoreAddress = "") -> None:
    """Copy the store into one new file, while agents go on using it.

    The copy is whole and as of one moment. A plain `cp` is not: the newest
    commits are in a second file beside the store. To go back, end what uses the
    store, and put the copy in its place without the old -wal and -shm files.
    SQLite files only; for PostgreSQL use pg_dump.

    lowwater sessions backup sessions-monday.db
    lowwater sessions backup copy.db --store sqlite:///agent.db
    """
    address = store.strip() or factories.default_address()
    factories.backed_up(address, to)
    size = to.stat().st_size
    if json:
        print_json({"from": address, "to": str(to), "bytes": size})
        return
    print_lines([Text(f"Copied to {to}, {size:,} bytes.", style="bold")])
