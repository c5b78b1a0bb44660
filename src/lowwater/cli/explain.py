"""`lowwater explain`: what a policy would do with a conversation, and why."""

from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lowwater.cli.conversations import ASSUMED_MODEL, open_conversation, open_session
from lowwater.cli.printing import fitted_block
from lowwater.cli.settings_flags import with_settings
from lowwater.decide.explain import sentence
from lowwater.decide.policies import POLICIES
from lowwater.values.decision import Compact
from lowwater.values.settings import Resolved
from lowwater.wiring.status import Status


@with_settings
def explain(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A conversation, or an agent's log; - reads standard input.")
    ],
    model: Annotated[
        str, typer.Option(metavar="NAME", help="Whose window to fit; default: the file's.")
    ] = "",
    format: Annotated[
        str, typer.Option(metavar="FORMAT", help="auto, openai, responses or anthropic.")
    ] = "auto",
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of text.")] = False,
    *,
    settings: Resolved,
) -> None:
    """Say what would be done with a conversation before the next call, and why.

    First the policy that is set, step by step with its numbers, then every
    other policy in a line. Nothing is written.

    lowwater explain session.jsonl
    lowwater explain request.json --model claude-opus-5-5 --policy guarded
    """
    conversation = open_conversation(file, format)
    chosen = settings.settings.compression.policy
    before = open_session(conversation, model=model, policy=chosen, settings=settings.settings).status()
    verdicts: list[tuple[str, str, str]] = []
    steps = ""
    for policy in dict.fromkeys((*(own.name for own in POLICIES), chosen)):
        session = open_session(conversation, model=model, policy=policy, settings=settings.settings)
        decision = session.deliberate()
        verdict = "compact" if isinstance(decision, Compact) else "keep"
        verdicts.append((policy, verdict, sentence(decision.because)))
        if policy == chosen:
            steps = session.explain()
    if json:
        said = {
            "status": before,
            "policy": chosen,
            "explanation": steps,
            "policies": {name: {"decision": verdict, "because": why} for name, verdict, why in verdicts},
        }
        typer.echo(msgspec.json.format(msgspec.json.encode(said), indent=2).decode())
    else:
        _print(before, chosen, steps, [verdict for verdict in verdicts if verdict[0] != chosen])
        if not model and not conversation.model:
            Console(highlight=False).print(Text(f"\n{ASSUMED_MODEL}", style="bright_black"))


def _sizes(status: Status) -> str:
    """Say from which size on the policy acts, and where the wall is if that is another."""
    wall = "" if status.acts_at == "wall" else f", wall {status.wall:,}"
    return f"{status.acts_at} {status.threshold:,}{wall}"


def _print(before: Status, chosen: str, steps: str, others: list[tuple[str, str, str]]) -> None:
    console = Console(highlight=False)
    width = min(console.width, 100)
    console.print(
        Text(f"{before.prompt:,} tokens", style="bold")
        + Text(f" on {before.model}: {_sizes(before)}, context {before.context:,}\n")
    )
    console.print(Text(chosen, style="bold cyan"))
    console.print(Text(steps), width=width)
    console.print(Text("\nother policies", style="bold"))
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False, width=width)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(style="bright_black")
    for name, verdict, why in others:
        table.add_row(name, Text(verdict, style="yellow" if verdict == "compact" else "green"), why)
    console.print(fitted_block(table, width))
