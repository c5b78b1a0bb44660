"""Notes: candidate lines of a summary, and choosing which of them there is room for."""

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from lowwater.core.summary.request import SummaryRequest
from lowwater.core.summary.template import Outline, Section, outline, render
from lowwater.core.summary.text import Seen, key_words, words
from lowwater.protocols import Tokenizer

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


_SHARES = {
    Section.GOAL: 0.10,
    Section.PENDING: 0.06,
    Section.CONSTRAINTS: 0.14,
    Section.IN_PROGRESS: 0.05,
    Section.BLOCKED: 0.09,
    Section.REMAINING: 0.06,
    Section.FILES: 0.16,
    Section.DONE: 0.16,
    Section.DECISIONS: 0.08,
    Section.RESOLVED: 0.06,
    Section.TOOLS: 0.03,
    Section.CONTEXT: 0.01,
}
"""The most important first: what each section may always use."""
_LISTS = frozenset({Section.GOAL, Section.FILES, Section.BLOCKED, Section.TOOLS})
"""Sections whose items look alike and are different."""


class Budget:
    """A summary being filled; what is picked first is dropped last."""

    def __init__(self, max_tokens: int, tokenizer: Tokenizer) -> None:
        self._max = max_tokens
        self._count = tokenizer.count
        self._picked: list[Note] = []
        self._spent = 0
        self._texts: set[str] = set()
        self._seen = {section: Seen() for section in Section}

    @property
    def left(self) -> int:
        """Tokens that are still free, as far as the sum of the items tells."""
        return self._max - self._spent

    def share(self, notes: Iterable[Note], part: float) -> None:
        """Fill `part` of the budget: each section its share, then whatever is worth most."""
        available = int(self._max * part)
        rest: list[Note] = []
        by_section: dict[Section, list[Note]] = {section: [] for section in _SHARES}
        for note in notes:
            by_section[note.section].append(note)
        for section, some in by_section.items():
            until = self._spent + int(available * _SHARES[section])
            rest += [note for note in ranked(some) if not self._pick(note, until)]
        for note in ranked(rest):
            self._pick(note, available)

    def add(self, notes: Iterable[Note]) -> None:
        """Take notes as long as there is room, in the order given."""
        for note in notes:
            self._pick(note, self._max)

    def text(self) -> str:
        """Return the summary, at most as long as the budget whatever the tokenizer makes of the whole."""
        kept = list(self._picked)
        written = render(arranged(kept))
        while kept and (over := self._count(written) - self._max) > 0:
            while kept and over > 0:
                over -= self._cost(kept.pop())
            written = render(arranged(kept))
        return written

    def _pick(self, note: Note, until: int) -> bool:
        """Take a note unless that exceeds `until`; tell whether it is settled, taken or repeated."""
        bare = uncited(note.text)
        if not bare or bare in self._texts or self._repeats(note, bare):
            return True
        cost = self._cost(note)
        if self._spent + cost > min(until, self._max):
            return False
        self._spent += cost
        self._picked.append(note)
        self._texts.add(bare)
        self._seen[note.section].add(words(bare))
        return True

    def _repeats(self, note: Note, bare: str) -> bool:
        if note.section in _LISTS or note.at <= 0:
            return False
        return self._seen[note.section].nearest(words(bare)) is not None

    def _cost(self, note: Note) -> int:
        heading = 0 if any(other.section == note.section for other in self._picked) else 6
        return self._count(f"- {note.text}\n") + heading


def ranked(notes: Iterable[Note]) -> list[Note]:
    """Return notes by worth, the most first."""
    return sorted(notes, key=lambda note: -note.worth)


def arranged(notes: Sequence[Note]) -> Outline:
    """Return notes as an outline: chronicles and what was carried over by time, lists by worth."""
    found: dict[Section, list[str]] = {section: [] for section in Section}
    for note in sorted(notes, key=_place):
        found[note.section].append(note.text)
    return outline(found)


def _place(note: Note) -> tuple[float, float]:
    if note.section in CHRONICLES or note.at < 0:
        return (note.at, 0)
    return (1, -note.worth)
