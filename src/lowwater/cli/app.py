"""The command `lowwater`: its subcommands and the help that introduces them."""

import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, NamedTuple

import typer

import lowwater
from lowwater.cli.command import NOTE, Command, Group, run

INTRODUCTION = """\
Keeps a long LLM-agent conversation inside the model's context at the lowest
total cost, and never loses a message.

[bold]Examples[/bold]

[cyan]lowwater run -- claude[/cyan]             an agent of others behind a gateway, and its bill
[cyan]lowwater chat[/cyan]                      an agent to try it with; no key needed
[cyan]lowwater inspect session.jsonl[/cyan]     what fills the window: by kind, tool, age
[cyan]lowwater explain session.jsonl[/cyan]     what would be compacted now, and why
[cyan]lowwater compress session.jsonl[/cyan]    compact it; originals stay in your file
[cyan]lowwater audit ~/.claude/projects[/cyan] where the money of recorded sessions went
[cyan]lowwater status[/cyan]                    the newest kept session, and its bill
[cyan]lowwater history[/cyan]                   its compactions: why, what for, whether it paid
[cyan]lowwater efficiency[/cyan]                what all sessions cost, and what to change
[cyan]lowwater models claude-opus-5.5[/cyan]    window, prices and cache rules of a model
[cyan]lowwater presets claude-opus-5.5[/cyan]   when a compaction pays on a model
[cyan]lowwater config threshold[/cyan]          what a setting means, and where it is set
"""

EPILOGUE = """\
[bold]Settings[/bold] come from defaults, lowwater.yaml, LOWWATER_ environment variables
and flags, the later the stronger; `lowwater config` shows what holds.

[bold]Exit codes[/bold]: 0 done; 1 what was given cannot be used, one sentence says why;
2 wrong usage; 70 a defect in Lowwater.
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


RUN = "Run agents"
LOOK = "Look at a conversation"
KEPT = "Kept sessions"
KNOW = "Know the models and the settings"


class _Entry(NamedTuple):
    """Where a command is: it is imported only if it is asked for, or listed in the help."""

    module: str
    name: str
    panel: str
    epilog: str | None = None
    context: Mapping[str, object] = {}


COMMANDS = {
    "run": _Entry("gateway", "run", RUN, NOTE, {"ignore_unknown_options": True}),
    "serve": _Entry("gateway", "serve", RUN, NOTE),
    "chat": _Entry("chat", "chat", RUN, NOTE),
    "mcp": _Entry("gateway", "mcp", RUN),
    "inspect": _Entry("inspect", "inspect", LOOK),
    "explain": _Entry("explain", "explain", LOOK, NOTE),
    "compress": _Entry("compress", "compress", LOOK, NOTE),
    "audit": _Entry("audit", "audit", LOOK),
    "replay": _Entry("replay", "replay", LOOK),
    "demo": _Entry("demo", "demo", LOOK),
    "status": _Entry("status", "status", KEPT, NOTE),
    "efficiency": _Entry("efficiency", "efficiency", KEPT),
    "history": _Entry("history", "history", KEPT),
    "sessions": _Entry("sessions", "sessions", KEPT),
    "checkpoints": _Entry("checkpoints", "checkpoints", KEPT),
    "rewind": _Entry("rewind", "rewind", KEPT),
    "diff": _Entry("diff", "diff", KEPT),
    "recall": _Entry("recall", "recall", KEPT),
    "models": _Entry("models", "models", KNOW),
    "presets": _Entry("presets", "presets", KNOW),
    "config": _Entry("config", "config", KNOW),
}


def app_with(names: Iterable[str]) -> typer.Typer:
    """Return the command line with these commands; the others are not imported."""
    made = typer.Typer(
        cls=Group,
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
