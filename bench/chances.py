"""How often recorded tool results are used again, by tool, length and age: what `core/mechanisms/reuse.py` is fitted to.

    .venv/bin/python -m bench.chances

A result counts at an age if the session went on for longer; it is used again if a later answer names something that
stands in it alone (see `lowwater.lab.references`). Beside each share is the one that `chance_of_use` gives for the mean length.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence

from msgspec import Struct

from bench.transcripts import ABSENT, CANONICAL, sessions
from lowwater.core.mechanisms.reuse import chance_of_use
from lowwater.core.messages import Message, ToolCall
from lowwater.core.tools import ToolClass, class_of
from lowwater.lab.references.uses import uses_of

AGES = (5, 20, 80)
LENGTHS = (600, 2_000, 6_000, 20_000, 10**9)
FEW = 30
"""A cell with fewer results says nothing."""


class Output(Struct, frozen=True, kw_only=True):
    """What a call gave, and which of the session's calls of the model made it."""

    call: ToolCall
    turn: int
    text: str


class Cell(Struct, kw_only=True):
    """Results of one kind, length and age: how many, how many were used later, their characters in all."""

    results: int = 0
    used: int = 0
    characters: int = 0


Cells = dict[tuple[ToolClass, int, int], Cell]


def outputs(messages: Sequence[Message]) -> Iterator[Output]:
    """Yield the results in a session whose call is there too."""
    made: dict[str, tuple[ToolCall, int]] = {}
    turn = 0
    for message in messages:
        turn += message.role == "assistant"
        made |= {call.id: (call, turn) for call in message.calls}
        for result in message.results:
            if result.call_id in made:
                call, when = made[result.call_id]
                yield Output(call=call, turn=when, text=result.text)


def count() -> Cells:
    """Count the results of all recorded sessions, each at every age it reached."""
    cells: Cells = defaultdict(Cell)
    for session in sessions():
        messages = [recorded.message for recorded in session.messages]
        last: dict[tuple[int, str], int] = defaultdict(int)
        for use in uses_of(messages):
            place = (use.origin.turn, use.origin.text)
            last[place] = max(last[place], use.later)
        turns = sum(message.role == "assistant" for message in messages)
        for output in outputs(messages):
            length = next(at for at, most in enumerate(LENGTHS) if len(output.text) < most)
            for age in AGES:
                if turns - output.turn > age:
                    cell = cells[class_of(output.call), length, age]
                    cell.results += 1
                    cell.used += last[output.turn, output.text] > age
                    cell.characters += len(output.text)
    return cells


def shown(kind: ToolClass, age: int, cell: Cell) -> str:
    """Return the share that was used and the one that is reckoned with, or a dash for too few results."""
    if cell.results < FEW:
        return "–"
    reckoned = chance_of_use(kind, cell.characters // cell.results, age)
    return f"{cell.used / cell.results:.1%} ({reckoned:.1%})"


def main() -> int:
    """Print a table of shares by tool, age and length."""
    if not CANONICAL.exists():
        print(ABSENT)
        return 0
    cells = count()
    at_first = sum(cell.results for (_, _, age), cell in cells.items() if age == AGES[0])
    print(f"{at_first:,} results with more than {AGES[0]} calls after them\n")
    print(
        "tool     calls later  "
        + "".join(f"{'< ' + format(most, ','):>18}" for most in LENGTHS[:-1])
        + f"{'longer':>18}"
    )
    for kind in sorted({kind for kind, _, _ in cells}):
        for age in AGES:
            row = [shown(kind, age, cells.get((kind, length, age), Cell())) for length in range(len(LENGTHS))]
            print(f"{kind:8} {age:>11}  " + "".join(f"{cell:>18}" for cell in row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
