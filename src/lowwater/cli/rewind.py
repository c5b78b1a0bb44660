"""`lowwater rewind`: takes a stored session back to a checkpoint, and prints how to undo that."""

import time
from typing import Annotated

import typer
from msgspec import Struct
from rich.text import Text

from lowwater.cli.command import AsJson
from lowwater.cli.sessions.checkpoints import checkpoint_named
from lowwater.cli.sessions.diff import difference_json, difference_lines
from lowwater.cli.stored_sessions import (
    OptionalSession,
    StoreAddress,
    command_line,
    opened_store,
    print_command,
    quoted,
    session_or_newest,
)
from lowwater.cli.tables import fields_of, print_json, print_page
from lowwater.cli.wording import on_one_line
from lowwater.core.accounts.difference import Difference, difference
from lowwater.core.entries import Compacted, Rewound
from lowwater.core.turns.rewind import Checkpoint
from lowwater.errors import BadInput
from lowwater.session.internals import internals
from lowwater.session.reopen import open_kept
from lowwater.session.session import Session


class Done(Struct, frozen=True, kw_only=True):
    """A rewind, carried out or as a dry run."""

    session: str
    to: str
    discard_later: bool
    is_dry_run: bool
    changes: Difference
    undo: str
    """The command that undoes it; empty after a dry run."""


def rewind(
    name: OptionalSession = None,
    to: Annotated[
        str | None,
        typer.Argument(
            metavar="TO", help="A checkpoint, by name or number; by default, before the last compaction."
        ),
    ] = None,
    *,
    discard_later: Annotated[
        bool, typer.Option("--discard-later", help="Leave out the messages that came after it, too.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would change.")] = False,
    store: StoreAddress = "",
    json: AsJson = False,
) -> None:
    """Take a session back to a checkpoint; nothing is ever lost.

    The view of the checkpoint is restored, followed by the messages that came
    later. Compactions since then are undone; with --discard-later, later messages
    leave the view too. A checkpoint is made before the rewind, and the command
    that undoes it is printed. If another process uses the session, it sees the
    rewind at its next turn.

    lowwater rewind                                undo the newest compaction
    lowwater rewind refactor-auth before-compaction-2 --dry-run
    lowwater rewind refactor-auth 2
    lowwater rewind refactor-auth tests-pass --discard-later
    """
    with opened_store(store) as opened:
        session = open_kept(opened, session_or_newest(opened, name))
        place = _before_compaction(session) if to is None else checkpoint_named(session, to)
        done = (
            _looked(session, place, discard_later=discard_later)
            if dry_run
            else _rewound(session, place, discard_later=discard_later, store=store)
        )
    if json:
        print_json(_said(done))
    else:
        _print(done)


def _before_compaction(session: Session) -> Checkpoint:
    """Return the checkpoint before the last compaction that is in force, after everything that was undone and redone."""
    entries, in_force = internals(session).ledger.entries, list[Checkpoint]()
    then: dict[int, list[Checkpoint]] = {}
    for each in session.checkpoints():
        then[each.position] = in_force
        match entries[each.position]:
            case Rewound(to=to):
                in_force = then[min(position for position in then if position >= to)]
            case Compacted():
                in_force = [*in_force, each]
            case _:
                pass
    if not in_force:
        raise BadInput(
            f"no compaction of {quoted(session.name)} is in force: `lowwater sessions checkpoints` lists what it can be rewound to"
        )
    return in_force[-1]


def _looked(session: Session, place: Checkpoint, *, discard_later: bool) -> Done:
    """Return what a rewind would change."""
    ledger = internals(session).ledger
    entry = Rewound(at=time.time(), to=place.position, discard_later=discard_later)
    return Done(
        session=session.name,
        to=place.name,
        discard_later=discard_later,
        is_dry_run=True,
        changes=difference(ledger.view, ledger.append(entry).view),
        undo="",
    )


def _rewound(session: Session, place: Checkpoint, *, discard_later: bool, store: str) -> Done:
    """Rewind, and return what that changed."""
    before = internals(session).ledger
    session.rewind(place.position, discard_later=discard_later)
    made = session.checkpoints()[-1]
    return Done(
        session=session.name,
        to=place.name,
        discard_later=discard_later,
        is_dry_run=False,
        changes=difference(before.view, internals(session).ledger.view),
        undo=command_line(["rewind", session.name, made.name], store=store),
    )


def _print(done: Done) -> None:
    said = "would be rewound to" if done.is_dry_run else "was rewound to"
    title = Text.assemble((on_one_line(done.session, 200), "bold"), f" {said} {on_one_line(done.to, 200)}")
    print_page([title, *difference_lines(done.changes)])
    if done.undo:
        print_command("This takes it back:", done.undo)
    else:
        print_page([Text("\nNothing was changed: leave out --dry-run to do it.", style="bright_black")])


def _said(done: Done) -> dict[str, object]:
    return {
        **fields_of(done, "session", "to", "discard_later"),
        "dry_run": done.is_dry_run,
        "undo": done.undo or None,
        "changes": difference_json(done.changes, full=False),
    }
