"""`lowwater sessions verify`, `salvage` and `backup`: taking care of the file that sessions are kept in."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from lowwater.cli.failing import FAILED
from lowwater.cli.kept_words import on_one_line
from lowwater.cli.printing import command_line, print_command, print_json, print_lines
from lowwater.cli.sessions.flags import AsJson, Redact, redacts
from lowwater.cli.store_flag import StoreAddress
from lowwater.core.wording import counted
from lowwater.session import factories

NewFile = Annotated[Path, typer.Argument(metavar="FILE", help="A file that does not exist yet.")]


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
