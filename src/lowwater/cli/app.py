"""The command `lowwater`: its subcommands and the help that introduces them."""

import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer

import lowwater
from lowwater.cli.command import NOTE, Command, Group, run

INTRODUCTION = """\
Keeps a long LLM-agent conversation inside the model's context at the lowest
total cost, and never loses a message. [bold]Examples[/bold]:

[cyan]lowwater run -- claude[/cyan]              an agent behind a gateway, and its bill
[cyan]lowwater audit[/cyan]                      where the money of recorded sessions went
[cyan]lowwater dashboard[/cyan]                  stored sessions in a browser, live
"""

EPILOGUE = """\
[bold]Settings[/bold] come from lowwater.yaml, LOWWATER_ variables and flags. [bold]Exit codes[/bold]:
0 done; 1 unusable input, a sentence says why; 2 wrong usage; 70 a defect.
"""


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lowwater {lowwater.__version__}")
        raise typer.Exit


def _introduce(
    *,
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options that stand before a subcommand."""


RUN, FILES, KEPT = "Run agents", "Conversations in files", "Stored sessions, models, settings"


class _Entry(NamedTuple):
    """Where a command is: it is imported only if it is asked for, or listed in the help."""

    module: str
    name: str
    panel: str
    epilog: str | None = None
    context: Mapping[str, object] = {}
    is_hidden: bool = False
    """Whether it is left out of the list, because programs call it rather than people."""


COMMANDS = {
    "run": _Entry("gateway", "run", RUN, NOTE, {"ignore_unknown_options": True}),
    "serve": _Entry("gateway", "serve", RUN, NOTE),
    "chat": _Entry("chat", "chat", RUN, NOTE),
    "demo": _Entry("demo", "demo", RUN),
    "inspect": _Entry("inspect", "inspect", FILES, NOTE),
    "compress": _Entry("compress", "compress", FILES, NOTE),
    "audit": _Entry("audit", "audit", FILES),
    "replay": _Entry("replay", "replay", FILES),
    "status": _Entry("status", "status", KEPT, NOTE),
    "dashboard": _Entry("dashboard", "dashboard", KEPT, NOTE),
    "sessions": _Entry("sessions", "sessions", KEPT),
    "rewind": _Entry("rewind", "rewind", KEPT),
    "recall": _Entry("recall", "recall", KEPT),
    "models": _Entry("models", "models", KEPT),
    "config": _Entry("config", "config", KEPT),
    "statusline": _Entry("statusline", "statusline", RUN, is_hidden=True),
}


class _Commands(Group):
    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401 - typer keeps the type private
        """Return the commands in the order of the table above."""
        return sorted(super().list_commands(ctx), key=list(COMMANDS).index)

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 - as above
        """Return the parameters; those that install completion work, but would take a third of the help."""
        found = super().get_params(ctx)
        for each in found:
            each.hidden = each.name in {"install_completion", "show_completion"}
        return found


def app_with(names: Iterable[str]) -> typer.Typer:
    """Return the command line with these commands; the others are not imported."""
    made = typer.Typer(
        cls=_Commands,
        callback=_introduce,
        help=INTRODUCTION,
        epilog=EPILOGUE,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    for name in names:
        entry = COMMANDS[name]
        command = getattr(import_module(f"lowwater.cli.{entry.module}"), entry.name)
        if isinstance(command, typer.Typer):
            made.add_typer(command, name=name, rich_help_panel=entry.panel)
            continue
        made.command(
            name,
            cls=Command,
            rich_help_panel=entry.panel,
            hidden=entry.is_hidden,
            epilog=entry.epilog,
            context_settings=dict(entry.context),
        )(command)
    return made


@cache
def _whole() -> typer.Typer:
    return app_with(COMMANDS)


def __getattr__(name: str) -> typer.Typer:
    """Return `app`, the whole command line, when it is first asked for."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _whole()


def _asked_for(arguments: Sequence[str]) -> Iterable[str]:
    """Return the command that the arguments begin with; every command where help, completion or a mistake needs them all."""
    first = arguments[0] if arguments else ""
    return [first] if first in COMMANDS else COMMANDS


def main() -> None:
    """Run the command line and leave with its exit code."""
    # Commands print what they have to say; the library's log is for programs that configure one.
    logging.getLogger("lowwater").addHandler(logging.NullHandler())
    sys.exit(run(lambda: app_with(_asked_for(sys.argv[1:]))(prog_name="lowwater")))
