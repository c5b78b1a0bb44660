"""Notes: candidate items of a summary, each with its section, its worth, and the message it comes from."""

import re
from collections.abc import Iterator

from msgspec import Struct

from lowwater.compact.summary.phrases import words
from lowwater.compact.summary.template import Outline, Section
from lowwater.values.summaries import SummaryRequest

_HANDLES = re.compile(r"\s*\(lw:\d+(?:–\d+)?\)\s*$")


class Note(Struct, frozen=True, kw_only=True):
    """One item that a summary could have; of two in a section the one with more worth stays when room is short."""

    section: Section
    text: str
    worth: float = 1.0
    at: int = 0
    """The number of the message it comes from; not above 0 for what a previous summary said."""


class Room(Struct, frozen=True, kw_only=True):
    """How much may be written, in characters, and what deserves more of it."""

    chars: int
    focus: frozenset[str]
    recall: bool

    def limit(self, text: str, *, share: float, among: int, most: int) -> int:
        """Return how long an item about `text` may be when `among` of them share a part of the room."""
        fair = int(self.chars * share / max(1, among))
        return max(100, min(fair, most)) * (2 if self.focuses(text) else 1)

    def focuses(self, text: str) -> bool:
        """Tell whether a text is about the topic that was asked for."""
        return bool(self.focus) and not self.focus.isdisjoint(words(text))

    def worth(self, text: str, worth: float) -> float:
        """Return the worth of an item, more if it is about the topic."""
        return worth + 2.0 if self.focuses(text) else worth

    def cited(self, text: str, first: int, last: int = 0) -> str:
        """Return an item that says which message to recall for more, if that is possible."""
        if not self.recall or not first:
            return text
        return f"{text} (lw:{first}–{last})" if last > first else f"{text} (lw:{first})"


def room_for(request: SummaryRequest) -> Room:
    """Return the room a request leaves: a token is about three and a half characters of such text."""
    return Room(
        chars=int(request.max_tokens * 3.5),
        focus=frozenset(words(request.focus)),
        recall=request.recall and bool(request.numbers),
    )


def uncited(text: str) -> str:
    """Return an item without its handle."""
    return _HANDLES.sub("", text)


def carried(previous: Outline, section: Section, worth: float) -> Iterator[Note]:
    """Yield the items of a previous summary's section in their order, later ones worth a little more."""
    items = previous.of(section)
    for at, item in enumerate(items):
        yield Note(section=section, text=item, worth=worth + 0.3 * at / len(items), at=at - len(items))
