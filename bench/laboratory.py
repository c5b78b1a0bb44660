"""The laboratory's tables from what `lowwater replay --json` printed, one file for each price sheet.

    .venv/bin/python -m bench.laboratory anthropic-r10.json anthropic-r05.json openai-30m.json deepseek.json

Halves are by a hash of the session's id: variants of the rule were compared on the first. The command ends with status 1 if
rent-or-buy misses a bound on courses, where it is restricted to the optimum's actions, or if the whole policy, which is the
real engine's, is not the cheapest with rework, or not the cheapest of those that keep as much in view. Engine and courses
count a little differently: it has to be so in dollars, and as a share of what each comes to under `never`.
"""

import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from statistics import fmean, quantiles

import msgspec
from msgspec import Struct

RENT, NEVER, OPTIMUM = "rent-or-buy", "never", "optimum"
MEAN, P95 = 1.06, 1.12


class Played(Struct, frozen=True):
    """One policy on one session."""

    policy: str
    kind: str
    arm: str
    fits: bool
    cost_usd: float
    cost_with_rework_usd: float
    uses: int = 0
    in_view: int = 0
    one_recall: int | None = None


class Session(Struct, frozen=True):
    """One session; without an optimum it was skipped or does not fit."""

    id: str
    model: str = ""
    calls: int = 0
    optimum_usd: float | None = None
    matters: bool = False
    outcomes: tuple[Played, ...] = ()

    @property
    def half(self) -> str:
        """`tune` or `report`."""
        return "report" if sha256(self.id.encode()).digest()[0] % 2 else "tune"


class Told(Struct, frozen=True):
    """What a file says."""

    sessions: tuple[Session, ...]


class Sum(Struct, kw_only=True):
    """A policy over all sessions."""

    cost: float = 0.0
    rework: float = 0.0
    uses: int = 0
    in_view: int = 0
    one_recall: int = 0
    fits: bool = True

    @property
    def total(self) -> float:
        """With rework."""
        return self.cost + self.rework

    @property
    def kept(self) -> float:
        """The share of later uses that is in view."""
        return self.in_view / max(1, self.uses)


def sums(sessions: Sequence[Session], kind: str) -> dict[str, Sum]:
    """Return what each policy came to in the neutral arm."""
    found: dict[str, Sum] = {}
    for session in sessions:
        for each in session.outcomes:
            if each.kind == kind and each.arm == "neutral":
                summed = found.setdefault(each.policy, Sum())
                summed.fits = summed.fits and each.fits
                summed.cost += each.cost_usd
                summed.rework += each.cost_with_rework_usd - each.cost_usd
                summed.uses, summed.in_view = summed.uses + each.uses, summed.in_view + each.in_view
                summed.one_recall += each.one_recall or 0
    return found


def ratios(sessions: Sequence[Session], kind: str = "course") -> list[float]:
    """Return rent-or-buy ÷ optimum where compaction matters, rework charged to both."""
    return [
        each.cost_with_rework_usd / session.optimum_usd
        for session in sessions
        if session.matters and session.optimum_usd
        for each in session.outcomes
        if (each.policy, each.kind, each.arm) == (RENT, kind, "neutral") and each.fits
    ]


def _told(values: Sequence[float]) -> str:
    return f"{fmean(values):.3f} · {p95(values):.3f}" if values else "–"


def p95(values: Sequence[float]) -> float:
    """Return what 95 % of the values are at most."""
    return quantiles(values, n=20, method="inclusive")[-1] if len(values) > 1 else values[0]


def row(name: str, sessions: Sequence[Session]) -> tuple[str, list[str]]:
    """Return a sheet's row, and what it misses."""
    policies = {policy: each for policy, each in sums(sessions, "course").items() if each.fits}
    ours, others = policies[RENT], {key: each for key, each in policies.items() if key not in (RENT, OPTIMUM)}
    next_to = min(others, key=lambda policy: others[policy].total)
    keeping = {policy: each.cost for policy, each in others.items() if each.kept >= ours.kept}
    rival = min(keeping, key=lambda policy: keeping[policy], default="")
    halves = [_told(ratios([each for each in sessions if each.half == half])) for half in ("tune", "report")]
    every = ratios(sessions)
    cells = [
        f"{name} ({next(each.model for each in sessions if each.model)})",
        str(len(every)),
        _told(every),
        *halves,
        f"${ours.total:,.2f}",
        f"${policies[OPTIMUM].total:,.2f}",
        f"{next_to} ${others[next_to].total:,.2f}",
        f"${others[NEVER].total:,.2f}",
        f"${ours.cost:,.2f}, {ours.kept:.1%}",
        f"{rival} ${keeping[rival]:,.2f}, {others[rival].kept:.1%}" if rival else "none",
    ]
    missed = []
    if fmean(every) > MEAN or p95(every) > P95:
        missed.append(f"{name}: {_told(every)} ÷ optimum")
    return f"| {' | '.join(cells)} |", missed


def beaten(name: str, sessions: Sequence[Session]) -> list[str]:
    """Return which policies are cheaper than the whole of rent-or-buy: with rework, or without and keeping as much."""
    courses, engine = sums(sessions, "course"), sums(sessions, "full")
    played = engine if {RENT, NEVER} <= engine.keys() else courses
    ours, never, on_courses = played[RENT], played[NEVER], courses[NEVER]
    found: list[str] = []
    for policy, each in courses.items():
        if policy in (RENT, OPTIMUM) or not each.fits:
            continue
        if each.total < ours.total * max(1, on_courses.total / never.total):
            found.append(f"{name}: {policy} is cheaper with rework")
        if each.kept >= ours.kept and each.cost < ours.cost * max(1, on_courses.cost / never.cost):
            found.append(f"{name}: {policy} keeps as much and is cheaper")
    return found


def engine_row(name: str, sessions: Sequence[Session]) -> str | None:
    """Return what the real engine came to, if it played."""
    played = sums(sessions, "full")
    if RENT not in played:
        return None
    courses = sums(sessions, "course")
    ours, least = played[RENT], courses[OPTIMUM].total
    left = ours.uses - ours.in_view
    others = {key: each.total for key, each in courses.items() if each.fits and key not in (RENT, OPTIMUM)}
    next_to = min(others, key=lambda policy: others[policy])
    cells = [
        name,
        f"${ours.total:,.2f}",
        f"{ours.total / least:.3f}",
        _told(ratios(sessions, "full")),
        f"${played[NEVER].total:,.2f}" if NEVER in played else "–",
        f"{ours.total / played[NEVER].total:.3f}" if NEVER in played else "–",
        f"{next_to} {others[next_to] / others[NEVER]:.3f}",
        f"{ours.kept:.1%}",
        f"{ours.one_recall / max(1, left):.1%} of {left:,}",
    ]
    return f"| {' | '.join(cells)} |"


def main(paths: Sequence[str]) -> int:
    """Print both tables."""
    rows, engine, missed = [], [], []
    if not paths:
        print(
            "name files with the output of `lowwater replay --json`, one for each price sheet",
            file=sys.stderr,
        )
        return 2
    for path in map(Path, paths):
        try:
            told = msgspec.json.decode(path.read_bytes(), type=Told)
        except (OSError, msgspec.MsgspecError) as error:
            print(f"{path} is nothing that `lowwater replay --json` printed: {error}", file=sys.stderr)
            return 2
        sessions = [each for each in told.sessions if each.optimum_usd is not None]
        line, misses = row(path.stem, sessions)
        rows.append(line)
        missed += [*misses, *beaten(path.stem, sessions)]
        engine += [made for made in [engine_row(path.stem, sessions)] if made is not None]
        calls = sum(each.calls for each in sessions)
        print(f"{path.stem}: {len(sessions)} sessions, {calls:,} calls", file=sys.stderr)
    print(
        "| sheet | matters in | rent-or-buy ÷ optimum, mean · p95 | tune half | report half | with rework | optimum "
        "| next cheapest | never | without rework, in view | cheapest that keeps as much |"
    )
    print("|---" * 11 + "|", *rows, sep="\n")
    if engine:
        print(
            "\n| sheet | with rework | Σ ÷ Σ optimum | mean · p95 | never | ÷ never | next cheapest ÷ its never "
            "| in view | one recall away, of the rest |"
        )
        print("|---" * 9 + "|", *engine, sep="\n")
    print("\n".join(missed) or "no bound is missed", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
