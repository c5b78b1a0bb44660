"""Sessions drawn at random from declared parameters, the same for the same seed everywhere.

The parameters and seeds were written down before any policy was tuned and are not to be changed after it.
"""

from collections.abc import Sequence
from math import exp, log
from random import Random

from lowwater.core.tools import ToolClass
from lowwater.lab.course import Course, CourseTurn, elided_size, uses_to_expect

SESSIONS = 200
"""Seeds 0 to 199 of each price sheet; those divisible by 3 are for tuning."""
TURNS = (20, 600)
"""Calls of a session, even on a logarithmic scale."""
TAIL = 20_000
FIXED = (22_000, 0.4, 4_000, 60_000)
"""Tools and system: median, spread (of the logarithm), least, most."""
OUTPUT = (350, 0.9, 20, 8_000)
FRAMING = 20
SAID = (150, 1.0, 5, 4_000)
"""What a user says, on one call in 3 to 20."""
SAYS = (0.05, 0.33)
CALLS_TOOLS = (0.5, 0.98)
"""The share of calls that bring tool results."""
RESULT_MEDIAN = (300, 2_500)
"""A session's own median of results, even on a logarithmic scale."""
RESULT = (1.1, 30, 25_000)
TOOLS: dict[ToolClass, float] = {"read": 0.33, "shell": 0.35, "search": 0.15, "write": 0.12, "agent": 0.05}
WRITTEN = 0.1
"""Acknowledgements of writes are this small beside other results."""
CHARACTERS = 3.6
"""Of one token."""
GAP = (12, 1.0, 1, 280)
PAUSES = (0.0, 0.02, 0.06)
"""A session's share of calls that follow a pause: one of these."""
PAUSE = (1_500, 1.2, 60, 200_000)


def generate(sheet: str, seed: int) -> Course:
    """Return the session of a price sheet's name and a seed."""
    draw = Random(f"lowwater course {sheet} {seed}")
    count = round(_between(draw, TURNS))
    says = draw.uniform(*SAYS)
    calls_tools = draw.uniform(*CALLS_TOOLS)
    median = _between(draw, RESULT_MEDIAN)
    pauses = draw.choice(PAUSES)
    fixed = _size(draw, *FIXED)
    turns: list[CourseTurn] = []
    answer = 0
    for index in range(count):
        turn = _turn(draw, answer, says=says if index else 1.0, calls_tools=calls_tools, median=median)
        paused = draw.random() < pauses
        gap = _size(draw, *(PAUSE if paused else GAP))
        output = _size(draw, *OUTPUT)
        turns.append(
            CourseTurn(
                text=turn.text,
                results=turn.results if index else 0,
                elided=turn.elided if index else 0,
                chance=turn.chance if index else 0,
                output=output,
                gap=float(gap),
            )
        )
        answer = output + FRAMING
    return Course(name=f"{sheet}/{seed}", fixed=fixed, tail=TAIL, turns=tuple(turns))


def is_for_tuning(seed: int) -> bool:
    """Say whether policies may be tuned on this seed."""
    return seed % 3 == 0


def _turn(draw: Random, answer: int, *, says: float, calls_tools: float, median: float) -> CourseTurn:
    text = answer + (FRAMING + _size(draw, *SAID) if draw.random() < says else 0)
    tool = draw.choices(list(TOOLS), list(TOOLS.values()))[0]
    spread, least, most = RESULT
    size = _size(draw, median * (WRITTEN if tool == "write" else 1), spread, least, most)
    if draw.random() >= calls_tools:
        return CourseTurn(text=max(text, FRAMING))
    chance = uses_to_expect(tool, round(size * CHARACTERS))
    return CourseTurn(text=text, results=size, elided=elided_size(size), chance=chance)


def _size(draw: Random, median: float, spread: float, least: int, most: int) -> int:
    return min(most, max(least, round(median * exp(draw.gauss(0, spread)))))


def _between(draw: Random, ends: Sequence[float]) -> float:
    low, high = ends
    return exp(draw.uniform(log(low), log(high)))
