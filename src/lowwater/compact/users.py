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
    own = (
        at
        for at in range(len(items) - 1, -1, -1)
        if not isinstance(items[at], Summary) and says_own(items[at].message)
    )
    return next(own, turn_start(items))


def turn_start(items: Sequence[Item]) -> int | None:
    """Return the index of the newest message in the user's role that is more than results: a provider's turn begins there."""
    return next((at for at in range(len(items) - 1, -1, -1) if _is_said(items[at])), None)


def framed_parts(message: Message) -> tuple[int, ...]:
    """Return which parts of a message are summaries that compactions wrote, in whatever session.

    A client that goes on from a list it was given hands them back: as messages, or as parts of a user's.
    """
    return tuple(at for at, part in enumerate(message.parts) if _is_framed(part))


def _is_framed(part: AnyPart) -> bool:
    return isinstance(part, Text) and part.text.startswith(_OPENING) and part.text.endswith(_CLOSINGS)


def is_said(message: Message) -> bool:
    """Return whether something is said in the user's role, in words or pictures."""
    return message.role == "user" and any(_says_something(part) for part in message.parts)


def says_own(message: Message) -> bool:
    """Return whether the user says something in a message, and not only a harness in the user's role."""
    return is_said(message) and _is_own(message)


def _is_said(item: Item) -> bool:
    return not isinstance(item, Summary) and is_said(item.message)


def _says_something(part: AnyPart) -> bool:
    """Results are the tools', summaries ours, and blank text is nobody's."""
    if isinstance(part, Text):
        return bool(part.text.strip()) and not _is_framed(part)
    return not isinstance(part, ToolResult)


def _is_own(message: Message) -> bool:
    """Tell whether the user said any of it: pictures and files are the user's, texts may be the harness's."""
    said = [part for part in message.parts if not _is_framed(part)]
    spoken = message if len(said) == len(message.parts) else message.with_parts(tuple(said))
    return bool(own_words(spoken)) or not all(isinstance(part, Text | ToolResult) for part in message.parts)
