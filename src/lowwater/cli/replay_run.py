"""Runs `lowwater replay`: reads sessions, replays them with a progress bar, and prints the report."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Literal

from msgspec import Struct
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from lowwater.cli.command import INTERRUPTED, check_paths, noting_interrupts, say, write_page
from lowwater.cli.tables import figures_table, page_width, print_json, print_page
from lowwater.cli.wording import amount, figure, from_the_end, on_one_line, printable, share, short
from lowwater.core.wording import counted
from lowwater.errors import BadInput, BadSetting
from lowwater.lab.pages.replay import Timelines, replay_page
from lowwater.lab.references.reachability import LOST_TO
from lowwater.lab.replay.course_replay import MATTERS, OPTIMUM, RECENT, OutcomeKind, SessionResult
from lowwater.lab.replay.live import CONFIGURATIONS, SHIPPED
from lowwater.lab.replay.parquet import ParquetFolder
from lowwater.lab.replay.report import (
    PolicyFigures,
    PolicyReport,
    ReplayReport,
    ReportBuilder,
    beside_recorded,
    recorded_cost,
    report_json,
)
from lowwater.lab.replay.run import Engine, LocalEngine, RayEngine, RunFolder, replay_recordings
from lowwater.lab.replay.script import ARMS, ASSUMED, NEUTRAL, PAUSE
from lowwater.lab.replay.session import ENGINE_POLICIES, MAX_REPLAYED_CALLS, POLICY_NAMES, ReplayOptions
from lowwater.logs.importers import Progress, Skipped, recordings

_KINDS: tuple[OutcomeKind, ...] = ("course", "full")
_OURS = "rent-or-buy"
_WIDE = 100
_SHOWN, _SHOWN_UNREAD = 10, 3
_Taker = Callable[[SessionResult], None]


class _Line(Struct, frozen=True, kw_only=True):
    policy: str
    figures: PolicyFigures
    others: Mapping[str, PolicyFigures]
    """The figures in the other arms."""


def page(report: ReplayReport, *, width: int) -> Iterator[Table | Text]:
    """Yield the blocks of the report."""
    yield _heading(report)
    if not report.replayed:
        return
    first = report.arms[0]
    course, full = (_lines(report.policies, first, of=kind) for kind in _KINDS)
    yield Text("\non courses: sessions as numbers, one edge of elided results and one summary", style="bold")
    yield _table(course, report.arms[1:], width)
    if full:
        how = CONFIGURATIONS[report.configuration]
        yield Text("\nby the real engine, on the real messages", style="bold")
        yield Text(f"configuration {how.name}: {how.about}")
        yield _table(full, report.arms[1:], width, strict=True)
        if difference := beside_recorded(report, _OURS):
            yield Text(difference)
        yield Text("\nuses that are not in view, by what replaced the result", style="bold")
        yield _losses(full, width)
    yield Text("\nhow often and how much", style="bold")
    yield _metrics(full or course, width)
    yield from _notes(report)


def _heading(report: ReplayReport) -> Text:
    replayed = report.replayed
    calls = sum(each.calls for each in replayed)
    models = Counter(each.model for each in replayed)
    named = ", ".join(name for name, _ in models.most_common(3)) + (" …" if len(models) > 3 else "")
    matters = sum(each.bounds[0].matters for each in replayed)
    return Text.assemble(
        (f"{len(replayed):,} sessions", "bold"),
        f", {calls:,} calls, on {named or 'no model'}; compaction matters in {matters:,} "
        f"(never ÷ optimum > {MATTERS:.2f})",
    )


def _lines(policies: Sequence[PolicyReport], first: str, *, of: OutcomeKind) -> list[_Line]:
    lines = [
        _Line(policy=each.policy, figures=arms[first], others=arms)
        for each in policies
        if first in (arms := each.course if of == "course" else each.full)
    ]
    return sorted(lines, key=lambda line: (line.policy != OPTIMUM, line.figures.cost_with_rework_usd))


def _table(lines: Sequence[_Line], arms: Sequence[str], width: int, *, strict: bool = False) -> Table:
    columns = ["÷ bound", "÷ coarse", "p95", "Σ÷Σ", "with rework", "in view"]
    if width >= _WIDE:
        columns = [
            "÷ bound",
            "÷ coarse",
            "p95",
            "worst",
            "÷ rel.",
            "Σ÷Σ",
            "with rework",
            "without",
            "in view",
        ]
    if strict:
        columns.append("recalled")
    if width >= _WIDE:
        columns.append("mean, peak")
    shown_arms = [arm for arm in arms if any(arm in line.others for line in lines)]
    table = _empty([*columns, *(f"{arm[:6]}." for arm in shown_arms)], width)
    for line in lines:
        cells = _cells(line)
        others = [
            _ratio(line.others[arm].cost_over_optimum.mean) if arm in line.others else "–"
            for arm in shown_arms
        ]
        mark = "" if strict or line.figures.bound == "optimum" else " ~"
        table.add_row(
            f"{line.policy}{mark}", *(cells[title] for title in columns), *others, style=_style(line)
        )
    return table


def _metrics(lines: Sequence[_Line], width: int) -> Table:
    """Return a table of the cadence metrics."""
    titles = ["per 100", "between", "summaries", "reclaimed", "rewritten", "tokens", "first", "prunes"]
    table = _empty(titles, width)
    for line in lines:
        metrics = line.figures.metrics
        table.add_row(
            line.policy,
            figure(metrics.events_per_100_turns),
            figure(metrics.turns_between_events),
            figure(metrics.summary_calls),
            "–" if metrics.reclaimed_per_event is None else short(round(metrics.reclaimed_per_event)),
            short(metrics.rewritten),
            short(metrics.prompt_and_summary_tokens),
            figure(metrics.earliest_changed),
            figure(metrics.prunes_per_summary),
            style=_style(line),
        )
    return table


def _losses(lines: Sequence[_Line], width: int) -> Table:
    """Return the shares of uses that left the view, of results at most five calls old and of older ones."""
    table = _empty(["", "uses", *LOST_TO], width)
    for line in lines:
        recall = line.figures.recall
        for age, found in ((f"≤ {RECENT} calls old", recall.recent), ("older", recall.late)):
            if found is not None:
                cells = (_percent(found.lost.get(cause, 0.0)) if found.uses else "–" for cause in LOST_TO)
                name = line.policy if found is recall.recent else ""
                table.add_row(name, age, f"{found.uses:,}", *cells, style=_style(line))
    return table


def _empty(columns: Sequence[str], width: int) -> Table:
    return figures_table("policy", figures=columns, gap=2 if width >= _WIDE else 1)


def _style(line: _Line) -> str:
    return {_OURS: "bold green", OPTIMUM: "cyan"}.get(line.policy, "")


def _cells(line: _Line) -> dict[str, str]:
    found = line.figures
    ratios = found.cost_over_optimum
    mean = "–" if found.mean_view is None else short(round(found.mean_view))
    return {
        "÷ bound": _ratio(found.cost_over_bound.mean),
        "÷ coarse": _ratio(ratios.mean),
        "p95": _ratio(ratios.p95),
        "worst": _ratio(ratios.max),
        "÷ rel.": _ratio(found.cost_over_relaxed.mean),
        "Σ÷Σ": _ratio(found.sum_over_optimum),
        "with rework": f"${found.cost_with_rework_usd:,.2f}",
        "without": f"${found.cost_usd:,.2f}",
        "in view": _percent(found.recall.in_view),
        "recalled": _percent(found.recall.reached),
        "mean, peak": f"{mean} {short(found.peak_view)}",
    }


def _ratio(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.3f}"


def _percent(part: float | None) -> str:
    return "–" if part is None else f"{part:.1%}"


def _notes(report: ReplayReport) -> Iterator[Text]:
    said = [
        "÷ bound: cost ÷ lower bound of the engine's own actions, mean over the sessions where compaction matters, rework charged to both",
        "÷ coarse: the same by the optimum of the actions of policies without ~; p95, worst and Σ÷Σ belong to it",
        "÷ rel.: the same by what no policy can avoid; the only bound for those with ~",
        "Σ÷Σ: over all sessions; in view: later uses that needed no recall",
    ]
    if any(each.full for each in report.policies):
        said.append("recalled: of the uses that had left the view, those that one recall gets back")
        said.append(
            "courses and the optimum know the short cache lifetime only; the real engine asks for the one that pays"
        )
        said.append(
            "as-recorded: with the client's own compactions, at the same prices, with the cache lifetime that it asked for; what it did again after them is in every row"
        )
    said.append(
        "per 100: compactions in 100 calls; between: calls from one to the next; reclaimed: tokens by each;"
    )
    said.append(
        "rewritten: tokens that all of them made the provider cache again; tokens: all prompts and summaries;"
    )
    said.append("first: the first message that any of them changed; prunes: for each summary")
    unfit = max((each.unfit for policy in report.policies for each in policy.course.values()), default=0)
    if unfit:
        said.append(f"up to {unfit:,} sessions do not fit the window under a policy and are left out there")
    cut = sum(each.beyond > 0 for each in report.sessions)
    if cut:
        said.append(
            f"of {cut:,} very long sessions only the first {MAX_REPLAYED_CALLS:,} calls were replayed"
        )
    yield Text("\n" + "\n".join(said), style="bright_black")
    yield from _assumed(report.replayed)
    yield from _left_out(report)


def _assumed(sessions: Sequence[SessionResult]) -> Iterator[Text]:
    """Yield notes on what had to be assumed because recordings lack it."""
    without = Counter(what for each in sessions for what in each.assumed)
    if without["times"]:
        said = f"{counted(without['times'], 'session')} without times: played with {PAUSE:.0f} seconds between calls"
        yield Text(said, style="bright_black")
    if without["model"]:
        said = f"{counted(without['model'], 'session')} without a model whose prices are known: charged as {ASSUMED}, --model names another"
        yield Text(said, style="bright_black")


def _left_out(report: ReplayReport) -> Iterator[Text]:
    """Yield how much was left out, and the first sessions and files with the reasons."""
    left, every = report.left_out, report.sessions
    if left:
        dollars, of = recorded_cost(left), recorded_cost(every)
        spent = f", {amount(dollars)} of the {amount(of)} they cost ({share(dollars / of)})" if of else ""
        yield Text(
            f"{len(left):,} of {counted(len(every), 'session')} left out ({share(len(left) / len(every))}){spent}:",
            style="yellow",
        )
        for each in left[:_SHOWN]:
            name = f"{from_the_end(printable(each.path), 60)} {on_one_line(each.id, 13)}"
            yield Text(f"  {name}: {on_one_line(each.skipped, 120)}", style="bright_black")
        if len(left) > _SHOWN:
            yield Text(f"  and {len(left) - _SHOWN:,} more: --json has them all", style="bright_black")
    if report.unread:
        said = f"{counted(len(report.unread), 'file')} without a session or not read to the end:"
        yield Text(said, style="bright_black")
        for one in report.unread[:_SHOWN_UNREAD]:
            line = f"  {from_the_end(printable(one.path), 60)}: {on_one_line(one.why, 80)}"
            yield Text(line, style="bright_black")


class Wanted(Struct, frozen=True, kw_only=True):
    """The options of the command line."""

    paths: tuple[Path, ...]
    policies: tuple[str, ...] = ()
    model: str = ""
    full: tuple[str, ...] = ()
    configuration: str = SHIPPED.name
    thorough: bool = False
    run: Path | None = None
    workers: int | None = None
    engine: Literal["local", "ray"] = "local"
    address: str = ""
    json: bool = False
    html: Path | None = None
    parquet: Path | None = None


def replay_all(wanted: Wanted) -> None:
    """Replay the sessions and print the report; after Ctrl-C, the report so far."""
    check_paths(wanted.paths)
    options, engine = options_for(wanted), engine_for(wanted)
    gathering, timelines = ReportBuilder(), Timelines()
    unread: list[Skipped] = []
    with _tables(wanted.parquet) as tables:
        takers = (gathering.add, timelines.add, *([tables.add] if tables else ()))
        interrupted = _play(wanted, options, engine, takers, unread.append)
        report = gathering.report(options.reported, configuration=options.configuration, unread=unread)
        if not report.replayed and not interrupted:
            raise BadInput(_nothing(report))
        if tables is not None:
            tables.write()
            say(f"wrote tables to {on_one_line(str(wanted.parquet), 200)}")
    if wanted.html is not None:
        write_page(wanted.html, replay_page(report, timelines=timelines.chosen()).encode())
    if wanted.json:
        print_json(report_json(report))
    else:
        print_page(page(report, width=page_width()))
    if interrupted:
        raise SystemExit(INTERRUPTED)


def options_for(wanted: Wanted) -> ReplayOptions:
    """Return the replay's options."""
    policies = wanted.policies or POLICY_NAMES
    by_word: dict[tuple[str, ...], tuple[str, ...]] = {("all",): tuple(ENGINE_POLICIES), ("none",): ()}
    return ReplayOptions(
        model=wanted.model,
        policies=policies if OPTIMUM in policies else (*policies, OPTIMUM),
        full=by_word.get(wanted.full, wanted.full),
        configuration=wanted.configuration,
        full_arms=tuple(arm.name for arm in ARMS) if wanted.thorough else (NEUTRAL.name,),
    )


def engine_for(wanted: Wanted) -> Engine:
    """Return the engine that plays the sessions, or raise BadSetting if it is not available."""
    if wanted.engine == "ray":
        return RayEngine(wanted.address, workers=wanted.workers)
    if wanted.address:
        raise BadSetting("an address is that of a Ray cluster: add --engine ray")
    return LocalEngine(wanted.workers)


class _Shown:
    """The progress bar, on a terminal: bytes read and sessions played."""

    def __init__(self, bar: Bar | None) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=None, sessions=0) if bar else None
        self._sessions = 0

    def read(self, progress: Progress) -> None:
        """Update the bytes read."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=progress.read, total=progress.of)

    def finished(self) -> None:
        """Count a finished session."""
        self._sessions += 1
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, sessions=self._sessions)


@contextmanager
def _progress() -> Iterator[_Shown]:
    if not sys.stderr.isatty():
        yield _Shown(None)
        return
    columns = (
        TextColumn("replaying"),
        BarColumn(),
        DownloadColumn(),
        TextColumn("{task.fields[sessions]} sessions"),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        yield _Shown(bar)


def _tables(place: Path | None) -> AbstractContextManager[ParquetFolder | None]:
    return nullcontext() if place is None else ParquetFolder(place)


def _play(
    wanted: Wanted,
    options: ReplayOptions,
    engine: Engine,
    takers: Sequence[_Taker],
    on_skipped: Callable[[Skipped], None],
) -> bool:
    """Pass each result to all `takers`, and return whether the user interrupted the run."""
    with noting_interrupts() as pressed:
        try:
            with _progress() as shown:
                for result in _results(wanted, options, engine, shown, on_skipped):
                    for take in takers:
                        take(result)
                    shown.finished()
                    if pressed:
                        break
        except KeyboardInterrupt:
            pressed.append(0)
        except Exception:
            # Ctrl-C ends the workers, too: what their end raises here is not a defect.
            if not pressed:
                raise
    if pressed:
        say("interrupted; run it again to go on from here" if wanted.run else "interrupted")
    return bool(pressed)


def _results(
    wanted: Wanted,
    options: ReplayOptions,
    engine: Engine,
    shown: _Shown,
    on_skipped: Callable[[Skipped], None],
) -> Iterator[SessionResult]:
    return replay_recordings(
        recordings(wanted.paths, on_progress=shown.read, on_skipped=on_skipped),
        options,
        engine=engine,
        folder=RunFolder(wanted.run) if wanted.run else None,
    )


def _nothing(report: ReplayReport) -> str:
    sessions = report.sessions
    if not sessions:
        why = f": {on_one_line(report.unread[0].path, 200)} ({report.unread[0].why})" if report.unread else ""
        return f"no recorded session was found there{why}"
    first = sessions[0]
    where = f"{on_one_line(first.id, 60)} in {on_one_line(first.path, 200)}"
    return f"none of {len(sessions):,} sessions can be replayed; {where}: {first.skipped}"
