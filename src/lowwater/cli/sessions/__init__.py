"""`lowwater sessions`: the commands for stored sessions; without a command it lists them."""

from typing import Any

import typer

from lowwater.cli.command import Command, Group
from lowwater.cli.sessions.changes import backup, delete, prune, salvage, verify
from lowwater.cli.sessions.files import export, import_sessions
from lowwater.cli.sessions.listing import list_sessions, show

INTRODUCTION = """\
List stored sessions, show, export, import and delete them, back up the store,
and save what is intact of a damaged one.

Sessions are stored in a SQLite file in your data folder unless --store or
LOWWATER_STORE names another place. Without a command they are listed.

[bold]Examples[/bold]

[cyan]lowwater sessions[/cyan]                             list the latest
[cyan]lowwater sessions show refactor-auth[/cyan]          all about one
[cyan]lowwater sessions export refactor-auth > it.jsonl[/cyan]
[cyan]lowwater sessions import old/*.jsonl.gz[/cyan]       conversations from files
[cyan]lowwater sessions prune --older-than 30d[/cyan]      delete old ones
[cyan]lowwater sessions backup monday.db[/cyan]            copy the store, even in use
[cyan]lowwater sessions verify[/cyan]                      is anything damaged?
"""

_DEFAULT = "list"
_HELP = "--help"


class _ListsByDefault(Group):
    """A group that runs `list`, with the given options, if no command is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer keeps the type private
        """Insert `list` if no command is named."""
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
