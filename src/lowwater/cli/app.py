"""The command `lowwater`: its subcommands and the help that introduces them."""

import logging
import sys
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from lowwater.cli.compress import compress
from lowwater.cli.config import config
from lowwater.cli.demo import demo
from lowwater.cli.explain import explain
from lowwater.cli.failing import run
from lowwater.cli.inspect import inspect
from lowwater.cli.models import models
from lowwater.cli.presets import presets

INTRODUCTION = """\
Keeps a long LLM-agent conversation inside the model's context at the lowest
total cost, and never loses a message.

[bold]Examples[/bold]

[cyan]lowwater inspect session.jsonl[/cyan]     what fills the window: by kind, tool, age
[cyan]lowwater explain session.jsonl[/cyan]     what would be compacted now, and why
[cyan]lowwater compress session.jsonl[/cyan]    compact it; every original stays in your file
[cyan]lowwater models claude-opus-5.5[/cyan]    window, prices and cache rules of a model
[cyan]lowwater presets claude-opus-5.5[/cyan]   when a compaction pays on a model, in calls and tokens
[cyan]lowwater config threshold[/cyan]          what a setting means, and where it is set
"""

EPILOGUE = """\
[bold]Settings[/bold] come from defaults, lowwater.yaml, LOWWATER_ environment variables
and flags, the later the stronger; `lowwater config` shows what holds.

[bold]Exit codes[/bold]: 0 done; 1 what was given cannot be used, one sentence says why;
2 wrong usage; 70 a defect in Lowwater.
"""


class _Command(TyperCommand):
    """A command whose help does not call its switches `<bool>`."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 - typer keeps the type private
        return _unlabelled(super().get_params(ctx))


class _Group(TyperGroup):
    """A group whose help does not call its switches `<bool>`."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 - typer keeps the type private
        return _unlabelled(super().get_params(ctx))


def _unlabelled(params: list[Any]) -> list[Any]:
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
    return params


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lowwater {version('lowwater')}")
        raise typer.Exit


def _introduce(
    *,
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options that stand before a subcommand."""


app = typer.Typer(
    cls=_Group,
    callback=_introduce,
    help=INTRODUCTION,
    epilog=EPILOGUE,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

LOOK = "Look at a conversation"
KNOW = "Know the models and the settings"

app.command("inspect", cls=_Command, rich_help_panel=LOOK)(inspect)
app.command("explain", cls=_Command, rich_help_panel=LOOK)(explain)
app.command("compress", cls=_Command, rich_help_panel=LOOK)(compress)
app.command("demo", cls=_Command, rich_help_panel=LOOK)(demo)
app.command("models", cls=_Command, rich_help_panel=KNOW)(models)
app.command("presets", cls=_Command, rich_help_panel=KNOW)(presets)
app.command("config", cls=_Command, rich_help_panel=KNOW)(config)


def main() -> None:
    """Run the command line and leave with its exit code."""
    # Commands print what they have to say; the library's log is for programs that configure one.
    logging.getLogger("lowwater").addHandler(logging.NullHandler())
    sys.exit(run(lambda: app(prog_name="lowwater")))
