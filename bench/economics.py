"""What each policy costs beside the coarse optimum, and beside the lower bound, on generated and on recorded sessions.

    .venv/bin/python -m bench.economics            # all of it
    .venv/bin/python -m bench.economics --sample   # every tenth session
    .venv/bin/python -m bench.economics --tail     # recorded sessions: cost with compaction ÷ without, and its tail

Every policy is restricted to the actions of the coarse optimum (nothing, a prune, a summary), and rework is charged to all. The
lower bound holds for all actions of the engine (docs/economics.md).
The command ends with status 1 if rent-or-buy misses its bounds where compaction matters.
"""

import gzip
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime
from itertools import product
from pathlib import Path
from statistics import fmean, quantiles

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bench.transcripts import CANONICAL
from lowwater.adapters.tokenizer import tokenizer_for
from lowwater.core.formats.openai_chat import decode_message
from lowwater.core.mechanisms.placeholder import placeholder
from lowwater.lab.bound import lower_bound
from lowwater.lab.course import Course, CourseState, CourseUse, Sheet, Timed, course_of
from lowwater.lab.optimum import optimum
from lowwater.lab.references.uses import find_words, uses_of
from lowwater.lab.schedules import POLICIES, CourseOffer, RentOrBuy, Tally, run
from lowwater.protocols import Tokenizer
from tests.generated.courses import SESSIONS, TAIL, generate, is_for_tuning

BASE = 1_000_000
"""Nano-dollars per 1,000 input tokens; ratios do not depend on it."""
WINDOWS = (200_000, 1_000_000)
MATTERS = 1.10
MEAN, P95 = 1.06, 1.12
RENT = "rent-or-buy"
_FAR, _DEARER = 1.05, 1.005
GENERATED, RECORDED, EXPECTED = "generated", "recorded", "recorded, expected uses"


def _sheet(name: str, *, r: float, w: float, rho: float, ttl: float) -> Sheet:
    return Sheet(
        name=name,
        input=BASE,
        read=round(r * BASE),
        write=round(w * BASE),
        output=round(rho * BASE),
        other_input=BASE // 5,
        other_output=BASE,
        ttl=ttl,
        window=WINDOWS[0],
    )


SHEETS = (
    _sheet("r10", r=0.1, w=1.25, rho=5, ttl=300),
    _sheet("r05", r=0.05, w=1.25, rho=5, ttl=300),
    _sheet("r025", r=0.025, w=1.25, rho=5, ttl=300),
    _sheet("r02", r=0.02, w=1, rho=4, ttl=7_200),
)


class Job(Struct, frozen=True, kw_only=True):
    """A session to measure: a seed of a sheet, or the file of a recording."""

    sheet: Sheet | None = None
    seed: int = 0
    path: str = ""


class Row(Struct, frozen=True, kw_only=True):
    """One session under one sheet and window."""

    kind: str
    sheet: str
    window: int
    is_tune: bool
    turns: int
    optimum: int
    bound: int
    costs: dict[str, int | None]

    @property
    def matters(self) -> bool:
        """Whether compaction saves more than a tenth."""
        never = self.costs["never"]
        return never is not None and never > MATTERS * self.optimum

    def ratio(self, policy: str) -> float | None:
        """Return cost ÷ optimum."""
        cost = self.costs[policy]
        return None if cost is None else cost / self.optimum


class _Header(Struct):
    id: str
    first_request_input_tokens: int | None = None


class _Line(Struct):
    role: str
    kind: str | None = None
    ts: str | None = None


def measure(job: Job) -> list[Row]:
    """Return a session's rows: a recording is measured under every sheet, with what was used and with what is expected."""
    if job.sheet is not None:
        courses = {GENERATED: generate(job.sheet.name, job.seed)}
    else:
        course = recorded(Path(job.path))
        if course is None:
            return []
        courses = {RECORDED: course, EXPECTED: replace(course, uses=None)}
    sheets = SHEETS if job.sheet is None else (job.sheet,)
    rows = (
        _row(
            kind,
            course,
            replace(sheet, window=window),
            is_tune=job.sheet is not None and is_for_tuning(job.seed),
        )
        for (kind, course), sheet, window in product(courses.items(), sheets, WINDOWS)
    )
    return [row for row in rows if row is not None]


def _row(kind: str, course: Course, sheet: Sheet, *, is_tune: bool) -> Row | None:
    least, bound = optimum(course, sheet).cost, lower_bound(course, sheet)
    if least is None:
        return None
    assert bound is not None, f"{course.name} on {sheet.name}: no bound where a schedule fits"
    assert bound <= least, f"{course.name} on {sheet.name}: the bound is above the optimum"
    tally = Tally(course, sheet)
    return Row(
        kind=kind,
        sheet=sheet.name,
        window=sheet.window,
        is_tune=is_tune,
        turns=len(course.turns),
        optimum=least,
        bound=bound,
        costs={name: run(tally, policy(tally)).cost for name, policy in POLICIES.items()},
    )


def recorded(path: Path) -> Course | None:
    """Return the course of a recording as it would be without its own compactions; None without times."""
    first, *lines = gzip.decompress(path.read_bytes()).splitlines()
    header = msgspec.json.decode(first, type=_Header)
    messages: list[Timed] = []
    at = 0.0
    for index, raw in enumerate(lines):
        line = msgspec.json.decode(raw, type=_Line)
        if line.ts is None and line.role == "assistant":
            return None
        at = datetime.fromisoformat(line.ts).timestamp() if line.ts else at
        if line.kind != "compact_summary":
            messages.append(Timed(message=decode_message(raw, index), at=at))
    tokenizer = tokenizer_for("o200k")
    course = course_of(
        f"{path.parent.name}/{header.id}",
        messages,
        first_prompt=header.first_request_input_tokens or 0,
        tail=TAIL,
        uses=tuple(_uses(messages, tokenizer)),
        tokenizer=tokenizer,
    )
    return course if course.turns else None


def _uses(messages: Sequence[Timed], tokenizer: Tokenizer) -> Iterator[CourseUse]:
    """Yield one use for each result that an answer needs; it is in the digest if all that is needed is."""
    needed: dict[tuple[int, int, str], list[str]] = {}
    results = {}
    for use in uses_of([timed.message for timed in messages]):
        key = (use.turn - 1, use.origin.turn, use.origin.text)
        needed.setdefault(key, []).append(use.text)
        results[use.origin.text] = use.origin
    shown = {
        text: placeholder(text, number=100, call=result.call, offers_recall=True, tokenizer=tokenizer) or text
        for text, result in results.items()
    }
    for (at, of, text), names in needed.items():
        if of < at:
            yield CourseUse(
                at=at,
                of=of,
                tokens=tokenizer.count(text),
                in_digest=all(find_words(name, shown[text]) >= 0 for name in names),
            )


def table(rows: Sequence[Row]) -> str:
    """Return cost ÷ coarse optimum of every policy: mean and p95 where compaction matters, and of the sums over all."""
    groups = [(sheet.name, window) for window in WINDOWS for sheet in SHEETS]
    by_group = {group: [row for row in rows if (row.sheet, row.window) == group] for group in groups}
    heads = [f"{name} {window // 1000:,}K" for name, window in groups]
    lines = [f"| policy | {' | '.join(heads)} |", "|---" * (len(groups) + 1) + "|"]
    for policy in POLICIES:
        cells = [_cell(by_group[group], policy) for group in groups]
        name = f"**{policy}**" if policy == RENT else policy
        lines.append(f"| {name} | {' | '.join(cells)} |")
    for name, of in (("**rent-or-buy** ÷ bound", RENT), ("coarse optimum ÷ bound", "")):
        cells = [_over_bound(by_group[group], of) for group in groups]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    counts = [f"{sum(row.matters for row in by_group[group])} of {len(by_group[group])}" for group in groups]
    lines.append(f"| sessions where it matters | {' | '.join(counts)} |")
    return "\n".join(lines)


def _cell(rows: Sequence[Row], policy: str) -> str:
    ratios = _ratios(rows, policy)
    fitting = [(cost, row.optimum) for row in rows if (cost := row.costs[policy]) is not None]
    total = sum(cost for cost, _ in fitting) / max(1, sum(least for _, least in fitting))
    return f"{fmean(ratios):.3f} · {p95(ratios):.3f} · {total:.3f}" if ratios else f"– · – · {total:.3f}"


def _over_bound(rows: Sequence[Row], policy: str) -> str:
    """Return the cost of a policy, or of the coarse optimum, ÷ the lower bound: mean and p95 where compaction matters, and of the sums."""
    costs = [(row.costs[policy] if policy else row.optimum, row) for row in rows]
    found = [(cost, row) for cost, row in costs if cost is not None]
    ratios = [cost / row.bound for cost, row in found if row.matters]
    total = sum(cost for cost, _ in found) / max(1, sum(row.bound for _, row in found))
    return f"{fmean(ratios):.3f} · {p95(ratios):.3f} · {total:.3f}" if ratios else f"– · – · {total:.3f}"


def _ratios(rows: Sequence[Row], policy: str) -> list[float]:
    return [ratio for row in rows if row.matters and (ratio := row.ratio(policy)) is not None]


def p95(values: Sequence[float]) -> float:
    """Return what 95 % of the values are at most, interpolated."""
    return quantiles(values, n=20, method="inclusive")[-1] if len(values) > 1 else values[0]


def misses(rows: Sequence[Row]) -> list[str]:
    """Return the groups in which rent-or-buy is above a bound."""
    found = []
    for kind, sheet, window in product((GENERATED, RECORDED, EXPECTED), SHEETS, WINDOWS):
        group = [row for row in rows if (row.kind, row.sheet, row.window) == (kind, sheet.name, window)]
        ratios = _ratios(group, RENT)
        if ratios and (fmean(ratios) > MEAN or p95(ratios) > P95):
            found.append(f"{kind} {sheet.name} {window}: {fmean(ratios):.3f}, {p95(ratios):.3f}")
    return found


class _Unbounded(RentOrBuy):
    """Rent-or-buy that does not ask whether a session is old enough to pay a purchase back."""

    def offers(self, turn: int, state: CourseState) -> Iterator[CourseOffer]:
        """Yield the offers as if it were."""
        for offer in super().offers(turn, state):
            yield replace(offer, wait=0)


class Tailed(Struct, frozen=True, kw_only=True):
    """One recorded session under one sheet and window: what rent-or-buy costs, beside never."""

    source: str
    sheet: str
    window: int
    never: int
    unbounded: int
    bounded: int


def measure_tail(job: Job) -> list[Tailed]:
    """Return a recording's costs under every sheet and window; none where it does not fit."""
    path = Path(job.path)
    course = recorded(path)
    if course is None:
        return []
    rows: list[Tailed] = []
    for sheet, window in product(SHEETS, WINDOWS):
        tally = Tally(course, replace(sheet, window=window))
        least, loose, ours = (
            run(tally, policy(tally)).cost for policy in (POLICIES["never"], _Unbounded, RentOrBuy)
        )
        if least and loose and ours:
            rows.append(
                Tailed(
                    source=path.parent.name,
                    sheet=sheet.name,
                    window=window,
                    never=least,
                    unbounded=loose,
                    bounded=ours,
                )
            )
    return rows


def tail_table(rows: Sequence[Tailed]) -> str:
    """Return a table of cost with compaction ÷ without: of the sums, and of sessions at p95, p99 and most."""
    lines = [
        "| prices, window | rule | sum | p95 | p99 | most | above 1.05 |",
        "|---|---|---|---|---|---|---|",
    ]
    for sheet, window in product(SHEETS, WINDOWS):
        group = [row for row in rows if (row.sheet, row.window) == (sheet.name, window)]
        for rule in ("unbounded", "bounded") if group else ():
            costs = [getattr(row, rule) for row in group]
            ratios = [cost / row.never for cost, row in zip(costs, group, strict=True)]
            cuts = quantiles(ratios * (2 if len(ratios) == 1 else 1), n=100, method="inclusive")
            total = sum(costs) / sum(row.never for row in group)
            lines.append(
                f"| {sheet.name} {window // 1000:,}K | {rule} | {total:.4f} | {cuts[94]:.3f} | {cuts[98]:.3f} "
                f"| {max(ratios):.3f} | {sum(ratio > _FAR for ratio in ratios)} of {len(ratios)} |"
            )
    return "\n".join(lines)


def tail(step: int) -> int:
    """Print the tables over all sources and for each; fail if the bound makes the sum of any group dearer by 0.5 %."""
    todo = [Job(path=str(path)) for path in sorted(CANONICAL.glob("*/*.jsonl.gz"))[::step]]
    with ProcessPoolExecutor(2) as workers:
        rows = [row for some in workers.map(measure_tail, todo, chunksize=4) for row in some]
    print(tail_table(rows))
    for source in sorted({row.source for row in rows}):
        print(f"\n{source}:\n\n{tail_table([row for row in rows if row.source == source])}")
    dearer = []
    for sheet, window in product(SHEETS, WINDOWS):
        group = [row for row in rows if (row.sheet, row.window) == (sheet.name, window)]
        if sum(row.bounded for row in group) > _DEARER * sum(row.unbounded for row in group):
            dearer.append(f"{sheet.name} {window}")
    print("\n".join(dearer) or "the bound costs less than 0.5 % everywhere", file=sys.stderr)
    return 1 if dearer else 0


def jobs(step: int) -> list[Job]:
    """Return the sessions to measure, every `step`-th of them, the long ones spread evenly."""
    drawn = [Job(sheet=sheet, seed=seed) for seed in range(0, SESSIONS, step) for sheet in SHEETS]
    return drawn + [Job(path=str(path)) for path in sorted(CANONICAL.glob("*/*.jsonl.gz"))[::step]]


def main(arguments: Sequence[str]) -> int:
    """Print the tables; fail if a bound is missed."""
    step = 10 if "--sample" in arguments else 1
    if "--tail" in arguments:
        return tail(step)
    todo = jobs(step)
    rows: list[Row] = []
    with ProcessPoolExecutor(2) as workers:
        for done, some in enumerate(workers.map(measure, todo, chunksize=4), 1):
            rows += some
            if done % 100 == 0:
                print(f"{done} of {len(todo)} sessions", file=sys.stderr)
    generated = [row for row in rows if row.kind == GENERATED]
    parts = {
        "Generated, all": generated,
        "Generated, not tuned on": [row for row in generated if not row.is_tune],
        "Recorded, with the uses that were recorded": [row for row in rows if row.kind == RECORDED],
        "Recorded, with the uses to be expected": [row for row in rows if row.kind == EXPECTED],
    }
    for title, part in parts.items():
        if part:
            print(f"**{title}.**\n\n{table(part)}\n")
    turns = [row.turns for row in rows]
    print(f"{len(todo):,} sessions, {min(turns)} to {max(turns)} calls", file=sys.stderr)
    missed = misses(rows)
    print(
        "\n".join(missed) or f"{RENT} is within {MEAN} on average and {P95} at p95 everywhere",
        file=sys.stderr,
    )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
