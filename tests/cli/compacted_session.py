"""A conversation with tool calls that was compacted twice by hand, in a real SQLite file."""

from pathlib import Path
from typing import Any

from lowwater import Lowwater
from lowwater.testing.fakes import ScriptedClock

MODEL = "claude-haiku-4-5"
NAME = "refactor-auth"
START = 1_790_000_000.0
TURNS = 16
NAMED = "tests-pass"
"""A checkpoint by hand, between the two compactions."""


def converse(store: Path, name: str = NAME, *, subject: str = "auth") -> None:
    """Have the conversation: turn k reads the file of `subject` and k, which holds a word of its own, `marker` and k."""
    clock = ScriptedClock(START)
    library = Lowwater(model=MODEL, policy="threshold", store=f"sqlite:///{store}", clock=clock)
    session = library.session(name, title="Refactor the auth module")
    for turn in range(1, TURNS + 1):
        clock.advance(30)
        session.append({"role": "user", "content": f"please look at {subject}_{turn}.py"})
        session.append(_call(turn, subject))
        session.append(_result(turn))
        request = session.prepare()
        session.record(_answer(turn, request.tokens))
        clock.advance(5)
        if turn == TURNS // 2:
            assert session.compress() is not None
            session.checkpoint(NAMED)
    assert session.compress() is not None
    library.close()


def _call(turn: int, subject: str) -> dict[str, Any]:
    block = {"type": "tool_use", "id": f"t{turn}", "name": "read", "input": {"path": f"{subject}_{turn}.py"}}
    return {"role": "assistant", "content": [block]}


def _result(turn: int) -> dict[str, Any]:
    text = f"marker{turn} " + "\n".join(
        f"line {line} of part {turn}: value = {line * turn}" for line in range(250)
    )
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{turn}", "content": text}]}


def _answer(turn: int, prompt: int) -> dict[str, Any]:
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": prompt // 2,
        "cache_creation_input_tokens": prompt - prompt // 2 - 10,
        "output_tokens": 40,
    }
    content = [{"type": "text", "text": f"I have read part {turn}."}]
    return {"type": "message", "role": "assistant", "model": MODEL, "content": content, "usage": usage}
