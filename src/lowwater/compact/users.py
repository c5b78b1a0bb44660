"""Telling what the user said from everything else that stands in the user's role."""

from collections.abc import Sequence

from lowwater.compact.summary import frame
from lowwater.values.message import Message
from lowwater.values.parts import AnyPart, Text, ToolResult
from lowwater.values.view import Item, Summary

_OPENING = frame("", user_follows=True).partition(".")[0]
_CLOSINGS = tuple(frame("", user_follows=follows).rpartition("\n")[2] for follows in (True, False))


def newest_user(items: Sequence[Item]) -> int | None:
    """Return the index of the newest message in which the user says something, in words or pictures."""
    for at in range(len(items) - 1, -1, -1):
        if not isinstance(items[at], Summary) and is_said(items[at].message):
            return at
    return None


def framed_parts(message: Message) -> tuple[int, ...]:
    """Return which parts of a message are summaries that compactions wrote, in whatever session.

    A client that goes on from a list it was given hands them back: as messages, or as parts of a user's.
    """
    return tuple(at for at, part in enumerate(message.parts) if _is_framed(part))


def _is_framed(part: AnyPart) -> bool:
    return isinstance(part, Text) and part.text.startswith(_OPENING) and part.text.endswith(_CLOSINGS)


def is_said(message: Message) -> bool:
    """Return whether the user says something in a message, in words or pictures."""
    return message.role == "user" and any(_is_own(part) for part in message.parts)


def _is_own(part: AnyPart) -> bool:
    """Results are the tools', summaries ours, and blank text is nobody's."""
    if isinstance(part, Text):
        return bool(part.text.strip()) and not _is_framed(part)
    return not isinstance(part, ToolResult)
