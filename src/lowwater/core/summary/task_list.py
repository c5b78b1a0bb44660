"""The open tasks behind a summary: what is left of the list that the model keeps by a tool, where neither summary nor view says it.

A call that changes a task list names what is on it, so a model that lost the list has to guess or to ask. The tasks stand
before the index of names, outside the summary, and the next summary takes over those that nothing has changed since.
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
    """Return the open tasks of the list in these items, as lines under a heading; empty if the summary or `beside` has them."""
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
    """Return a task in one line; a handle in it would be read as that of a result in the index."""
    return _HANDLE.sub("lw ", flat(task))


def _words_of(task: str) -> str:
    """Return what a task says, without its number and state, as it would stand in a summary."""
    text = task.removesuffix(_DOING).casefold()
    number, _, rest = text.partition(" ")
    return rest if number.startswith("#") and rest else text


def _tasks_in(text: str) -> list[str]:
    """Return the tasks behind an earlier summary."""
    _, heading, rest = index_in(text).partition(HEADING + "\n")
    if not heading:
        return []
    lines = rest.split("\n")
    end = next((at for at, line in enumerate(lines) if not line.startswith(_BULLET)), len(lines))
    return [line.removeprefix(_BULLET) for line in lines[:end]]


def _calls_for_tasks(message: Message) -> bool:
    return any(class_of(call) == "todo" for call in message.calls)


def _only_tasks(item: Item) -> Message:
    """Return the message as it came, with nothing but calls for tasks, or results."""
    message = item.original if isinstance(item, Edited) else item.message
    parts = tuple(
        part
        for part in message.parts
        if isinstance(part, ToolResult) or (isinstance(part, ToolCall) and class_of(part) == "todo")
    )
    return message.with_parts(parts)
