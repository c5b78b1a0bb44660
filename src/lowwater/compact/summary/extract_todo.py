"""The state of the task list, exactly as the agent's own list tool left it."""

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from lowwater.compact.summary.notes import uncited
from lowwater.compact.summary.phrases import clip
from lowwater.compact.summary.story import Step, Story
from lowwater.compact.summary.template import Outline, Section

State = Literal["done", "doing", "open"]
_STATES: dict[str, State] = {
    "completed": "done",
    "complete": "done",
    "done": "done",
    "finished": "done",
    "in_progress": "doing",
    "in-progress": "doing",
    "active": "doing",
    "doing": "doing",
}
_GONE = frozenset({"deleted", "cancelled", "canceled", "removed"})
_WORDS = ("content", "step", "subject", "title", "text", "task", "description")
_CREATED = re.compile(r"[Tt]ask #?(\d+)")
_NUMBERED = re.compile(r"#(\d+) (.+)", re.DOTALL)
_LONGEST = 240


class Todo(Struct, frozen=True, kw_only=True):
    """The tasks of the latest list by state; `known` is False if no list was ever written."""

    known: bool = False
    done: tuple[str, ...] = ()
    doing: tuple[str, ...] = ()
    open: tuple[str, ...] = ()


def todo_of(story: Story, previous: Outline) -> Todo:
    """Return the state of the task list after the story, which may change tasks that the previous summary names."""
    tasks: dict[str, tuple[str, State]] = dict(_carried(previous))
    known = False
    for step in story.steps:
        if step.kind != "todo" or step.failed:
            continue
        listed = tuple(_listed(step))
        if listed:
            tasks = {text: (text, state) for text, state in listed}
            known = True
        else:
            known = _change_one(tasks, step) or known
    if not known:
        return Todo()
    return Todo(
        known=True,
        done=tuple(text for text, state in tasks.values() if state == "done"),
        doing=tuple(text for text, state in tasks.values() if state == "doing"),
        open=tuple(text for text, state in tasks.values() if state == "open"),
    )


def _carried(previous: Outline) -> Iterator[tuple[str, tuple[str, State]]]:
    states: tuple[tuple[Section, State], ...] = (
        (Section.DONE, "done"),
        (Section.IN_PROGRESS, "doing"),
        (Section.REMAINING, "open"),
    )
    for section, state in states:
        for item in previous.of(section):
            if match := _NUMBERED.fullmatch(uncited(item)):
                yield match[1], (uncited(item), state)


def _listed(step: Step) -> Iterator[tuple[str, State]]:
    """Yield the tasks of a call that writes the whole list."""
    for value in step.arguments.values():
        for task in value if isinstance(value, list) else ():
            if isinstance(task, dict) and (text := _text(task)):
                yield text, _state(task)


def _change_one(tasks: dict[str, tuple[str, State]], step: Step) -> bool:
    """Create or change one task; tell whether the call did."""
    task_id = str(step.arguments.get("taskId") or step.arguments.get("task_id") or "")
    if task_id:
        text, state = tasks.get(task_id, ("", "open"))
        subject = _text(step.arguments, ("subject", "title", "content"))
        text = f"#{task_id} {subject}" if subject else text
        status = str(step.arguments.get("status", "")).lower()
        if status in _GONE:
            tasks.pop(task_id, None)
        elif text:
            tasks[task_id] = (text, _STATES.get(status, "open") if status else state)
        return bool(text)
    subject = _text(step.arguments)
    created = _CREATED.search(step.output, 0, 200)
    if not subject or not created:
        return False
    tasks[created[1]] = (f"#{created[1]} {subject}", "open")
    return True


def _text(task: dict[str, object], names: tuple[str, ...] = _WORDS) -> str:
    found = (task.get(name) for name in names)
    return next((clip(text, _LONGEST) for text in found if isinstance(text, str) and text.strip()), "")


def _state(task: dict[str, object]) -> State:
    if task.get("done") is True or task.get("completed") is True:
        return "done"
    return _STATES.get(str(task.get("status") or task.get("state") or "").lower(), "open")
