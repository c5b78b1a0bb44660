"""Requests as they were made, whoever made them, and what can be told of them without any price."""

from collections.abc import Sequence

from msgspec import Struct

from lowwater.core.messages import Message, texts_of
from lowwater.lab.references.uses import LaterUse, find_words


class Asked(Struct, frozen=True, kw_only=True):
    """A call for a summary, as texts."""

    prompt: str
    answer: str


class Sent(Struct, frozen=True, kw_only=True):
    """One request, the calls for summaries before it, and the answer it got."""

    messages: tuple[Message, ...]
    answer: Message
    at: float
    asked: tuple[Asked, ...] = ()
    wall: float = 0.0
    """Seconds that it took to make."""


def lost(sent: Sent, uses: Sequence[LaterUse]) -> list[LaterUse]:
    """Return the uses of an answer that stand nowhere in the request."""
    if not uses:
        return []
    shown = text_of(sent.messages)
    return [use for use in uses if find_words(use.text, shown) < 0]


def text_of(messages: Sequence[Message]) -> str:
    """Return all that messages show a model."""
    return "\n".join(text for message in messages for text in texts_of(message))


def prefix_breaks(sents: Sequence[Sent]) -> int:
    """Return how many requests do not begin with all of the request before."""
    breaks = 0
    before: tuple[bytes, ...] = ()
    for sent in sents:
        now = tuple(message.digest for message in sent.messages)
        breaks += now[: len(before)] != before
        before = now
    return breaks
