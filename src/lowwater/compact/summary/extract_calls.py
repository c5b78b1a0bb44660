"""Calls of tools that are neither files nor shell: what was looked up and what was done with them."""

import re
from collections.abc import Iterator

from lowwater.compact.summary.hygiene import plain
from lowwater.compact.summary.notes import Note, Room
from lowwater.compact.summary.phrases import clip
from lowwater.compact.summary.story import Step, Story
from lowwater.compact.summary.template import Section

_LOOKS = re.compile(
    r"(?:^|_)(?:get|list|search|find|fetch|read|query|describe|lookup|show|view|check|track|status|count|resolve|think"
    r"|calculate)(?:_|$)"
)
_SILENT = frozenset({"EnterPlanMode", "ExitPlanMode", "TaskOutput", "think", "view_image"})
_KINDS = frozenset({"other", "web", "memory"})
_LONGEST = 300


def call_notes(story: Story, room: Room) -> Iterator[Note]:
    """Yield what such calls did, as done, and what they looked up, as context; failed ones are errors, not here."""
    for step in story.steps:
        if step.kind not in _KINDS or step.failed or not step.answered or step.call.name in _SILENT:
            continue
        looked = step.kind == "web" or _LOOKS.search(_plain_name(step.call.name)) is not None
        text = f"`{step.call.name}` {_arguments(step)} → {clip(plain(step.output[:600]), 160) or 'no output'}"
        yield Note(
            section=Section.CONTEXT if looked else Section.DONE,
            text=room.cited(text, step.number),
            worth=room.worth(text, 0.9 if looked else 2.0),
            at=step.number,
        )


def _plain_name(name: str) -> str:
    return name.rsplit("__", 1)[-1].lower().replace("-", "_")


def _arguments(step: Step) -> str:
    """Return the arguments as `name=value`, long values shortened."""
    pairs = (f"{name}={clip(_plainly(value), 120) or '…'}" for name, value in step.arguments.items())
    return clip(", ".join(pairs), _LONGEST)


def _plainly(value: object) -> str:
    return value if isinstance(value, str) else str(value)
