"""The scripted model: reads logs as the task says, and answers from the last message of a request alone."""

import re
from collections.abc import Iterator
from typing import Any

from bench.frameworks.task import TOOL, days_of, service_of
from lowwater.testing.provider import Answer, Call, CallTools, Say, Seen

SUMMARY = "\n".join(
    (
        "## Goal\nFind out what went wrong with each service that the user asks about.",
        "## Done\nThe logs of several services were read, one or two days each, and each question was answered.",
        "## Findings\n"
        + "\n".join(
            f"- {service_of(step)}: connections were refused and retried, leases expired, batches were dropped; a person is needed."
            for step in range(10)
        ),
        "## Next\nAnswer the next question of the user in the same way, with the logs of the days that matter.",
    )
)
_STEP = re.compile(r"^Step (\d+):", re.MULTILINE)


class ScriptedModel:
    """Answers one session; `step` is the turn it is in."""

    def __init__(self) -> None:
        self.step = 0
        self._round = 0

    def __call__(self, seen: Seen) -> Answer:
        """Return the answer to a request: a summary if it brings no tool, else calls or the end of a turn."""
        if not is_of_agent(seen):
            return Say(SUMMARY)
        asked = _STEP.findall(said_last(messages_in(seen.body)))
        if asked:
            self.step, self._round = int(asked[-1]), 0
        self._round += 1
        days = days_of(self.step, self._round)
        service = service_of(self.step)
        if not days:
            return Say(f"In step {self.step} {service} refused connections and dropped batches.")
        calls = tuple(Call(TOOL, {"service": service, "day": day}) for day in days)
        return CallTools(calls, text=f"I look at {service}.")


def is_of_agent(seen: Seen) -> bool:
    """Return whether a request is a turn of the agent, and not one for a summary."""
    return TOOL.encode() in seen.raw and any(TOOL in str(tool) for tool in seen.body.get("tools") or ())


def messages_in(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of a request, or the items of one to the Responses API."""
    sent = body.get("messages", body.get("input", []))
    return [{"role": "user", "content": sent}] if isinstance(sent, str) else sent


def said_last(messages: list[dict[str, Any]]) -> str:
    """Return what the user said in the last message; nothing if it holds the results of calls."""
    last = messages[-1]
    return "\n".join(_texts(last["content"])) if last.get("role") == "user" else ""


def _texts(content: object) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        yield from (block["text"] for block in content if block.get("type") in {"text", "input_text"})
