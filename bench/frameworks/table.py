"""The comparison as Markdown."""

from collections.abc import Sequence

from bench.frameworks.running import Outcome
from bench.frameworks.task import days_of

_OVERFLOWS = frozenset({"prompt_fits", "output_fits", "input_fits"})
_NAMES = {"lowwater": "Lowwater", "own": "its own", "none": "none"}


def table(outcomes: Sequence[Outcome], *, turns: int) -> list[str]:
    """Return all outcomes, those of one framework below each other."""
    lines = [
        "| framework | compaction | turns | refused | bill | per answered turn | of the input read from the cache | prefix moved | summary calls "
        "| largest prompt | facts in view at the end | in its history |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for outcome in outcomes:
        bill, usage = outcome.bill, outcome.bill.usage
        cost = "?" if bill.cost is None else f"${bill.cost / 1e9:.4f}"
        each = "?" if bill.cost is None or not outcome.turns else f"${bill.cost / outcome.turns / 1e9:.5f}"
        read = f"{usage.cache_read / usage.prompt:.0%}" if usage.prompt else "–"
        lines.append(
            f"| {outcome.framework} {outcome.told.version} | {_compaction(outcome)} | {_turns(outcome, turns)} | {outcome.refusals} | {cost} | {each} "
            f"| {read} | {outcome.moved} | {bill.summaries} | {bill.largest:,} | {outcome.in_view} of {outcome.facts} "
            f"| {'–' if outcome.told.kept is None else outcome.told.kept} |"
        )
    return lines


def session_words(turns: int, window: int) -> str:
    """Say what was played."""
    calls = [days_of(step, turn) for step in range(1, turns + 1) for turn in (1, 2)]
    results, asked = sum(len(days) for days in calls), sum(bool(days) for days in calls) + turns
    return (
        f"{turns} turns, {asked} calls of the model, {results} tool results; a window of {window:,} tokens."
    )


def stopped(outcomes: Sequence[Outcome]) -> list[str]:
    """Say why sessions ended early."""
    return [
        f"{outcome.framework}, {_NAMES[outcome.compaction]}: {outcome.told.error}"
        for outcome in outcomes
        if outcome.told.error
    ]


def _compaction(outcome: Outcome) -> str:
    name = _NAMES[outcome.compaction]
    return f"{name}: {outcome.told.how}" if outcome.compaction == "own" and outcome.told.how else name


def _turns(outcome: Outcome, turns: int) -> str:
    if outcome.turns == turns:
        return str(turns)
    why = "overflow" if outcome.refused in _OVERFLOWS else outcome.refused or "ended"
    return f"{outcome.turns}, {why} at turn {outcome.turns + 1}"
