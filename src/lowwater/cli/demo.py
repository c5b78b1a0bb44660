"""`lowwater demo`: a session untouched and with Lowwater side by side, then a recall and an undo; `--long` has every compaction."""

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
_BAR, _RACE_BAR = 50, 36
_RACE_SECONDS, _WATCHED_SECONDS = 14.0, 8.0
"""How long a person watches the race, and the long version, beside the time that the computation takes."""
_MILESTONES = 4
"""In how many places the race is printed where it cannot be watched."""
_COLOURS = {"info": "green", "notice": "yellow", "warning": "yellow", "critical": "red"}
_SEARCH = "FAILED test"
_FAILURE = re.compile(r"\bFAILED\b|\bFAIL\b|✕|\b\w*Error\b")
_LOOKED_AT, _LINE = 20, 76
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
    cost: int | None = None
    untouched_cost: int | None = None
    """What the session has cost so far, and what it would have cost untouched, in nano-dollars."""


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
            cost=watched.session.status().totals.cost,
            untouched_cost=others[-1].session.status().totals.cost,
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
    long: Annotated[
        bool, typer.Option("--long", help="Every compaction, the bill beside other policies, the optimum.")
    ] = False,
    fast: Annotated[bool, typer.Option("--fast", help="Do not slow down for watching.")] = False,
    policy: Annotated[str, typer.Option(metavar="NAME", help="The policy that decides.")] = "rent-or-buy",
    json: Annotated[bool, typer.Option("--json", help="Print only the figures, as JSON.")] = False,
) -> None:
    """Watch a long session with and without Lowwater; no key is needed.

    A generated agent session of several hundred calls is played twice, as it
    is and with Lowwater, and the bills race. Then a result that the model no
    longer sees is recalled, and a compaction is undone. Calls are billed by
    the provider's cache rules, at the recorded times. Summaries are extracted
    without a model, but billed as if a model had written them.

    lowwater demo
    lowwater demo --long --fast --policy runway
    """
    console = Console(highlight=False, quiet=json)
    recorded = demo_session()
    show = _show_all if long or json else _race
    show(console, recorded, policy, slow=not fast and not json and sys.stdout.isatty(), json=json)


def _race(console: Console, recorded: DemoSession, policy: str, *, slow: bool, json: bool) -> None:  # noqa: ARG001 - as _show_all
    model = recorded.recording.model
    watched, untouched = start_run(model, policy), start_run(model, policy, compacts=False)
    session = watched.session
    calls = _calls_in(recorded)
    status = session.status()
    console.print(
        Text(f"A coding agent's {calls} calls on {model}, untouched and with Lowwater.", style="bold")
    )
    console.print(f"The window of {status.context:,} tokens is as long as a whole bar.\n")
    frames: list[Frame] = []
    pause = _RACE_SECONDS / calls if slow else 0.0
    with Live(console=console, refresh_per_second=20, transient=True) as live:
        for frame in play_frames(recorded, watched, (untouched,), tuple):
            frames.append(frame)
            if console.is_terminal:
                live.update(_racing_bars(frame, calls, status.context))
            elif frame.turn * _MILESTONES % calls < _MILESTONES and frame.turn < calls:
                console.print(_racing_bars(frame, calls, status.context), end="\n\n")
            time.sleep(pause)
    console.print(_racing_bars(frames[-1], calls, status.context))
    _print_outcome(console, frames, watched)
    _print_way_back(console, session)
    console.print(Text("\nNow yours, on the logs that your agents have kept; nothing leaves this machine:"))
    console.print(Text("  lowwater audit", style="bold cyan"))


def _racing_bars(frame: Frame, calls: int, context: int) -> Text:
    def row(label: str, tokens: int, cost: int | None, colour: str) -> Text:
        paid = "" if cost is None else f"{money(cost, 'usd'):>10}"
        return Text(label) + _cells(tokens, context, colour, _RACE_BAR) + Text(f"{tokens:>8,} tokens{paid}")

    beyond = " · untouched it no longer fits the window" if frame.untouched > context else ""
    return Text("\n").join(
        [
            Text(f"call {frame.turn} of {calls}{beyond}", style="bright_black"),
            row("untouched     ", frame.untouched, frame.untouched_cost, "yellow"),
            row("with Lowwater ", frame.prompt, frame.cost, "green"),
        ]
    )


def _print_outcome(console: Console, frames: list[Frame], watched: DemoRun) -> None:
    last, status = frames[-1], watched.session.status()
    beyond = next((frame.turn for frame in frames if frame.untouched > status.wall), None)
    console.print()
    if last.cost is not None and last.untouched_cost:
        saved = last.untouched_cost - last.cost
        console.print(
            Text(
                f"{money(saved, 'usd')} saved, {saved / last.untouched_cost:.0%} of the bill.",
                style="bold green",
            )
        )
    if beyond is not None:
        console.print(f"From call {beyond} on the untouched session would not have been accepted at all.")
    named = f"{watched.in_view / max(1, watched.named):.0%}"
    console.print(
        f"{status.compaction_count} compactions. Of the names that the agent used again, {named} were still in view; "
        f"everything else is in the ledger, all {status.history:,} messages."
    )
    first = next((frame for frame in frames if frame.event), None)
    if first is not None and first.event is not None:
        console.print(Text(f"\nwhy, at call {first.turn}", style="bold"))
        console.print(Padding(Text(reason_sentence(first.event.because)), (0, 0, 0, 2)))


def _print_way_back(console: Console, session: Session) -> None:
    found, line = _failure_out_of_view(session)
    console.print(Text("\nrecall", style="bold"))
    console.print(
        f"  “{_SEARCH}” finds {found.handle}, which the model no longer sees ({found.tokens:,} tokens):"
    )
    console.print(Text(f"  {line[:_LINE]}", style="cyan"))
    points = [point for point in session.checkpoints() if point.name.startswith("before-compaction")]
    if not points:
        return
    before = session.status().messages
    session.rewind(points[-1].name)
    undone = session.status().messages
    session.rewind("before-rewind-1")
    console.print(Text("\nundo", style="bold"))
    console.print(
        f"  The last compaction undone: {undone:,} messages in view, not {before:,}. And back: {session.status().messages:,}."
    )


def _failure_out_of_view(session: Session) -> tuple[Recalled, str]:
    """Return what a search finds, and its line: the oldest that the view does not show, if there is one."""
    shown = str(session.view())
    answers = [
        (each, line.strip())
        for each in session.recall(_SEARCH, limit=_LOOKED_AT)
        for line in each.text.splitlines()
        if _FAILURE.search(line)
    ]
    out_of_view = [pair for pair in answers if pair[1] not in shown] or answers
    failed = [pair for pair in out_of_view if pair[1].startswith("FAIL")] or out_of_view
    return min(failed, key=lambda pair: int(pair[0].handle.removeprefix("lw:")))


def _calls_in(recorded: DemoSession) -> int:
    return sum(each.message.role == "assistant" for each in recorded.recording.messages)


def _show_all(console: Console, recorded: DemoSession, policy: str, *, slow: bool, json: bool) -> None:
    model = recorded.recording.model
    warned: list[UsageWarning] = []
    watched = start_run(
        model, policy, ceiling=_CEILING if policy == _OUR_POLICY else None, on_warning=warned.append
    )
    fixed, untouched = start_run(model, _FIXED), start_run(model, policy, compacts=False)
    session = watched.session
    turns = _calls_in(recorded)
    console.print(Text(f"A coding agent at work: {turns} turns on {model}, policy {policy}.", style="bold"))
    if policy == _OUR_POLICY:
        console.print(f"Its user wants no more than {_CEILING:,} tokens in view (max_view_tokens).")
    console.print()

    def take_warnings() -> tuple[UsageWarning, ...]:
        due = tuple(warned)
        warned.clear()
        return due

    pause = _WATCHED_SECONDS / turns if slow else 0.0
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
    over = "  over the window" if tokens > context else ""
    return Text(f"{label} ") + _cells(tokens, context, colour, _BAR) + Text(f" {tokens:>8,}{over}")


def _cells(tokens: int, context: int, colour: str, width: int) -> Text:
    """Return a bar for a share of the window; it is red above all of it."""
    filled = min(width, round(width * tokens / context))
    style = "red" if tokens > context else colour
    return Text("█" * filled, style=style) + Text("░" * (width - filled), style="bright_black")


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
    found, line = _failure_out_of_view(session)
    console.print(Text("\nrecall", style="bold"))
    console.print(
        f"  Asked for “{_SEARCH}”, the ledger answers with message {found.handle}, {found.tokens:,} tokens:"
    )
    console.print(Text(f"  {line[:90]} …", style="bright_black"))


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
