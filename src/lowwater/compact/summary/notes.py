"""Notes: candidate items of a summary, each with its section, its worth, and the message it comes from."""

import re
from collections.abc import Iterator

from msgspec import Struct

from lowwater.compact.summary.phrases import key_words, words
from lowwater.compact.summary.template import Outline, Section
from lowwater.values.summaries import SummaryRequest

_HANDLES = re.compile(r"\s*\(lw:\d+(?:–\d+)?\)\s*$")

CHRONICLES = frozenset({Section.DONE, Section.RESOLVED, Section.DECISIONS, Section.CONTEXT})
"""Sections that read in the order things happened; the others begin with what matters most."""

LAST = 1_000_000_000
"""The place of notes that come behind everything that happened."""


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
        focus=_topic(request) if request.focus else frozenset(),
        recall=request.recall and bool(request.numbers),
    )


def _topic(request: SummaryRequest) -> frozenset[str]:
    """Return the words of the focus that tell its topic from the others: those said in the fewest messages."""
    asked = key_words(request.focus)
    spoken = [words(message.text) for message in request.messages if message.role in {"user", "assistant"}]
    times = {word: sum(word in said for said in spoken) for word in asked}
    rarest = min((count for count in times.values() if count), default=0)
    return frozenset(word for word, count in times.items() if count <= 2 * rarest + 1)


def uncited(text: str) -> str:
    """Return an item without its handle."""
    return _HANDLES.sub("", text)


def carried(previous: Outline, section: Section, worth: float) -> Iterator[Note]:
    """Yield the items of a previous summary's section in their order, worth a little more the later in a chronicle."""
    items = previous.of(section)
    for at, item in enumerate(items):
        more = 0.3 * at / len(items) if section in CHRONICLES else -0.3 * at / len(items)
        yield Note(section=section, text=item, worth=worth + more, at=at - len(items))
