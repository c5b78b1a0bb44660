"""`lowwater sessions`: the sessions that are kept, as a group of commands; alone it lists them."""

from typing import Any

import typer

from lowwater.cli.command import Command, Group
from lowwater.cli.sessions.changes import backup, delete, prune, salvage, verify
from lowwater.cli.sessions.files import export, import_sessions
from lowwater.cli.sessions.listing import list_sessions, show

INTRODUCTION = """\
List the sessions that are kept, look at one, move them in and out, delete them,
copy the store, and get out what is whole of a damaged one.

Sessions are kept in a SQLite file of yours unless --store or LOWWATER_STORE
name another place. Without a command they are listed.

[bold]Examples[/bold]

[cyan]lowwater sessions[/cyan]                             the newest ones
[cyan]lowwater sessions show refactor-auth[/cyan]          everything told of one
[cyan]lowwater sessions export refactor-auth > it.jsonl[/cyan]
[cyan]lowwater sessions import old/*.jsonl.gz[/cyan]       conversations from files
[cyan]lowwater sessions prune --older-than 30d[/cyan]      what was not touched for so long
[cyan]lowwater sessions backup monday.db[/cyan]            a copy, while agents go on
[cyan]lowwater sessions verify[/cyan]                      is everything still what was written?
"""

_DEFAULT = "list"
_HELP = "--help"


class _ListsByDefault(Group):
    """A group that lists where no command is named, with the options given."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer keeps the type private
        """Put in the command that is left out."""
        names_none = not args or (args[0].startswith("-") and args[0] != _HELP)
        if names_none and not ctx.resilient_parsing:  # a shell that completes wants to know the commands
            args = [_DEFAULT, *args]
        return super().parse_args(ctx, args)


sessions = typer.Typer(cls=_ListsByDefault, help=INTRODUCTION, rich_markup_mode="rich")

sessions.command(_DEFAULT, cls=Command)(list_sessions)
sessions.command("show", cls=Command)(show)
sessions.command("export", cls=Command)(export)
sessions.command("import", cls=Command)(import_sessions)
sessions.command("delete", cls=Command)(delete)
sessions.command("prune", cls=Command)(prune)
sessions.command("verify", cls=Command)(verify)
sessions.command("salvage", cls=Command)(salvage)
sessions.command("backup", cls=Command)(backup)

__all__ = ["sessions"]
