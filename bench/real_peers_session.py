"""A coding session of few and large turns with facts planted in it, such as peers were measured on, from a seed."""

import json
from typing import Any

from msgspec import Struct

from lowwater.adapters.tokenizer import tokenizer_for
from tests.generated.coding.desk import Desk
from tests.generated.coding.services import write_json, write_log
from tests.generated.coding.tools import SYSTEM, TOOLS
from tests.generated.draw import Draw
from tests.generated.memory import Memory
from tests.generated.session import tools_json

_PHASE = 12
"""Calls between two words of the user."""
_CALLS = ((1, 3), (2, 1), (3, 1))
"""Tool calls at once, and how often."""
_KINDS = (("read_file", 2), ("terminal", 1), ("search_files", 1))
_IN_RESULTS, _NAMED_AGAIN = 14, 6
"""Facts planted in tool results, and how many of those the model names again much later."""
_START = 1_778_486_520.0
_LINE = 34
"""Tokens of a line of a log, and of a field's row, or less."""


class Dense(Struct, frozen=True, kw_only=True):
    """The session in OpenAI's chat format, the system prompt apart, with a time for each message."""

    system: str
    tools: bytes
    messages: tuple[dict[str, Any], ...]
    times: tuple[float, ...]
    facts: tuple[str, ...]


def dense_session(*, seed: int = 7, requests: int = 53, tokens: int = 204_000) -> Dense:
    """Return a session of so many requests whose messages have about so many tokens (o200k)."""
    return _Writer(seed, requests, tokens).write()


class _Writer:
    def __init__(self, seed: int, requests: int, tokens: int) -> None:
        self._draw = Draw(f"dense:{seed}")
        self._desk = Desk(self._draw.child("desk"), Memory(self._draw.child("memory")))
        self._requests, self._tokens = requests, tokens
        self._count = tokenizer_for("o200k").count
        self._messages: list[dict[str, Any]] = []
        self._times: list[float] = []
        self._at, self._left = _START, tokens
        self._called = 0
        self._facts: list[str] = []
        self._planted: list[str] = []

    def write(self) -> Dense:
        """Write turn after turn."""
        project = self._desk.project
        ticket, tool = self._fact("BILL"), "httpie-3"
        self._facts.append(tool)
        self._say(
            "user", f"Fix the flaky retries in {project.name}. It is ticket {ticket}; use {tool}, not curl."
        )
        for turn in range(1, self._requests + 1):
            if turn == self._requests or turn % _PHASE == 0:
                self._report(turn)
            else:
                self._act(turn)
        system = SYSTEM.format(
            name=project.name,
            root=project.root,
            branch=self._desk.branch,
            language=project.main.language,
            domain=project.domain,
        )
        return Dense(
            system=system,
            tools=tools_json(TOOLS, "openai_chat"),
            messages=tuple(self._messages),
            times=tuple(self._times),
            facts=tuple(self._facts),
        )

    def _fact(self, kind: str) -> str:
        fact = f"{kind}-{self._draw.between(10_000, 99_999)}"
        self._facts.append(fact)
        return fact

    def _say(self, role: str, content: str | None, **fields: Any) -> None:  # noqa: ANN401  # any field of a message
        self._at += self._draw.within(4, 30)
        self._times.append(self._at)
        self._messages.append({"role": role, "content": content, **fields})
        self._left -= self._count(json.dumps(self._messages[-1]))

    def _report(self, turn: int) -> None:
        self._say("assistant", f"Phase {turn // _PHASE} is done: {self._desk.lexicon.commit()}.")
        if turn < self._requests:
            decision = self._fact("DECISION")
            self._say("user", f"Good. {decision}: keep max_retries at 7 there, and go on.")

    def _act(self, turn: int) -> None:
        self._desk.turn_to()
        count = self._draw.weighted(_CALLS)
        room = self._left // (self._requests - turn)
        calls, outputs = [], []
        for _ in range(count):
            self._called += 1
            kind = self._draw.weighted(_KINDS)
            arguments, output = self._tool(kind, round(room / count * self._draw.within(0.7, 1.3)))
            function = {"name": kind, "arguments": json.dumps(arguments)}
            calls.append({"id": f"call_{self._called}", "type": "function", "function": function})
            outputs.append(output)
        outputs[-1] += self._plant(turn)
        self._say("assistant", self._thought(turn), tool_calls=calls)
        for call, output in zip(calls, outputs, strict=True):
            self._say("tool", output, tool_call_id=call["id"])

    def _plant(self, turn: int) -> str:
        """Return what is planted in this turn's result, if anything: evenly over the first two thirds."""
        due = _IN_RESULTS * turn * 3 // (self._requests * 2)
        if len(self._planted) >= min(due, _IN_RESULTS):
            return ""
        self._planted.append(self._fact("TRACE"))
        return f"\nERROR: the root cause is recorded under {self._planted[-1]}"

    def _thought(self, turn: int) -> str:
        module = self._desk.module
        said = f"Step {turn}: looking at {module.path} because {self._desk.symbol()} is not called."
        late = turn - self._requests + 2 * _NAMED_AGAIN
        if late >= 0 and late % 2 == 0:
            said += f" This looks like {self._planted[late]}."
        return said

    def _tool(self, kind: str, tokens: int) -> tuple[dict[str, str], str]:
        desk, lexicon = self._desk, self._desk.lexicon
        match kind:
            case "terminal":
                log = write_log(lexicon, max(4, tokens // _LINE), self._at, lexicon.message(), [])
                return {"command": f"tail -n 400 logs/{lexicon.noun()}.log"}, self._cut(log, tokens)
            case "search_files":
                rows: list[object] = []
                while sum(map(self._size, rows)) < tokens:
                    rows.append(json.loads(write_json(lexicon, 1, lexicon.noun())))
                return {"pattern": desk.symbol(), "path": desk.project.root}, json.dumps(rows)
            case _:
                path = desk.module.path
                text = desk.workspace.numbered(path)
                while self._size(text) < tokens:
                    text += "\n" + desk.workspace.numbered(desk.turn_to().path)
                return {"path": desk.full(path)}, self._cut(text, tokens)

    def _size(self, value: object) -> int:
        return self._count(value if isinstance(value, str) else json.dumps(value))

    def _cut(self, text: str, tokens: int) -> str:
        """Return the lines of a text that fit."""
        kept: list[str] = []
        for line in text.splitlines():
            tokens -= self._count(line) + 1
            if tokens < 0:
                break
            kept.append(line)
        return "\n".join(kept)
