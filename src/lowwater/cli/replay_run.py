"""Carries `lowwater replay` out: reads, plays with a progress bar, and writes what was found."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from lowwater.cli.failing import INTERRUPTED, noting_interrupts, say
from lowwater.cli.kept_words import on_one_line
from lowwater.cli.printing import page_width, print_json, print_page
from lowwater.cli.replay_page import page
from lowwater.errors import BadInput, BadSetting
from lowwater.lab.pages.replay import Timelines, replay_page
from lowwater.lab.replay.on_course import OPTIMUM, SessionResult
from lowwater.lab.replay.parquet import ParquetFolder
from lowwater.lab.replay.report import Gathering, Report, told
from lowwater.lab.replay.run import Engine, LocalEngine, RayEngine, RunFolder, replay
from lowwater.lab.replay.script import ARMS, NEUTRAL
from lowwater.lab.replay.session import FULL, NAMES, Options
from lowwater.logs.importing import Progress, Skipped, recordings

_Taker = Callable[[SessionResult], None]


class Wanted(Struct, frozen=True, kw_only=True):
    """What was asked on the command line."""

    paths: tuple[Path, ...]
    policies: tuple[str, ...] = ()
    model: str = ""
    full: tuple[str, ...] = ()
    thorough: bool = False
    run: Path | None = None
    workers: int | None = None
    engine: Literal["local", "ray"] = "local"
    address: str = ""
    json: Path | None = None
    html: Path | None = None
    parquet: Path | None = None


def replay_all(wanted: Wanted) -> None:
    """Replay everything that was asked for and show it; interrupted, what there is so far."""
    for path in wanted.paths:
        if not path.exists():
            raise BadInput(f"{on_one_line(str(path), 200)} is not there")
    options, engine = options_for(wanted), engine_for(wanted)
    gathering, timelines = Gathering(), Timelines()
    unread: list[Skipped] = []
    with _tables(wanted.parquet) as tables:
        takers = (gathering.add, timelines.add, *([tables.add] if tables else ()))
        interrupted = _play(wanted, options, engine, takers, unread.append)
        report = gathering.report(options.policies, unread=unread)
        if not report.replayed and not interrupted:
            raise BadInput(_nothing(report))
        if tables is not None:
            tables.write()
            say(f"wrote tables to {on_one_line(str(wanted.parquet), 200)}")
    if wanted.html is not None:
        _write(wanted.html, replay_page(report, timelines=timelines.chosen()).encode())
    _show(report, wanted)
    if interrupted:
        raise SystemExit(INTERRUPTED)


def options_for(wanted: Wanted) -> Options:
    """Return what is asked of every session."""
    policies = wanted.policies or NAMES
    by_word: dict[tuple[str, ...], tuple[str, ...]] = {("all",): tuple(FULL), ("none",): ()}
    return Options(
        model=wanted.model,
        policies=policies if OPTIMUM in policies else (*policies, OPTIMUM),
        full=by_word.get(wanted.full, wanted.full),
        full_arms=tuple(arm.name for arm in ARMS) if wanted.thorough else (NEUTRAL.name,),
    )


def engine_for(wanted: Wanted) -> Engine:
    """Return where the sessions are played, or raise BadSetting if it cannot be there."""
    if wanted.engine == "ray":
        return RayEngine(wanted.address, workers=wanted.workers)
    if wanted.address:
        raise BadSetting("an address is that of a Ray cluster: add --engine ray")
    return LocalEngine(wanted.workers)


class _Shown:
    """The bar, if anybody watches: bytes read and sessions played."""

    def __init__(self, bar: Bar | None) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=None, sessions=0) if bar else None
        self._sessions = 0

    def read(self, progress: Progress) -> None:
        """Take note of how far reading is."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=progress.read, total=progress.of)

    def finished(self) -> None:
        """Take note of a session that is done."""
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
    options: Options,
    engine: Engine,
    takers: Sequence[_Taker],
    on_skipped: Callable[[Skipped], None],
) -> bool:
    """Give each result to everyone who takes it, and return whether somebody interrupted that."""
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
    options: Options,
    engine: Engine,
    shown: _Shown,
    on_skipped: Callable[[Skipped], None],
) -> Iterator[SessionResult]:
    return replay(
        recordings(wanted.paths, on_progress=shown.read, on_skipped=on_skipped),
        options,
        engine=engine,
        folder=RunFolder(wanted.run) if wanted.run else None,
    )


def _show(report: Report, wanted: Wanted) -> None:
    if wanted.json == Path("-"):
        print_json(told(report))
        return
    if wanted.json is not None:
        _write(wanted.json, msgspec.json.format(msgspec.json.encode(told(report)), indent=2))
    print_page(page(report, width=page_width()))


def _write(place: Path, data: bytes) -> None:
    try:
        place.write_bytes(data)
    except OSError as error:
        raise BadInput(f"{on_one_line(str(place), 200)} cannot be written: {error.strerror}") from None
    say(f"wrote {on_one_line(str(place), 200)}")


def _nothing(report: Report) -> str:
    sessions = report.sessions
    if not sessions:
        why = f": {on_one_line(report.unread[0].path, 200)} ({report.unread[0].why})" if report.unread else ""
        return f"no recorded session was found there{why}"
    first = sessions[0]
    where = f"{on_one_line(first.id, 60)} in {on_one_line(first.path, 200)}"
    return f"none of {len(sessions):,} sessions can be replayed; {where}: {first.skipped}"
