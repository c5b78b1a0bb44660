"""`lowwater sessions`: the commands for stored sessions; without a command it lists them."""

from collections.abc import Callable

import typer

from lowwater.cli.command import Command, Group
from lowwater.cli.sessions.changes import backup, delete, prune, salvage, verify
from lowwater.cli.sessions.checkpoints import checkpoints
from lowwater.cli.sessions.diff import diff
from lowwater.cli.sessions.files import export, import_sessions
from lowwater.cli.sessions.history import history
from lowwater.cli.sessions.listing import list_sessions, show
from lowwater.cli.sessions.pins import pins

__all__ = ["sessions"]

INTRODUCTION = """\
List, show, export, import, delete and repair stored sessions.

Without a command the newest are listed. They are stored in a SQLite file in
your data folder, unless --store or LOWWATER_STORE names another place.

[cyan]lowwater sessions[/cyan]                             list the newest
[cyan]lowwater sessions show refactor-auth[/cyan]          all about one
[cyan]lowwater sessions history refactor-auth[/cyan]       its compactions; did they pay?
[cyan]lowwater sessions pins refactor-auth[/cyan]          what the user laid down
[cyan]lowwater sessions export refactor-auth > it.jsonl[/cyan]
[cyan]lowwater sessions import old/*.jsonl.gz[/cyan]       conversations from files
[cyan]lowwater sessions prune --older-than 30d[/cyan]      delete old ones
[cyan]lowwater sessions backup monday.db[/cyan]            copy the store, even in use
"""


class _Sessions(Group):
    default = "list"


sessions = typer.Typer(cls=_Sessions, help=INTRODUCTION, rich_markup_mode="rich")
_COMMANDS: dict[str, dict[str, Callable[..., None]]] = {
    "Look at sessions": {
        "list": list_sessions,
        "show": show,
        "history": history,
        "checkpoints": checkpoints,
        "diff": diff,
        "pins": pins,
    },
    "To files and from files": {"export": export, "import": import_sessions, "backup": backup},
    "Clear up and repair": {"delete": delete, "prune": prune, "verify": verify, "salvage": salvage},
}
for panel, commands in _COMMANDS.items():
    for name, command in commands.items():
        sessions.command(name, cls=Command, rich_help_panel=panel)(command)
