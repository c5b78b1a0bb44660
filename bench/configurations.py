"""What recorded sessions cost as their client had them, and in each configuration of Lowwater, on four price sheets.

    .venv/bin/python -m bench.configurations [--sources agentv,…] [--sessions N] [--sheets anthropic-r10,…] [--least-calls N]
    .venv/bin/python -m bench.configurations --results FILE --minutes 8   # again and again, until all are played
    .venv/bin/python -m bench.configurations --results FILE --minutes 0 --write
    .venv/bin/python -m bench.configurations --results FILE --minutes 0 --beside OTHER   # before and after a change

Every session is played by the real engine on its messages at their recorded times. `as-recorded` has the client's own
compactions where they were recorded, and the cache lifetime that it asked for; all other rows have the whole history and the
lifetime of `cache_ttl: auto`, and those that offer recall pay for the definitions of its tools in every call. Rework is one
recall for each later use of something that is no longer in view, or the tool run again where recall is not offered; the
calls that a client made again after its own compactions are part of every row. `shipped x4` is `shipped` with
`disturbed_calls: 4`: what it costs to compact more rarely. `summaries alone` is `shipped` without recall.

With `--results`, what is played is appended to a file and not played again. The file's first line says which code played it;
other code does not add to it, and the tables name that code's commit. Only sessions that every row and sheet has are counted. `--write` puts the tables into bench/README.md, and the shipped
configuration's figures into README.md. The command ends with
status 1 if `shipped` costs more than 3 % more than `full` on some sheet.
"""

import argparse
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from multiprocessing import Pool
from pathlib import Path
from random import Random

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from bench.transcripts import ABSENT, CANONICAL
from lowwater.adapters.models import load_registry
from lowwater.errors import BadInput
from lowwater.lab.audit.damage import Interval
from lowwater.lab.references.reachability import LOST_TO
from lowwater.lab.references.uses import uses_of
from lowwater.lab.replay.as_recorded import (
    AS_RECORDED,
    client_compactions,
    play_as_recorded,
    recorded_lifetime,
)
from lowwater.lab.replay.course_replay import RECENT, PolicyOutcome
from lowwater.lab.replay.live import (
    CONFIGURATIONS,
    FULL,
    NEVER,
    SHIPPED,
    Configuration,
    EngineRun,
    play_with_engine,
)
from lowwater.lab.replay.script import SHEETS, course_for, model_named, script_of
from lowwater.logs.importers import recordings
from lowwater.logs.recording import Recording

ROWS = (AS_RECORDED, NEVER, "shipped", "full", "keyless")
APART = ("shipped", "summaries alone", "keyless", "no-recall")
"""Summaries and recall, the one, the other, and neither."""
RARER = ("shipped x0", "shipped x2", "shipped x4", "shipped x8")
"""The shipped configuration with other values of `disturbed_calls`; the default is 1."""
BESIDE = (AS_RECORDED, NEVER, "full")
"""What the cost of the shipped configuration is divided by."""
MOST_OVER_FULL = 1.03
RESAMPLES = 2_000
WORTH = 1.01
README = Path(__file__).with_name("README.md")
ROOT = Path(__file__).parents[1]
FRONT_PAGE = ROOT / "README.md"
BEGIN, END = "<!-- bench.configurations -->\n", "<!-- end of bench.configurations -->\n"


class PlayedBy(Struct, frozen=True, kw_only=True):
    """The code that played the sessions of a file, in its first line."""

    code: str
    """A digest of the package's sources and data."""
    commit: str
    day: str


class Job(Struct, frozen=True, kw_only=True):
    """One session, to be played in some rows on one price sheet."""

    recording: Recording
    sheet: str
    rows: tuple[str, ...]


class Played(Struct, frozen=True, kw_only=True):
    """The outcome of one session in one row on one price sheet."""

    session: str
    source: str
    sheet: str
    row: str
    outcome: PolicyOutcome


class Sums(Struct, kw_only=True):
    """What the sessions of one row come to; money in nano-dollars."""

    sessions: int = 0
    calls: int = 0
    cost: int = 0
    rework: int = 0
    summaries: int = 0
    compactions: int = 0
    summary_calls: int = 0
    rewritten: int = 0
    uses: int = 0
    in_view: int = 0
    one_recall: int = 0
    late: int = 0
    late_in_view: int = 0
    lost_recent: Counter[str] = field(default_factory=Counter)
    lost_late: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """Calls, summaries and rework."""
        return self.cost + self.rework

    @property
    def per_100_calls(self) -> float:
        """Compactions in a hundred calls."""
        return 100 * self.compactions / self.calls

    def add(self, outcome: PolicyOutcome) -> None:
        """Add a session."""
        self.sessions += 1
        self.calls += outcome.cadence.turns
        self.cost += outcome.cost
        self.rework += outcome.rework
        self.summaries += outcome.summaries
        self.compactions += outcome.cadence.events
        self.summary_calls += outcome.cadence.summary_calls
        self.rewritten += outcome.cadence.rewritten
        self.uses += outcome.recall.uses
        self.in_view += outcome.recall.in_view
        self.one_recall += outcome.recall.one_recall or 0
        self.late += outcome.recall.late
        self.late_in_view += outcome.recall.late_in_view
        self.lost_recent.update(outcome.recall.lost_recent)
        self.lost_late.update(outcome.recall.lost_late)


def play(job: Job) -> list[Played]:
    """Return the outcome of each row."""
    script, model = script_of(job.recording), model_named(job.sheet, load_registry())
    uses = uses_of(script.messages)
    course = course_for(script, (), model=model.name, recorded=job.recording.model or model.name)
    outputs = tuple(turn.output for turn in course.turns)
    found: list[Played] = []
    for row in job.rows:
        if row == AS_RECORDED:
            outcome = play_as_recorded(
                script,
                uses,
                client_compactions(job.recording),
                model=model,
                outputs=outputs,
                fixed=course.fixed,
                cache_ttl=recorded_lifetime(job.recording),
            )
        else:
            name, _, disturbed = row.partition(" x")
            run = EngineRun(
                policy=NEVER if name == NEVER else "rent-or-buy",
                model=model,
                outputs=outputs,
                fixed=course.fixed,
                configuration=_configuration(name),
                disturbed_calls=float(disturbed) if disturbed else None,
            )
            outcome = play_with_engine(script, uses, run)
        found.append(
            Played(
                session=script.name,
                source=Path(job.recording.path).parent.name,
                sheet=job.sheet,
                row=row,
                outcome=replace(outcome, series=None, events=()),
            )
        )
    return found


def _configuration(row: str) -> Configuration:
    if row == APART[1]:
        return replace(SHIPPED, name=row, offers_recall=False)
    return CONFIGURATIONS["no-recall" if row == NEVER else row]


def chosen(least_calls: int, sources: Sequence[str] = ()) -> list[Recording]:
    """Return the sessions with times and enough calls, in an order that is random and the same every time."""
    found: list[Recording] = []
    for recording in recordings([CANONICAL / each for each in sources] or [CANONICAL]):
        try:
            script = script_of(recording)
        except BadInput:
            continue
        if not script.lacks_times and len(script.exchanges) >= least_calls:
            found.append(recording)
    Random(20261118).shuffle(found)
    return found


def whole(played: Iterable[Played], sheets: Sequence[str], rows: Sequence[str]) -> list[Played]:
    """Return these rows of the sessions that have been played in all of them, on all of these sheets."""
    by_session: dict[str, dict[tuple[str, str], Played]] = {}
    for each in played:
        if each.sheet in sheets and each.row in rows:
            by_session.setdefault(each.session, {})[each.sheet, each.row] = each
    wanted = len(sheets) * len(rows)
    return [each for found in by_session.values() if len(found) == wanted for each in found.values()]


def summed(
    played: Iterable[Played], sheets: Sequence[str], rows: Sequence[str]
) -> dict[str, dict[str, Sums]]:
    """Return the sums by sheet and row, over the sessions that have been played in all of them."""
    sums = {sheet: {row: Sums() for row in rows} for sheet in sheets}
    for each in whole(played, sheets, rows):
        sums[each.sheet][each.row].add(each.outcome)
    return sums


def table(sums: Mapping[str, Sums]) -> Iterator[str]:
    """Yield a price sheet's table in Markdown."""
    never, recorded = sums[NEVER].total, sums[AS_RECORDED].total
    yield (
        "| | cost | ÷ as recorded | ÷ never | summaries | rework | late uses in view | lost uses one recall away | "
        "compactions per 100 calls | tokens rewritten per call |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for row, each in sums.items():
        yield (
            f"| {row} | ${each.total / 1e9:,.2f} | {each.total / recorded:.2f} | {each.total / never:.2f} | "
            f"{each.summaries / each.total:.1%} | {each.rework / each.total:.1%} | "
            f"{_share(each.late_in_view, each.late)} | {_share(each.one_recall, each.uses - each.in_view)} | "
            f"{each.per_100_calls:.1f} | {each.rewritten / each.calls:,.0f} |"
        )


def intervals(played: Sequence[Played], sheet: str) -> dict[str, Interval]:
    """Return between which values the cost of the shipped configuration, divided by each of `BESIDE`, is in nine of ten resamples of the sessions."""
    totals: dict[str, dict[str, int]] = {}
    for each in played:
        if each.sheet == sheet:
            totals.setdefault(each.session, {})[each.row] = each.outcome.cost + each.outcome.rework
    sessions, random = list(totals.values()), Random(len(totals))
    drawn: dict[str, list[float]] = {row: [] for row in BESIDE}
    for _ in range(RESAMPLES):
        sample = random.choices(sessions, k=len(sessions))
        shipped = sum(each[SHIPPED.name] for each in sample)
        for row, shares in drawn.items():
            shares.append(shipped / sum(each[row] for each in sample))
    return {
        row: Interval(low=sorted(shares)[RESAMPLES // 20], high=sorted(shares)[-1 - RESAMPLES // 20])
        for row, shares in drawn.items()
    }


def losses(by_sheet: Mapping[str, Mapping[str, Sums]]) -> Iterator[str]:
    """Yield what replaced the results whose uses are not in view, by their age, over all price sheets, in Markdown."""
    causes = {"summary": "behind a summary", "dropped": "dropped by the client"}
    titles = " | ".join(causes.get(cause, cause) for cause in LOST_TO)
    yield f"| | results | uses | not in view | {titles} |"
    yield f"|---|---|---|---|{'---|' * len(LOST_TO)}"
    for row in next(iter(by_sheet.values())):
        of = [sums[row] for sums in by_sheet.values()]
        late = sum(each.late for each in of)
        recent = sum(each.uses for each in of) - late
        for age, uses, counters in (
            (f"at most {RECENT} calls old", recent, [each.lost_recent for each in of]),
            ("older", late, [each.lost_late for each in of]),
        ):
            lost = {cause: sum(each[cause] for each in counters) for cause in LOST_TO}
            shares = " | ".join(_share(count, uses) for count in lost.values())
            yield f"| {row} | {age} | {uses:,} | {_share(sum(lost.values()), uses)} | {shares} |"


def apart(by_sheet: Mapping[str, Mapping[str, Sums]]) -> Iterator[str]:
    """Yield what summaries and recall are worth, together and apart, in Markdown."""
    yield (
        "| sheet | | cost ÷ that of shipped | rework | late uses in view | lost uses one recall away | "
        "summary calls per 100 calls |"
    )
    yield "|---|---|---|---|---|---|---|"
    for sheet, sums in by_sheet.items():
        for row, each in sums.items():
            yield (
                f"| {sheet} | {row} | {each.total / sums[SHIPPED.name].total:.3f} | {each.rework / each.total:.1%} | "
                f"{_share(each.late_in_view, each.late)} | {_share(each.one_recall, each.uses - each.in_view)} | "
                f"{100 * each.summary_calls / each.calls:.1f} |"
            )


def rarer(by_sheet: Mapping[str, Mapping[str, Sums]]) -> Iterator[str]:
    """Yield what compacting more rarely costs, and how much rarer it can be for 1 % of cost, in Markdown."""
    yield (
        "| sheet | `disturbed_calls` | cost ÷ that of 1 | compactions per 100 calls | tokens rewritten per call | "
        "late uses in view |"
    )
    yield "|---|---|---|---|---|---|"
    for sheet, sums in by_sheet.items():
        values = {float(row.partition(" x")[2] or 1): each for row, each in sums.items()}
        for value, each in sorted(values.items()):
            yield (
                f"| {sheet} | {value:g} | {each.total / values[1].total:.3f} | {each.per_100_calls:.1f} | "
                f"{each.rewritten / each.calls:,.0f} | {_share(each.late_in_view, each.late)} |"
            )
    figures = ", ".join(f"{rarer_for_a_percent(sums):.0%} ({sheet})" for sheet, sums in by_sheet.items())
    yield f"\nFor {WORTH - 1:.0%} more cost compactions can be rarer by {figures}."


def rarer_for_a_percent(sums: Mapping[str, Sums]) -> float:
    """Return the share of compactions that costing 1 % more saves: by the values that were played, linear between them."""
    usual = sums[SHIPPED.name]
    saved, at = 0.0, 1.0
    for row in RARER[1:]:
        then, cost = 1 - sums[row].per_100_calls / usual.per_100_calls, sums[row].total / usual.total
        if cost > WORTH:
            return saved + (then - saved) * (WORTH - at) / (cost - at)
        saved, at = then, cost
    return saved


def this_code() -> PlayedBy:
    """Return what says which code this is."""
    digest, package = blake2b(digest_size=8), ROOT / "src" / "lowwater"
    for path in sorted((*package.rglob("*.py"), *package.glob("data/*.json"))):
        digest.update(path.relative_to(package).as_posix().encode() + path.read_bytes())
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return PlayedBy(
        code=digest.hexdigest(),
        commit=described.stdout.strip() or "unknown",
        day=time.strftime("%Y-%m-%d"),
    )


def tables(played: Sequence[Played], of: int, by: PlayedBy) -> Iterator[str]:
    """Yield all tables of what was played by some code, of `of` sessions that there are."""
    present = {each.sheet for each in played}
    sheets = [sheet for sheet in SHEETS if sheet in present]
    by_sheet = summed(played, sheets, ROWS)
    one = by_sheet[sheets[0]][NEVER]
    if not one.sessions:
        yield "no session has been played in every row yet"
        return
    sources = Counter({each.session: each.source for each in whole(played, sheets, ROWS)}.values())
    drawn = "" if one.sessions == of else "; drawn at random, by the same seed every time"
    yield (
        f"{one.sessions} of {of} sessions, {one.calls:,} calls, Lowwater of {by.day}, commit {by.commit} "
        f"({', '.join(f'{source} {count}' for source, count in sources.most_common())}){drawn}."
    )
    for sheet, sums in by_sheet.items():
        over = sums[SHIPPED.name].total / sums[FULL.name].total
        yield f"\n**{sheet}** ({SHEETS[sheet]}); shipped ÷ full {over:.3f}:\n"
        yield from table(sums)
        found = intervals(whole(played, sheets, ROWS), sheet)
        said = ", ".join(f"÷ {row} {each.low:.3f} to {each.high:.3f}" for row, each in found.items())
        yield f"\nShipped, in nine of ten resamples of the sessions: {said}."
    yield f"\n**Where uses are lost**, of all uses of results of that age, {len(by_sheet)} price sheets together:\n"
    yield from losses(by_sheet)
    by_part = summed(played, sheets, APART)
    first = by_part[sheets[0]][SHIPPED.name]
    if first.sessions:
        yield f"\n**Summaries and recall, together and apart**, {first.sessions} sessions, {first.calls:,} calls:\n"
        yield from apart(by_part)
    by_value = summed(played, sheets, (SHIPPED.name, *RARER))
    first = by_value[sheets[0]][SHIPPED.name]
    if first.sessions:
        yield f"\n**More rarely**, {first.sessions} sessions, {first.calls:,} calls:\n"
        yield from rarer(by_value)


def beside(played: Sequence[Played], others: Sequence[Played], by: PlayedBy) -> Iterator[str]:
    """Yield how the rows of the same sessions differ from those that other code played, in Markdown."""
    known = {(each.session, each.sheet, each.row): each for each in others}
    pairs = [(each, known.get((each.session, each.sheet, each.row))) for each in played]
    yield f"| sheet | | sessions | cost ÷ that of commit {by.commit} | late uses in view, there | here | compactions per 100 calls, there | here |"
    yield "|---|---|---|---|---|---|---|---|"
    for sheet in SHEETS:
        for row in ROWS:
            now, then = Sums(), Sums()
            for here, there in pairs:
                if there is not None and (here.sheet, here.row) == (sheet, row):
                    now.add(here.outcome)
                    then.add(there.outcome)
            if now.sessions:
                yield (
                    f"| {sheet} | {row} | {now.sessions} | {now.total / then.total:.3f} | {_share(then.late_in_view, then.late)} | "
                    f"{_share(now.late_in_view, now.late)} | {then.per_100_calls:.1f} | {now.per_100_calls:.1f} |"
                )


def in_short(played: Sequence[Played]) -> Iterator[str]:
    """Yield what the shipped configuration costs, in Markdown for the front page."""
    sheets = [sheet for sheet in SHEETS if sheet in {each.sheet for each in played}]
    by_sheet = summed(played, sheets, ROWS)
    one = by_sheet[sheets[0]][NEVER]
    yield (
        f"| {one.sessions} recorded sessions, {one.calls:,} calls, billed as | ÷ with the client's own compactions | "
        "÷ never compacted | compactions per 100 calls | late uses in view |"
    )
    yield "|---|---|---|---|---|"
    for sheet, sums in by_sheet.items():
        shipped = sums[SHIPPED.name]
        yield (
            f"| {SHEETS[sheet]} | {shipped.total / sums[AS_RECORDED].total:.2f} | {shipped.total / sums[NEVER].total:.2f} | "
            f"{shipped.per_100_calls:.1f} | {_share(shipped.late_in_view, shipped.late)} |"
        )


def is_near_full(played: Sequence[Played]) -> bool:
    """Return whether the shipped configuration costs about as much as the full one on every sheet that was played."""
    pair = (SHIPPED.name, FULL.name)
    by_sheet = summed(played, tuple({each.sheet for each in played}), pair)
    return all(sums[pair[0]].total <= MOST_OVER_FULL * sums[pair[1]].total for sums in by_sheet.values())


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "–"


def read_results(results: Path | None, *, adds: bool) -> tuple[PlayedBy, list[Played]]:
    """Return what a file has and which code played it; refuse a file of other code if more is to be added to it."""
    now = this_code()
    if results is None or not results.exists():
        if results is not None and adds:
            results.write_bytes(msgspec.json.encode(now) + b"\n")
        return now, []
    first, *lines = results.read_bytes().splitlines()
    try:
        by = msgspec.json.decode(first, type=PlayedBy)
    except msgspec.MsgspecError:
        raise BadInput(f"{results}: its first line does not say which code played it") from None
    if adds and by.code != now.code:
        raise BadInput(
            f"{results} was played by other code (commit {by.commit}): give another file, or --minutes 0 for its tables"
        )
    return by, [msgspec.json.decode(line, type=Played) for line in lines]


def _jobs(
    sessions: Sequence[Recording], asked: argparse.Namespace, played: Sequence[Played]
) -> Iterator[Job]:
    """Yield what is still to be played, session by session."""
    done = {(each.session, each.sheet, each.row) for each in played}
    for recording in sessions:
        name = script_of(recording).name
        for sheet in asked.sheets.split(","):
            rows = tuple(row for row in asked.rows.split(",") if (name, sheet, row) not in done)
            if rows:
                yield Job(recording=recording, sheet=sheet, rows=rows)


def _play_all(jobs: Iterable[Job], asked: argparse.Namespace) -> Iterator[Played]:
    """Yield what is played until the time is up; the last job is finished."""
    until = time.monotonic() + 60 * asked.minutes if asked.minutes is not None else float("inf")
    with Pool(asked.processes) as pool:
        for done, found in enumerate(pool.imap_unordered(play, jobs), start=1):
            if asked.results is not None:
                with asked.results.open("ab") as file:
                    file.writelines(msgspec.json.encode(each) + b"\n" for each in found)
            yield from found
            if sys.stderr.isatty():
                print(f"\r{done} sessions on a sheet", end="", file=sys.stderr, flush=True)
            if time.monotonic() >= until:
                pool.terminate()
                return


def main() -> int:
    """Print the tables."""
    given = argparse.ArgumentParser(description="Cost and uses in view of every configuration.")
    given.add_argument("--sessions", type=int, default=0, help="so many of the sessions; 0 for all")
    given.add_argument(
        "--sources", default="", help="folders of the recorded sessions, separated by commas; empty for all"
    )
    given.add_argument("--least-calls", type=int, default=30, help="sessions with fewer calls are left out")
    given.add_argument("--sheets", default=",".join(SHEETS), help="price sheets, separated by commas")
    given.add_argument(
        "--rows",
        default=",".join(ROWS),
        help=f"rows, separated by commas; also {', '.join((*APART[1::2], *RARER))}",
    )
    given.add_argument("--results", type=Path, help="what is played is kept here and not played again")
    given.add_argument(
        "--beside", type=Path, help="results of other code: compare the sessions that both played"
    )
    given.add_argument("--minutes", type=float, help="stop after so many minutes")
    given.add_argument("--processes", type=int, help="how many sessions are played at once")
    given.add_argument("--write", action="store_true", help="put the tables into bench/README.md")
    asked = given.parse_args()
    if not CANONICAL.is_dir():
        print(ABSENT)
        return 0
    try:
        by, played = read_results(asked.results, adds=asked.minutes != 0)
    except BadInput as error:
        print(error, file=sys.stderr)
        return 2
    sessions = chosen(asked.least_calls, [each for each in asked.sources.split(",") if each])
    if asked.minutes != 0:
        played += _play_all(_jobs(sessions[: asked.sessions or None], asked, played), asked)
    if asked.beside is not None:
        then, others = read_results(asked.beside, adds=False)
        print("\n".join(beside(played, others, then)))
        return 0
    said = "\n".join(tables(played, len(sessions), by))
    print(said)
    if asked.write:
        write_between(README, BEGIN, END, said)
        write_between(
            FRONT_PAGE, "<!-- shipped -->\n", "<!-- end of shipped -->\n", "\n".join(in_short(played))
        )
    return int(not is_near_full(played))


def write_between(page: Path, begin: str, end: str, said: str) -> None:
    """Put lines between two marks of a page, in place of what is there."""
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    page.write_text(f"{before}{begin}{said}\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
