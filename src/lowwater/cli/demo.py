"""`lowwater demo`: plays a long session, compacted live, then shows what that saved, a recall and a rewind."""

import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import msgspec
import typer
from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lowwater.cli.tables import figures_table, print_json
from lowwater.core.api_calls import Usage
from lowwater.core.events import Compaction
from lowwater.core.formats.codec import as_message
from lowwater.core.limits import UsageWarning
from lowwater.core.messages import texts_of
from lowwater.core.policies.explanations import reason_sentence
from lowwater.core.recall.recalled import Recalled
from lowwater.core.summary.extractive import extract
from lowwater.core.summary.request import SummaryRequest, Written
from lowwater.core.wording import money
from lowwater.logs.demo_session import DemoSession, demo_session
from lowwater.logs.recording import Recording
from lowwater.protocols import Tokenizer
from lowwater.session.dependencies import ManualClock
from lowwater.session.factories import FORGETFUL, counter_for
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.request import PreparedRequest
from lowwater.session.session import Session
from lowwater.settings import CompressionSettings, OutputSettings, Settings

_CHARACTERS_PER_TOKEN = 4
_INSTRUCTION = 400
_LIFETIME = 300.0
"""The lifetime of the provider's cache, in seconds."""
_OURS, _LEAST = "rent-or-buy", "optimum"
_BAR = 50
_WATCHED_SECONDS = 8.0
_COLOURS = {"info": "green", "notice": "yellow", "warning": "yellow", "critical": "red"}
_HANDLE = re.compile(r"lw:\d+")
_SEARCH = "FAILED test"
_FAILURE = re.compile(r"\bFAILED\b|\bFAIL\b|✕|\b\w*Error\b")
_LOOKED_AT = 20
_OUR_POLICY = "rent-or-buy"
_CEILING = 60_000
_FIXED = "runway"
"""The policy with which the bill is compared; it has a fixed trigger."""


class Frame(Struct, frozen=True, kw_only=True):
    """The session after one turn."""

    turn: int
    prompt: int
    untouched: int
    """What the prompt would be if nothing had ever been compacted."""
    event: Compaction | None
    warnings: tuple[UsageWarning, ...]


class DemoTurn(Struct, frozen=True, kw_only=True):
    """The new messages before an answer, the answer's content and time, and the names in it from earlier messages."""

    new: list[Any]
    answer: Any
    at: float
    names: tuple[str, ...]


class DemoSummarizer:
    """Stands in for a model with the extractive summarizer; billed as a request on the cached prefix."""

    NAME = "stand-in"

    def __init__(self, model: str, tokenizer: Tokenizer) -> None:
        self.model = model
        self._tokenizer = tokenizer
        self.read = self.fresh = 0
        """Tokens of the prompt in the cache, and the rest."""

    def summarize(self, request: SummaryRequest, /) -> Written:
        """Return the extractive summary, with the usage that a model's call would have had."""
        text = extract(request, self._tokenizer)
        usage = Usage(
            cache_read=self.read, uncached=self.fresh + _INSTRUCTION, output=self._tokenizer.count(text)
        )
        return Written(text=text, by=self.NAME, usage=usage, model=self.model)


class DemoRun(Struct, kw_only=True):
    """One run of the demo: a session of the library with its own clock."""

    session: Session
    clock: ManualClock
    writer: DemoSummarizer
    called: float = 0.0
    named: int = 0
    in_view: int = 0
    """The number of names in answers that were still in the prompt."""

    def call(self, exchange: DemoTurn, system: object) -> int:
        """Play one turn at its recorded time, billed by the provider's cache rules; return its prompt tokens."""
        self.clock.advance(max(0.0, exchange.at - self.clock.now()))
        before = self.session.status().prompt
        self.session.append(exchange.new)
        grown = self.session.status().prompt - before
        warm = exchange.at - self.called <= _LIFETIME
        self.writer.read, self.writer.fresh = (before, grown) if warm else (0, before + grown)
        self.called = exchange.at
        request = self.session.prepare(system=system)
        self._look_for(exchange.names, request)
        output = len(msgspec.json.encode(exchange.answer)) // _CHARACTERS_PER_TOKEN
        usage = replace(internals(self.session).expected_usage, output=output)
        self.session.record(as_message(exchange.answer, usage, self.session.status().model))
        return request.tokens

    def _look_for(self, names: Sequence[str], request: PreparedRequest) -> None:
        if names:
            shown = "\0".join(text for message in request.messages for text in texts_of(message))
            self.named += len(names)
            self.in_view += sum(name in shown for name in names)


def start_run(
    model: str,
    policy: str,
    *,
    compacts: bool = True,
    ceiling: int | None = None,
    on_warning: Callable[[UsageWarning], object] | None = None,
) -> DemoRun:
    """Return a run under a policy, or without compaction; `ceiling` limits its prompts."""
    clock = ManualClock()
    settings = Settings(
        output=OutputSettings(quiet=True),
        compression=CompressionSettings(enabled=compacts, max_view_tokens=ceiling),
    )
    writer = DemoSummarizer(model, counter_for(model))
    library = Lowwater(
        store=FORGETFUL,
        model=model,
        policy=policy,
        summarizer=writer,
        settings=settings,
        on_warning=on_warning,
        clock=clock,
    )
    return DemoRun(session=library.session("demo"), clock=clock, writer=writer)


def play_frames(
    recorded: DemoSession,
    watched: DemoRun,
    others: Sequence[DemoRun],
    take_warnings: Callable[[], tuple[UsageWarning, ...]],
) -> Iterator[Frame]:
    """Play the session in all runs, the last of `others` without compaction, and yield a frame per turn."""
    system = recorded.system
    for turn, exchange in enumerate(_demo_turns(recorded), start=1):
        known = internals(watched.session).last_compaction
        prompt = watched.call(exchange, system)
        event = internals(watched.session).last_compaction
        untouched = [other.call(exchange, system) for other in others][-1]
        yield Frame(
            turn=turn,
            prompt=prompt,
            untouched=untouched,
            event=None if event is known else event,
            warnings=take_warnings(),
        )


def _demo_turns(recorded: DemoSession) -> Iterator[DemoTurn]:
    recorded_messages = zip(recorded.recording.messages, recorded.mentions, strict=True)
    answers = (
        (each.at or 0.0, names) for each, names in recorded_messages if each.message.role == "assistant"
    )
    new: list[Any] = []
    for message in recorded.as_anthropic():
        if message["role"] != "assistant":
            new.append(message)
            continue
        at, names = next(answers)
        yield DemoTurn(new=new, answer=message["content"], at=at, names=names)
        new = []


def print_hindsight(console: Console, recording: Recording) -> None:
    """Print the cost of the session under a few policies and the optimum."""
    console.print(Text("\nwith hindsight", style="bold"))
    from lowwater.lab.replay.session import bill_of  # noqa: PLC0415 - numpy takes a while to load

    console.print(
        "  The same session in numbers under four policies, and the cheapest schedule there was, rework paid for:"
    )
    table = Table(box=None, padding=(0, 0, 0, 2), header_style="bright_black")
    for title in ("", "", "÷ optimum", "compactions", "largest prompt"):
        table.add_column(title, justify="left" if table.columns and not title else "right")
    for line in bill_of(recording, model=recording.model):
        style = "bold" if line.policy == _OURS else "bright_black" if line.policy == _LEAST else ""
        table.add_row(
            money(line.total, "usd"),
            line.policy,
            f"{line.over_optimum:.2f}",
            f"{line.compactions:,}",
            f"{line.peak:,}",
            style=style,
        )
    console.print(table)


def demo(
    fast: Annotated[bool, typer.Option("--fast", help="Do not slow down for watching.")] = False,
    policy: Annotated[str, typer.Option(metavar="NAME", help="The policy that decides.")] = "rent-or-buy",
    json: Annotated[bool, typer.Option("--json", help="Print only the figures, as JSON.")] = False,
) -> None:
    """Watch a long coding session being compacted, without a key.

    A generated agent session of several hundred turns outgrows its window.
    You see it fill up, the warnings, each compaction with its reason, what it
    saved, the bill, and the cheapest schedule in hindsight; then an elided
    result is recalled and a compaction is undone. Calls are billed by the
    provider's cache rules, at the recorded times. Summaries are extracted
    without a model, but billed as if a model had written them.

    lowwater demo
    lowwater demo --fast --policy runway
    """
    console = Console(highlight=False, quiet=json)
    recorded = demo_session()
    model = recorded.recording.model
    warned: list[UsageWarning] = []
    watched = start_run(
        model, policy, ceiling=_CEILING if policy == _OUR_POLICY else None, on_warning=warned.append
    )
    fixed, untouched = start_run(model, _FIXED), start_run(model, policy, compacts=False)
    session = watched.session
    turns = sum(each.message.role == "assistant" for each in recorded.recording.messages)
    console.print(Text(f"A coding agent at work: {turns} turns on {model}, policy {policy}.", style="bold"))
    if policy == _OUR_POLICY:
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
        for frame in play_frames(recorded, watched, (fixed, untouched), take_warnings):
            frames.append(frame)
            _print_frame(live.console, frame)
            live.update(_bars(frame, context))
            time.sleep(pause)
    if json:
        print_json(_figures(frames, {"watched": watched, _FIXED: fixed, "untouched": untouched}))
        return
    console.print(_bars(frames[-1], context))
    _print_savings(console, frames, session)
    _print_bill(console, watched, fixed, untouched)
    print_hindsight(console, recorded.recording)
    _print_recall(console, session)
    _print_rewind(console, session)


def _figures(frames: list[Frame], played: dict[str, DemoRun]) -> dict[str, object]:
    """Return the figures of the demo; money is in nano-dollars."""
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


def _print_frame(console: Console, frame: Frame) -> None:
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
        console.print(Padding(Text(reason_sentence(event.because), style="bright_black"), (0, 0, 0, 10)))
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


def _print_savings(console: Console, frames: list[Frame], session: Session) -> None:
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


def _print_bill(console: Console, watched: DemoRun, fixed: DemoRun, untouched: DemoRun) -> None:
    rows = (
        (watched, "as you saw"),
        (fixed, f"policy {_FIXED}, at half the window"),
        (untouched, "untouched, had it fitted"),
    )
    table = figures_table(figures=("",))
    table.add_column()
    for title in ("read from cache", "in view when named again"):
        table.add_column(title, justify="right")
    for played, name in rows:
        totals = played.session.status().totals
        cost = "price unknown" if totals.cost is None else money(totals.cost, "usd")
        read = totals.cache_read / max(1, totals.prompt)
        table.add_row(cost, name, f"{read:.0%}", f"{played.in_view / max(1, played.named):.0%}")
    console.print(Text("\nthe bill", style="bold"))
    console.print(table)


def _print_recall(console: Console, session: Session) -> None:
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


def _print_rewind(console: Console, session: Session) -> None:
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
