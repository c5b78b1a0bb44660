"""The handles that a model can see: those that compactions left in the view."""

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from lowwater.core.messages import texts_of
from lowwater.core.view import Item, Original, Summary

_SPAN = r"\d{1,15}(?:\s*(?:-|–|to)\s*(?:lw:)?\d{1,15})?"
_HANDLE = re.compile(rf"\blw:({_SPAN}(?:,{_SPAN})*)", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")


class Handle(Struct, frozen=True, kw_only=True):
    """The messages that a handle names, the first and the last one."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"lw:{self.first}" if self.is_single else f"lw:{self.first}-{self.last}"

    @property
    def is_single(self) -> bool:
        """Whether it names one message."""
        return self.first == self.last

    def leads_to(self, number: int) -> bool:
        """Return whether a message is among those it names."""
        return self.first <= number <= self.last


def visible_handles(items: Iterable[Item]) -> list[Handle]:
    """Return the handles in a view, each once, the narrowest first and the newest first among equals."""
    found = {
        (first, last) for item in items if not isinstance(item, Original) for first, last in _named(item)
    }
    handles = (Handle(first=first, last=last) for first, last in found if 1 <= first <= last)
    return sorted(handles, key=lambda handle: (handle.last - handle.first, -handle.last))


def _named(item: Item) -> Iterator[tuple[int, int]]:
    for text in texts_of(item.message):
        for spans in _HANDLE.findall(text):
            for span in spans.split(","):
                numbers = _NUMBER.findall(span)
                yield int(numbers[0]), int(numbers[-1])
    if isinstance(item, Summary):
        # Its words say which messages it stands for, and recall's tools that these are a handle.
        for span in item.sources:
            yield span.first, span.last
