"""`lowwater sessions delete`, `prune`, `verify`, `salvage` and `backup`, and what all session commands share."""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from lowwater.adapters.settings import load_settings
from lowwater.cli.command import FAILED, AsJson, say
from lowwater.cli.stored_sessions import (
    StoreAddress,
    command_line,
    complete_session,
    named,
    opened_store,
    print_command,
    quoted,
    several,
)
from lowwater.cli.tables import print_json, print_lines
from lowwater.cli.wording import ago, moment, on_one_line, read_since
from lowwater.core.ledger import Ledger
from lowwater.core.stored import Listed
from lowwater.core.wording import counted
from lowwater.errors import BadInput
from lowwater.protocols import Store
from lowwater.session import factories, verification
from lowwater.session.plugins import policy_names
from lowwater.session.repository import SessionRepository

# What the commands share

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Redact = Annotated[
    bool | None,
    typer.Option(
        "--redact/--no-redact", help="Redact secrets (keys, tokens); default: the setting privacy.redact."
    ),
]
NewFile = Annotated[Path, typer.Argument(metavar="FILE", help="A file that does not exist yet.")]


def redacts(flag: bool | None) -> bool:
    """Return whether to redact secrets: as the option says, or else as the settings say."""
    if flag is not None:
        return flag
    resolved = load_settings(config=None, env=os.environ, flags={}, policies=policy_names)
    for warning in resolved.warnings:
        say(f"warning: {warning}")
    return resolved.settings.privacy.redact


def exactly_named(known: Sequence[Listed], wanted: str) -> Listed:
    """Return the session with exactly this name, or raise a BadInput that names similar ones."""
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
    """Return the ledger of a session, or raise BadInput if it has been deleted meanwhile."""
    found = SessionRepository(name, store).find()
    if found is None:
        raise BadInput(f"the session {quoted(name)} has just been deleted")
    return found.ledger


# delete and prune

_NAMED = 10
"""How many sessions are named before they are deleted; of the rest only the number is printed."""


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

    Nothing is deleted if one of the names is unknown. Messages that another
    session also has, such as the one that continues it, stay there.

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
        str, typer.Option(metavar="AGE|DATE", help="An age (30d, 12h, 2w) or a day (2026-11-01).")
    ],
    source: Annotated[
        str, typer.Option(metavar="NAME", help="Only sessions from this source: cli, import, …")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be deleted.")] = False,
    yes: Yes = False,
    json: AsJson = False,
    store: StoreAddress = "",
) -> None:
    """Delete the sessions that have not changed for some time.

    The last change of a session counts, not the time it began.

    lowwater sessions prune --older-than 30d --dry-run
    lowwater sessions prune --older-than 2w --source import --yes
    """
    now = time.time()
    before = read_since(older_than, now)
    if before > now:
        raise BadInput(
            f"{moment(before)} is in the future, so that every session is older: name an earlier day"
        )
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
    """Abort unless the user confirms; refuse if there is no terminal to ask on."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise BadInput(
            f"deleting {_several(chosen)} needs a confirmation, and there is no terminal to ask on: add --yes"
        )
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
        print_json(said)
        return
    done = f"{_several(gone)} would be deleted" if dry_run else f"Deleted {_several(gone)}"
    print_lines([*_lines(gone), Text(f"{done}." if gone else "Nothing to delete.", style="bold")])


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


# verify, salvage and backup


def verify(*, json: AsJson = False, store: StoreAddress = "") -> None:
    """Read the whole store and report what is damaged.

    Nothing is changed. Every message and entry is compared with the digest it was stored with.
    The exit code is 1 if anything is damaged; `salvage` saves the rest.

    lowwater sessions verify
    lowwater sessions verify --store sqlite:///copy.db --json
    """
    address = store.strip() or factories.default_address()
    found = verification.verify_store(address)
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
        print_lines([Text(f"{kept}: {'intact' if found.is_whole else 'damaged'}.", style="bold")])
        if not found.is_whole:
            command = command_line(["sessions", "salvage", "salvaged.db"], store=store)
            print_command("To save what is intact into a new store:", command)
    if not found.is_whole:
        raise typer.Exit(FAILED)


def salvage(to: NewFile, *, redact: Redact = None, json: AsJson = False, store: StoreAddress = "") -> None:
    """Write all that is intact in a damaged store into a new one.

    The damaged file is only read, page by page: it may be truncated, and its
    tables may be broken. A note takes the place of a lost message, so that
    numbers, handles and summaries still refer to the right ones. Keep the old
    file until you have looked at the new one. SQLite files only.

    lowwater sessions salvage new.db
    lowwater sessions salvage new.db --store sqlite:///damaged.db
    """
    address = store.strip() or factories.default_address()
    found = verification.salvaged(address, to, redact=redacts(redact))
    if json:
        print_json({"from": address, "to": str(to), "sessions": found})
        return
    for each in found:
        lost = verification.lost_words(each) or "intact"
        print_lines([Text(f"{on_one_line(each.name, 60)}: {counted(each.messages, 'message')}, {lost}")])
    whole = sum(each.is_whole for each in found)
    said = f"{counted(len(found), 'session')} written to {to}, {whole:,} of them intact."
    print_lines([Text(said, style="bold")])
    command = command_line(["sessions", "verify"], store=f"sqlite:///{to}")
    print_command("To check the new store before it replaces the old one:", command)


def backup(to: NewFile, *, json: AsJson = False, store: StoreAddress = "") -> None:
    """Copy the store into one new file, even while agents use it.

    The copy is complete and consistent. A plain `cp` is not: the newest commits
    are in a second file beside the store. To restore the copy, stop whatever
    uses the store, replace its file, and delete the old -wal and -shm files.
    SQLite files only; for PostgreSQL use pg_dump.

    lowwater sessions backup sessions-monday.db
    lowwater sessions backup copy.db --store sqlite:///agent.db
    """
    address = store.strip() or factories.default_address()
    verification.backed_up(address, to)
    size = to.stat().st_size
    if json:
        print_json({"from": address, "to": str(to), "bytes": size})
        return
    print_lines([Text(f"Copied to {to}, {size:,} bytes.", style="bold")])
