"""What one open session grows by over thousands of turns, and what many calls in one message cost.

    .venv/bin/python -m bench.growth                  # 20,000 turns, some 20 minutes
    .venv/bin/python -m bench.growth turns 2000       # fewer
    .venv/bin/python -m bench.growth lists 2000       # the client sends its whole list each turn
    .venv/bin/python -m bench.growth calls 20000      # calls in one message

A turn is what an agent does: a call of a tool, its result, the next request; now and then a user speaks. The session stays open in
one process all the time. Memory is what the process has resident, writes are what it gave the kernel to write.
"""

import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

from msgspec import Struct

from lowwater import Lowwater
from lowwater.settings import OutputSettings, Settings

MODEL = "claude-haiku-4-5"
QUIET = Settings(output=OutputSettings(quiet=True))
TURNS, LISTS, CALLS, WINDOW = 20_000, 2_000, 20_000, 32_000
_WORDS = "the test of a payment service fails where its file was changed by mistake and nobody looked at line".split()


class Figures(Struct, frozen=True, kw_only=True):
    """Where a session is after so many turns."""

    turns: int
    resident: int
    written: int
    seconds: float


def main(arguments: list[str]) -> None:
    """Measure what the arguments name."""
    what = arguments[0] if arguments else "all"
    count = int(arguments[1]) if len(arguments) > 1 else 0
    if what in ("all", "turns"):
        _tell_growth(count or TURNS)
    if what == "lists":
        _tell_growth(count or LISTS, as_lists=True)
    if what in ("all", "calls"):
        _tell_calls(count or CALLS)


def _tell_growth(turns: int, *, as_lists: bool = False) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "growth.db"
        figures = list(_play(path, turns, as_lists=as_lists))
        print(f"{'turns':>8} {'resident MB':>12} {'written KB a turn':>18} {'ms a turn':>10}")
        for before, after in pairwise(figures):
            count = after.turns - before.turns
            written = (after.written - before.written) / count / 1e3
            took = (after.seconds - before.seconds) / count * 1e3
            print(f"{after.turns:>8,} {after.resident / 1e6:>12,.0f} {written:>18,.0f} {took:>10,.1f}")
        print(f"file {path.stat().st_size / 1e6:,.1f} MB")
        for table, size, rows in _sizes(path):
            print(f"  {table:<20} {size / 1e6:>8,.1f} MB in {rows:,} rows")


def _play(path: Path, turns: int, *, as_lists: bool = False) -> Iterator[Figures]:
    lowwater = Lowwater(model=MODEL, store=f"sqlite:///{path}?sync=normal", settings=QUIET)
    session = lowwater.session("grows")
    # A small window: the view stays at some hundred messages, and what grows is the history.
    session.learn_context_length(WINDOW)
    chance = random.Random(1)
    begun = time.perf_counter()
    sent: list[dict[str, Any]] = [{"role": "user", "content": "Make the tests pass."}]
    if not as_lists:
        session.append(sent)
    for turn in range(turns + 1):
        if turn % max(1, turns // 10) == 0:
            yield Figures(
                turns=turn, resident=_resident(), written=_written(), seconds=time.perf_counter() - begun
            )
        answer, result = tool_call(turn, chance), tool_result(turn, chance)
        session.prepare(sent if as_lists else None)
        session.record(answer)
        if as_lists:
            sent += [{"role": "assistant", "content": answer["content"]}, result]
        else:
            session.append(result)
    lowwater.close()


def tool_call(turn: int, chance: random.Random) -> dict[str, Any]:
    """Return the answer of a model that says something and calls a tool."""
    use = {
        "type": "tool_use",
        "id": f"call_{turn}",
        "name": "bash",
        "input": {"command": f"pytest -k t{turn}"},
    }
    text = {"type": "text", "text": " ".join(chance.choices(_WORDS, k=30))}
    return {
        "role": "assistant",
        "content": [text, use],
        "stop_reason": "tool_use",
        "usage": None,
    }


def tool_result(turn: int, chance: random.Random) -> dict[str, Any]:
    """Return what that tool returned: a few lines, or many."""
    said = "\n".join(" ".join(chance.choices(_WORDS, k=9)) for _ in range(chance.choice([3, 10, 40])))
    return {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": f"call_{turn}", "content": said}],
    }


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def _written() -> int:
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("wchar")).split()[1])


def _sizes(path: Path) -> list[tuple[str, int, int]]:
    """Return how many bytes of bodies are in each table, compactions apart from other entries."""
    asked = {
        "messages": "SELECT sum(length(body)), count(*) FROM contents",
        "compactions": "SELECT sum(length(body)), count(*) FROM entries WHERE kind = 'compacted'",
        "other entries": "SELECT sum(length(body)), count(*) FROM entries WHERE kind <> 'compacted'",
        "turn records": "SELECT sum(length(body)), count(*) FROM turns",
        "events": "SELECT sum(length(body)), count(*) FROM compaction_events",
        "state": "SELECT sum(length(body)), count(*) FROM carried",
        "search": "SELECT sum(length(block)), count(*) FROM search_data",
        "search text": "SELECT sum(length(c0)), count(*) FROM search_content",
    }
    with closing(sqlite3.connect(path)) as connection:
        return [(name, *connection.execute(query).fetchone()) for name, query in asked.items()]


def _tell_calls(most: int) -> None:
    for count in (most // 4, most // 2, most):
        took = _seconds_for_calls(count)
        print(f"{count:>8,} calls in one message: {took:,.1f} s")


def _seconds_for_calls(count: int) -> float:
    """Return how long a session takes for a message with so many calls, their results, and the request after them."""
    session = Lowwater(model=MODEL, store="memory:", settings=QUIET).session("calls")
    ids = [f"call_{number}" for number in range(count)]
    calls = [{"type": "tool_use", "id": id, "name": "bash", "input": {"n": n}} for n, id in enumerate(ids)]
    results = [
        {"type": "tool_result", "tool_use_id": id, "content": f"{id} " + "ok then " * 60} for id in ids
    ]
    begun = time.perf_counter()
    session.append({"role": "user", "content": "Do it all."})
    session.prepare()
    session.record(
        {
            "role": "assistant",
            "content": calls,
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 9, "output_tokens": 9},
        }
    )
    session.append({"role": "user", "content": results})
    session.prepare().as_anthropic()
    return time.perf_counter() - begun


if __name__ == "__main__":
    main(sys.argv[1:])
