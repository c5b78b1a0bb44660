"""Telling what the user said from everything else that stands in the user's role."""

from collections.abc import Sequence

from lowwater.compact.summary import frame
from lowwater.compact.summary.hygiene import own_words
from lowwater.values.message import Message
from lowwater.values.parts import AnyPart, Text, ToolResult
from lowwater.values.view import Item, Summary

_OPENING = frame("", user_follows=True).partition(".")[0]
_CLOSINGS = tuple(frame("", user_follows=follows).rpartition("\n")[2] for follows in (True, False))


def newest_user(items: Sequence[Item]) -> int | None:
    """Return the index of the newest message in which the user says something, in words or pictures.

    What a harness says in the user's role does not count, unless there is nothing else: then nobody can tell whose words
    they are.
    """
    own = (at for at in range(len(items) - 1, -1, -1) if _is_said(items[at]) and _is_own(items[at].message))
    return next(own, turn_start(items))


def turn_start(items: Sequence[Item]) -> int | None:
    """Return the index of the newest message in the user's role that is more than results: a provider's turn begins there."""
    return next((at for at in range(len(items) - 1, -1, -1) if _is_said(items[at])), None)


def is_framed(message: Message) -> bool:
    """Return whether a message is a summary that a compaction wrote, in whatever session."""
    first = message.parts[0] if message.parts else None
    return isinstance(first, Text) and first.text.startswith(_OPENING) and first.text.endswith(_CLOSINGS)


def _is_said(item: Item) -> bool:
    message = item.message
    if isinstance(item, Summary) or message.role != "user":
        return False
    return any(_says_something(part) for part in message.parts) and not is_framed(message)


def _says_something(part: AnyPart) -> bool:
    """Results are the tools', blank text is nobody's."""
    return bool(part.text.strip()) if isinstance(part, Text) else not isinstance(part, ToolResult)


def _is_own(message: Message) -> bool:
    """Tell whether the user said any of it: pictures and files are the user's, texts may be the harness's."""
    return bool(own_words(message)) or not all(isinstance(part, Text | ToolResult) for part in message.parts)
