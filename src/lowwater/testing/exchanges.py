"""Splits a recorded conversation into turns, so that a test can replay it."""

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from lowwater.core.formats.codec import as_completion, as_message

__all__ = ["Exchange", "as_completion", "as_message", "exchanges"]


class Exchange(Struct, frozen=True, kw_only=True):
    """The new messages before one call of the model, and its answer; None if the recording ends without one."""

    new: tuple[Any, ...]
    answer: Any | None


def exchanges(messages: Iterable[Any]) -> Iterator[Exchange]:
    """Yield the turns of a list of messages, which are Python objects in either format."""
    new: list[Any] = []
    for message in messages:
        if message["role"] == "assistant" and new:
            yield Exchange(new=tuple(new), answer=message)
            new = []
        else:
            new.append(message)
    if new:
        yield Exchange(new=tuple(new), answer=None)
