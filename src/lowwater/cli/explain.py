"""`lowwater explain`: shows what each policy would do with a conversation, and why."""

from typing import Annotated, Literal

import msgspec
import typer
from msgspec import Struct
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lowwater.cli.command import with_settings
from lowwater.cli.conversations import ASSUMED_MODEL, open_file, open_session
from lowwater.cli.stored_sessions import fitted_block
from lowwater.core.decisions import Compact
from lowwater.core.formats.files import Conversation
from lowwater.core.policies.explanations import reason_sentence
from lowwater.core.policies.registry import POLICIES
from lowwater.session.internals import internals
from lowwater.session.status import Status
from lowwater.settings import Settings
from lowwater.settings.resolve import Resolved


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
    """Show what would be done with a conversation before the next call, and why.

    First the configured policy, step by step with its numbers, then a line for
    every other policy. Nothing is written.

    lowwater explain session.jsonl
    lowwater explain request.json --model claude-opus-5-5 --policy guarded
    """
    opened = open_file(file, format)
    conversation = opened.conversation
    found = explained(conversation, model=model, settings=settings.settings)
    if json:
        said = {
            "status": found.before,
            "policy": found.policy,
            "explanation": found.steps,
            "policies": {
                each.policy: {"decision": each.decision, "because": each.why} for each in found.verdicts
            },
        } | opened.as_json()
        typer.echo(msgspec.json.format(msgspec.json.encode(said), indent=2).decode())
    else:
        _print(found)
        for note in opened.notes():
            Console(highlight=False).print(Text(f"\n{note}", style="yellow"))
        if not model and not conversation.model:
            Console(highlight=False).print(Text(f"\n{ASSUMED_MODEL}", style="bright_black"))


def _sizes(status: Status) -> str:
    """Return the size from which the policy acts, and the wall if it differs."""
    wall = "" if status.acts_at == "wall" else f", wall {status.wall:,}"
    return f"{status.acts_at} {status.threshold:,}{wall}"


class PolicyDecision(Struct, frozen=True, kw_only=True):
    """What one policy would do."""

    policy: str
    decision: Literal["compact", "keep"]
    why: str


class Explained(Struct, frozen=True, kw_only=True):
    """What would be done with a conversation: by the configured policy step by step, and by every policy in a line."""

    before: Status
    policy: str
    steps: str
    verdicts: tuple[PolicyDecision, ...]


def explained(conversation: Conversation, *, model: str, settings: Settings) -> Explained:
    """Return what every policy would do with a conversation before the next call."""
    chosen = settings.compression.policy
    before = open_session(conversation, model=model, policy=chosen, settings=settings).status()
    verdicts: list[PolicyDecision] = []
    steps = ""
    for policy in dict.fromkeys((*(own.name for own in POLICIES), chosen)):
        session = open_session(conversation, model=model, policy=policy, settings=settings)
        decision = internals(session).dry_run()
        verdicts.append(
            PolicyDecision(
                policy=policy,
                decision="compact" if isinstance(decision, Compact) else "keep",
                why=reason_sentence(decision.because),
            )
        )
        if policy == chosen:
            steps = session.explain()
    return Explained(before=before, policy=chosen, steps=steps, verdicts=tuple(verdicts))


def _print(found: Explained) -> None:
    before, chosen = found.before, found.policy
    console = Console(highlight=False)
    width = min(console.width, 100)
    console.print(
        Text(f"{before.prompt:,} tokens", style="bold")
        + Text(f" on {before.model}: {_sizes(before)}, context {before.context:,}\n")
    )
    console.print(Text(chosen, style="bold cyan"))
    console.print(Text(found.steps), width=width)
    console.print(Text("\nother policies", style="bold"))
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False, width=width)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(style="bright_black")
    for each in found.verdicts:
        if each.policy != chosen:
            style = "yellow" if each.decision == "compact" else "green"
            table.add_row(each.policy, Text(each.decision, style=style), each.why)
    console.print(fitted_block(table, width))
