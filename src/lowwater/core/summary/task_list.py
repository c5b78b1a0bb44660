"""The open tasks of the model's own task list, repeated behind a summary that would otherwise leave them out of the view.

To change its list, a model has to name the tasks on it, so one that no longer sees the list has to guess or to ask. The tasks stand
outside the summary, before the index of names; the next summary takes them over unless a call has changed the list since.
"""

import re
from collections.abc import Iterable, Sequence

from lowwater.core.messages import Message, ToolCall, ToolResult
from lowwater.core.summary.activity import story_of
from lowwater.core.summary.frame import index_in
from lowwater.core.summary.request import SummaryRequest
from lowwater.core.summary.talk_sections import todo_of
from lowwater.core.summary.template import Section, outline
from lowwater.core.summary.text import flat
from lowwater.core.tools import class_of
from lowwater.core.view import Edited, Item, Summary

HEADING = "Open tasks, as the model's own list had them last:"
MOST_TASKS = 20
_DOING = " (in progress)"
_BULLET = "- "
_HANDLE = re.compile(r"\blw:(?=\s?\d)", re.IGNORECASE)


def open_tasks(replaced: Sequence[Item], *, beside: Iterable[Item], summary: str) -> str:
    """Return the open tasks in `replaced` that `summary` does not mention, under a heading; empty if `beside` still has the list."""
    if any(_calls_for_tasks(item.message) for item in beside):
        return ""
    carried = [
        task for item in replaced if isinstance(item, Summary) for task in _tasks_in(item.message.text)
    ]
    messages = tuple(_only_tasks(item) for item in replaced if not isinstance(item, Summary))
    story = story_of(SummaryRequest(messages=tuple(each for each in messages if each.parts), max_tokens=0))
    plain = [task.removesuffix(_DOING) for task in carried]
    todo = todo_of(story, outline({Section.REMAINING: plain}))
    tasks = [f"{_line(task)}{_DOING}" for task in todo.doing] + [_line(task) for task in todo.open]
    said = flat(summary).casefold()
    left = [task for task in (tasks if todo.known else carried) if _words_of(task) not in said]
    return "\n".join((HEADING, *(f"{_BULLET}{task}" for task in left[:MOST_TASKS]))) if left else ""


def _line(task: str) -> str:
    """Return a task on one line, without handles: in the index they would be read as those of results."""
    return _HANDLE.sub("lw ", flat(task))


def _words_of(task: str) -> str:
    """Return the words of a task without its number and state, as a summary would have them."""
    text = task.removesuffix(_DOING).casefold()
    number, _, rest = text.partition(" ")
    return rest if number.startswith("#") and rest else text


def _tasks_in(text: str) -> list[str]:
    """Return the tasks listed behind an earlier summary."""
    _, heading, rest = index_in(text).partition(HEADING + "\n")
    if not heading:
        return []
    lines = rest.split("\n")
    end = next((at for at, line in enumerate(lines) if not line.startswith(_BULLET)), len(lines))
    return [line.removeprefix(_BULLET) for line in lines[:end]]


def _calls_for_tasks(message: Message) -> bool:
    return any(class_of(call) == "todo" for call in message.calls)


def _only_tasks(item: Item) -> Message:
    """Return the original message with nothing but its results and its calls of the task tool."""
    message = item.original if isinstance(item, Edited) else item.message
    parts = tuple(
        part
        for part in message.parts
        if isinstance(part, ToolResult) or (isinstance(part, ToolCall) and class_of(part) == "todo")
    )
    return message.with_parts(parts)
