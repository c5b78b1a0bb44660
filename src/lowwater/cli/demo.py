"""`lowwater demo`: a long session compacted live; what it bought, a recall and a rewind."""

import re
import sys
import time
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lowwater.cli.demo_bill import print_hindsight
from lowwater.cli.demo_play import Frame, Played, opened, play
from lowwater.cli.printing import print_json
from lowwater.core.policies.explanations import sentence
from lowwater.core.policies.warnings import UsageWarning
from lowwater.core.recall.recalled import Recalled
from lowwater.core.wording import money
from lowwater.logs.demo_session import demo_session
from lowwater.session.session import Session

_BAR = 50
_WATCHED_SECONDS = 8.0
_COLOURS = {"info": "green", "notice": "yellow", "warning": "yellow", "critical": "red"}
_HANDLE = re.compile(r"lw:\d+")
_SEARCH = "FAILED test"
_FAILURE = re.compile(r"\bFAILED\b|\bFAIL\b|✕|\b\w*Error\b")
_LOOKED_AT = 20
_OURS = "rent-or-buy"
_CEILING = 60_000
_FIXED = "runway"
"""What the bill is compared with: a rule with a fixed trigger."""


def demo(
    fast: Annotated[bool, typer.Option("--fast", help="Do not slow down for watching.")] = False,
    policy: Annotated[str, typer.Option(metavar="NAME", help="The policy that decides.")] = "rent-or-buy",
    json: Annotated[bool, typer.Option("--json", help="Print only the figures, as JSON.")] = False,
) -> None:
    """Watch a long coding session being compacted live, without a key and without a network.

    A generated agent session of several hundred turns outgrows its window.
    You see it fill up, the warnings, each compaction with its reason, what it
    bought, the bill, and what was possible with hindsight; then an elided
    result is recalled and a compaction is undone. Calls are billed as the provider's cache rules say, at the times
    the session was recorded. A stand-in writes the summaries: what can be
    extracted without a model, billed as if a model had written it.
    """
    console = Console(highlight=False, quiet=json)
    recorded = demo_session()
    model = recorded.recording.model
    warned: list[UsageWarning] = []
    watched = opened(model, policy, ceiling=_CEILING if policy == _OURS else None, on_warning=warned.append)
    fixed, untouched = opened(model, _FIXED), opened(model, policy, compacts=False)
    session = watched.session
    turns = sum(each.message.role == "assistant" for each in recorded.recording.messages)
    console.print(Text(f"A coding agent at work: {turns} turns on {model}, policy {policy}.", style="bold"))
    if policy == _OURS:
        console.print(f"Its user wants no more than {_CEILING:,} tokens in view (max_view_tokens).")
    console.print()

    def take_warnings() -> tuple[UsageWarning, ...]:
        due = tuple(warned)
        warned.clear()
        return due

    pause = 0.0 if fast or json or not sys.stdout.isatty() else _WATCHED_SECONDS / turns
    context = session.status().context
    frames: list[Frame] = []
    with Live(console=console, refresh_per_second=20, transient=True) as live:
        for frame in play(recorded, watched, (fixed, untouched), take_warnings):
            frames.append(frame)
            _tell(live.console, frame)
            live.update(_bars(frame, context))
            time.sleep(pause)
    if json:
        print_json(_figures(frames, {"watched": watched, _FIXED: fixed, "untouched": untouched}))
        return
    console.print(_bars(frames[-1], context))
    _bought(console, frames, session)
    _bill(console, watched, fixed, untouched)
    print_hindsight(console, recorded.recording)
    _recall(console, session)
    _rewind(console, session)


def _figures(frames: list[Frame], played: dict[str, Played]) -> dict[str, object]:
    """Return the demo in numbers; money is in nano-dollars."""
    return {
        "turns": len(frames),
        "compactions": [
            {"turn": frame.turn, "before": frame.event.before, "after": frame.event.after}
            for frame in frames
            if frame.event is not None
        ],
        "prompt_tokens": sum(frame.prompt for frame in frames),
        "untouched_tokens": sum(frame.untouched for frame in frames),
        "cost": {name: each.session.status().totals.cost for name, each in played.items()},
    }


def _tell(console: Console, frame: Frame) -> None:
    for warning in frame.warnings[-1:]:
        line = f"turn {frame.turn:>3}  {warning.level:<8}  {warning.sentence}"
        console.print(Text(line, style=_COLOURS[warning.level]))
    event = frame.event
    if event is not None:
        done = (
            f"{event.before:,} → {event.after:,} tokens ({event.ratio:.0%} left), "
            f"{event.items_before:,} → {event.items_after:,} messages by {', '.join(event.mechanisms)}"
        )
        console.print(Text(f"turn {frame.turn:>3}  compacted ", style="bold cyan") + Text(done, style="bold"))
        console.print(Padding(Text(sentence(event.because), style="bright_black"), (0, 0, 0, 10)))
        if event.summarizer:
            kept = (
                f"; it keeps {event.score:.0%} of the critical references" if event.score is not None else ""
            )
            said = f"The {event.summarizer} summary has {event.summary_tokens:,} tokens{kept}."
            console.print(Padding(Text(said, style="bright_black"), (0, 0, 0, 10)))


def _bars(frame: Frame, context: int) -> Text:
    return Text("\n").join(
        [
            _bar(f"turn {frame.turn:>3}  sent     ", frame.prompt, context, "green"),
            _bar("          untouched", frame.untouched, context, "bright_black"),
        ]
    )


def _bar(label: str, tokens: int, context: int, colour: str) -> Text:
    cells = min(_BAR, round(_BAR * tokens / context))
    over = "  over the window" if tokens > context else ""
    return (
        Text(f"{label} ")
        + Text("█" * cells, style="red" if over else colour)
        + Text("░" * (_BAR - cells), style="bright_black")
        + Text(f" {tokens:>8,}{over}")
    )


def _bought(console: Console, frames: list[Frame], session: Session) -> None:
    status = session.status()
    sent = sum(frame.prompt for frame in frames)
    untouched = sum(frame.untouched for frame in frames)
    beyond = sum(frame.untouched > status.wall for frame in frames)
    console.print(Text("\nwhat it bought", style="bold"))
    console.print(
        f"  {sent:,} prompt tokens over the session instead of {untouched:,}: {1 - sent / untouched:.0%} fewer.\n"
        f"  {beyond:,} of {len(frames):,} turns would not have fitted the window at all.\n"
        f"  {status.compaction_count} compactions; the view has {status.messages:,} messages, "
        f"the ledger all {status.history:,}."
    )


def _bill(console: Console, watched: Played, fixed: Played, untouched: Played) -> None:
    rows = (
        (watched, "as you saw"),
        (fixed, f"policy {_FIXED}, at half the window"),
        (untouched, "untouched, had it fitted"),
    )
    table = Table(box=None, padding=(0, 0, 0, 2), header_style="bright_black")
    table.add_column("", justify="right")
    table.add_column("")
    table.add_column("read from cache", justify="right")
    table.add_column("in view when named again", justify="right")
    for played, name in rows:
        totals = played.session.status().totals
        cost = "price unknown" if totals.cost is None else money(totals.cost, "usd")
        read = totals.cache_read / max(1, totals.prompt)
        table.add_row(cost, name, f"{read:.0%}", f"{played.in_view / max(1, played.named):.0%}")
    console.print(Text("\nthe bill", style="bold"))
    console.print(table)


def _recall(console: Console, session: Session) -> None:
    handles = _HANDLE.findall(str(session.view()))
    asked = handles[len(handles) // 2] if handles else _SEARCH
    found, line = _answer(session, asked)
    console.print(Text("\nrecall", style="bold"))
    console.print(
        f"  Asked for “{asked}”, the ledger answers with message {found.handle}, {found.tokens:,} tokens:"
    )
    console.print(Text(f"  {line[:90]} …", style="bright_black"))


def _answer(session: Session, asked: str) -> tuple[Recalled, str]:
    """Return a message that answers, and the line of it that does: a failure, where one was asked for and is there."""
    found = session.recall(asked, limit=_LOOKED_AT)
    lines = [(each, line.strip()) for each in found for line in each.text.splitlines() if line.strip()]
    return next((pair for pair in lines if _FAILURE.search(pair[1])), lines[0])


def _rewind(console: Console, session: Session) -> None:
    points = [point for point in session.checkpoints() if point.name.startswith("before-compaction")]
    if not points:
        return
    before = session.status()
    session.rewind(points[-1].name)
    undone = session.status()
    session.rewind("before-rewind-1")
    console.print(Text("\nrewind", style="bold"))
    console.print(
        f"  Back to {points[-1].name}: {before.messages:,} → {undone.messages:,} messages, nothing lost since; "
        f"and the rewind undone: {session.status().messages:,}."
    )
