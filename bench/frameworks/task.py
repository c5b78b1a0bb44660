"""The session that every framework plays: what the user asks, which tool there is, what it puts out.

Standard library only: workers import it in environments of their own.
"""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TOOL = "read_log"
TOOL_WORDS = "Return the log of a service on a day, oldest line first."
SYSTEM = "\n".join(
    (
        "You look after the services of a small company. You are asked about one service at a time.",
        f"Call {TOOL} for each log that you need, several at once where they do not depend on each other.",
        *(
            f"Rule {number}: {what} is reported with its service, its day, its first line and what came before it."
            for number, what in enumerate(
                (
                    "a refused connection",
                    "a slow query",
                    "a full disk",
                    "a lost message",
                    "an expired certificate",
                    "a restarted process",
                    "a failed job",
                    "a wrong answer",
                ),
                start=1,
            )
        ),
        "Never guess: what a log does not say is not known. Answer in one sentence.",
    )
)
_SERVICES = "billing search mail login export import queue report cache proxy".split()
_PLACES = "accept index fetch write flush route verify retry".split()
_EVENTS = (
    "request from the load balancer accepted, {} items, handled by worker {}",
    "slow answer from the database replica, {} ms for a batch of {}",
    "the queue has {} entries waiting, the limit is {}",
    "connection pool at {} of {}, nothing to do",
    "retried the upload {} times, the last answer came after {} s",
    "cache refreshed, {} entries kept and {} dropped",
    "lease renewed for {} minutes by node {}",
    "checked {} certificates, {} of them expire this month",
)
_LINES = 84


def question(step: int) -> str:
    """Return what the user asks in a turn."""
    return f"Step {step}: what went wrong with {service_of(step)}?"


def service_of(step: int) -> str:
    """Return the service that a turn is about."""
    return _SERVICES[step % len(_SERVICES)]


def days_of(step: int, turn: int) -> tuple[int, ...]:
    """Return the days whose logs the model reads in one of its answers in a turn, counted from 1; none if it has what it needs."""
    if turn > (2 if step % 5 == 0 else 1):
        return ()
    first = 10 * step + 3 * turn
    return (first, first + 1) if step % 3 == 0 else (first,)


def log_of(service: str, day: int) -> str:
    """Return what the tool puts out: always the same for the same call, some 2,000 tokens, one fact in the middle."""
    chance = random.Random(f"{service} {day}")
    lines = [
        f"{at // 4:02}:{at % 4 * 15:02} {chance.choice(('INFO', 'INFO', 'WARN'))} {service}.{chance.choice(_PLACES)}: "
        + chance.choice(_EVENTS).format(chance.randrange(1, 40), chance.randrange(1, 40))
        for at in range(_LINES)
    ]
    lines.insert(
        _LINES // 2,
        f"{_LINES // 8:02}:{_LINES // 2 % 4 * 15:02} ERROR {service}: {fact_of(service, day)} needs a person",
    )
    return f"log of {service}, day {day}\n" + "\n".join(lines)


def fact_of(service: str, day: int) -> str:
    """Return what somebody may need later of a log: the number of an incident."""
    return f"incident INC-{random.Random(f'fact {service} {day}').getrandbits(32):08x}"


def facts_until(step: int) -> list[str]:
    """Return all facts that the model has read by the end of a turn."""
    return [
        fact_of(service_of(each), day)
        for each in range(1, step + 1)
        for turn in (1, 2)
        for day in days_of(each, turn)
    ]


# The tasks, for workers


@dataclass(frozen=True, kw_only=True)
class Tool:
    """One tool of a task, as an API knows it, and what it does."""

    name: str
    words: str
    schema: dict[str, Any]
    call: Callable[[dict[str, Any]], str]


@dataclass(frozen=True, kw_only=True)
class Task:
    """What a session is about: what the user asks, turn by turn, and which tools there are."""

    system: str
    questions: tuple[str, ...]
    tools: tuple[Tool, ...]

    def facts_until(self, step: int) -> list[str]:
        """Return the facts that were read by the end of a turn; a recorded session has none that are known."""
        return facts_until(step) if self.tools == (LOGS,) else []


LOGS = Tool(
    name=TOOL,
    words=TOOL_WORDS,
    schema={
        "type": "object",
        "properties": {"service": {"type": "string"}, "day": {"type": "integer"}},
        "required": ["service", "day"],
    },
    call=lambda told: log_of(told["service"], int(told["day"])),
)
RESULT = "result_number"
"""The argument by which a recorded call says which of the recorded results it has."""


def task_of(turns: int, recorded: str = "") -> Task:
    """Return the generated task, or the recorded one that was written to this file."""
    if not recorded:
        return Task(system=SYSTEM, questions=tuple(map(question, range(1, turns + 1))), tools=(LOGS,))
    told = json.loads(Path(recorded).read_text())
    results: list[str] = told["results"]
    schema = {"type": "object", "properties": {RESULT: {"type": "integer"}}, "additionalProperties": True}

    def result(arguments: dict[str, Any]) -> str:
        return results[int(arguments[RESULT])]

    tools = [Tool(name=name, words=f"The tool {name}.", schema=schema, call=result) for name in told["tools"]]
    return Task(system=told["system"], questions=tuple(told["questions"]), tools=(LOGS, *tools))
