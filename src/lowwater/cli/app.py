"""The command `lowwater`: its subcommands and the help that introduces them."""

import logging
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from lowwater.cli.audit import audit
from lowwater.cli.chat import chat
from lowwater.cli.checkpoints import checkpoints
from lowwater.cli.command import NOTE, Command, Group, run
from lowwater.cli.compress import compress
from lowwater.cli.config import config
from lowwater.cli.demo import demo
from lowwater.cli.diff import diff
from lowwater.cli.efficiency import efficiency
from lowwater.cli.explain import explain
from lowwater.cli.gateway import mcp, serve
from lowwater.cli.gateway import run as run_client
from lowwater.cli.history import history
from lowwater.cli.inspect import inspect
from lowwater.cli.models import models
from lowwater.cli.presets import presets
from lowwater.cli.recall import recall
from lowwater.cli.replay import replay
from lowwater.cli.rewind import rewind
from lowwater.cli.sessions import sessions
from lowwater.cli.status import status

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
    cls=Group,
    callback=_introduce,
    help=INTRODUCTION,
    epilog=EPILOGUE,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

RUN = "Run agents"
LOOK = "Look at a conversation"
KEPT = "Kept sessions"
KNOW = "Know the models and the settings"

app.command(
    "run", cls=Command, rich_help_panel=RUN, epilog=NOTE, context_settings={"ignore_unknown_options": True}
)(run_client)
app.command("serve", cls=Command, rich_help_panel=RUN, epilog=NOTE)(serve)
app.command("chat", cls=Command, rich_help_panel=RUN, epilog=NOTE)(chat)
app.command("mcp", cls=Command, rich_help_panel=RUN)(mcp)
app.command("inspect", cls=Command, rich_help_panel=LOOK)(inspect)
app.command("explain", cls=Command, rich_help_panel=LOOK, epilog=NOTE)(explain)
app.command("compress", cls=Command, rich_help_panel=LOOK, epilog=NOTE)(compress)
app.command("audit", cls=Command, rich_help_panel=LOOK)(audit)
app.command("replay", cls=Command, rich_help_panel=LOOK)(replay)
app.command("demo", cls=Command, rich_help_panel=LOOK)(demo)
app.command("status", cls=Command, rich_help_panel=KEPT, epilog=NOTE)(status)
app.command("efficiency", cls=Command, rich_help_panel=KEPT)(efficiency)
app.command("history", cls=Command, rich_help_panel=KEPT)(history)
app.add_typer(sessions, name="sessions", rich_help_panel=KEPT)
app.command("checkpoints", cls=Command, rich_help_panel=KEPT)(checkpoints)
app.command("rewind", cls=Command, rich_help_panel=KEPT)(rewind)
app.command("diff", cls=Command, rich_help_panel=KEPT)(diff)
app.command("recall", cls=Command, rich_help_panel=KEPT)(recall)
app.command("models", cls=Command, rich_help_panel=KNOW)(models)
app.command("presets", cls=Command, rich_help_panel=KNOW)(presets)
app.command("config", cls=Command, rich_help_panel=KNOW)(config)


def main() -> None:
    """Run the command line and leave with its exit code."""
    # Commands print what they have to say; the library's log is for programs that configure one.
    logging.getLogger("lowwater").addHandler(logging.NullHandler())
    sys.exit(run(lambda: app(prog_name="lowwater")))
