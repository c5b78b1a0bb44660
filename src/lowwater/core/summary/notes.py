"""Notes, the candidate lines of a summary, and the budget that chooses which of them fit."""

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from lowwater.core.summary.request import SummaryRequest
from lowwater.core.summary.template import Section, SummaryOutline, outline, render
from lowwater.core.summary.text import NearDuplicates, key_words, words
from lowwater.protocols import Tokenizer

_CHRONICLES = frozenset({Section.DONE, Section.RESOLVED, Section.DECISIONS, Section.CONTEXT})
"""Sections in chronological order; the others begin with what matters most."""
AT_END = 1_000_000_000
"""The `at` of notes that come after everything that happened."""
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
"""The share of the budget that each section is sure of, the most important first."""
_REPETITIVE = frozenset({Section.GOAL, Section.FILES, Section.BLOCKED, Section.TOOLS})
"""Sections whose items look alike without being duplicates."""
_HANDLE = re.compile(r"\s*\(lw:\d+(?:–\d+)?\)\s*$")


class Note(Struct, frozen=True, kw_only=True):
    """One item that a summary could have; when room is short, those of a section with the highest worth are kept."""

    section: Section
    text: str
    worth: float = 1.0
    at: int = 0
    """The number of the message it comes from; 0 or less for items of a previous summary."""


class NotesRoom(Struct, frozen=True, kw_only=True):
    """How much may be written, in characters, and which topic gets more of it."""

    chars: int
    focus: frozenset[str]
    recall: bool

    def limit(self, text: str, *, share: float, among: int, most: int) -> int:
        """Return how long an item about `text` may be when `among` items divide this `share` of the room."""
        fair = int(self.chars * share / max(1, among))
        return max(100, min(fair, most)) * (2 if self.focuses(text) else 1)

    def focuses(self, text: str) -> bool:
        """Return whether a text is about the requested topic."""
        return bool(self.focus) and not self.focus.isdisjoint(words(text))

    def worth(self, text: str, worth: float) -> float:
        """Return the worth of an item, raised if it is about the requested topic."""
        return worth + 2.0 if self.focuses(text) else worth

    def cited(self, text: str, first: int, last: int = 0) -> str:
        """Return the item with the handle of the messages to recall for more, if recall is possible."""
        if not self.recall or not first:
            return text
        return f"{text} (lw:{first}–{last})" if last > first else f"{text} (lw:{first})"


def notes_room(request: SummaryRequest) -> NotesRoom:
    """Return the room for a request; a token is about three and a half characters of such text."""
    return NotesRoom(
        chars=int(request.max_tokens * 3.5),
        focus=_topic_words(request) if request.focus else frozenset(),
        recall=request.recall and bool(request.numbers),
    )


def _topic_words(request: SummaryRequest) -> frozenset[str]:
    """Return the words of the focus that distinguish its topic: those that occur in the fewest messages."""
    candidates = key_words(request.focus)
    texts = [words(message.text) for message in request.messages if message.role in {"user", "assistant"}]
    counts = {word: sum(word in text_words for text_words in texts) for word in candidates}
    rarest = min((count for count in counts.values() if count), default=0)
    return frozenset(word for word, count in counts.items() if count <= 2 * rarest + 1)


def carried_notes(previous: SummaryOutline, section: Section, worth: float) -> Iterator[Note]:
    """Yield the items of a previous summary's section; later ones are worth more in a chronicle, less elsewhere."""
    items = previous.of(section)
    for at, item in enumerate(items):
        bonus = 0.3 * at / len(items) if section in _CHRONICLES else -0.3 * at / len(items)
        yield Note(section=section, text=item, worth=worth + bonus, at=at - len(items))


def without_handle(text: str) -> str:
    """Return an item without its handle."""
    return _HANDLE.sub("", text)


class Budget:
    """A summary being filled with notes; those picked first are dropped last."""

    def __init__(self, max_tokens: int, tokenizer: Tokenizer) -> None:
        self._max = max_tokens
        self._count = tokenizer.count
        self._picked: list[Note] = []
        self._spent = 0
        self._texts: set[str] = set()
        self._seen = {section: NearDuplicates() for section in Section}

    @property
    def left(self) -> int:
        """Tokens still free, by the sum of the items."""
        return self._max - self._spent

    def share(self, notes: Iterable[Note], part: float) -> None:
        """Fill `part` of the budget: first each section's share, then whatever is worth most."""
        available = int(self._max * part)
        rest: list[Note] = []
        by_section: dict[Section, list[Note]] = {section: [] for section in _SHARES}
        for note in notes:
            by_section[note.section].append(note)
        for section, section_notes in by_section.items():
            until = self._spent + int(available * _SHARES[section])
            rest += [note for note in by_worth(section_notes) if not self._pick(note, until)]
        for note in by_worth(rest):
            self._pick(note, available)

    def add(self, notes: Iterable[Note]) -> None:
        """Add notes in the order given, skipping those that do not fit."""
        for note in notes:
            self._pick(note, self._max)

    def text(self) -> str:
        """Return the summary; the last notes are dropped if the whole counts as more tokens than the budget."""
        kept = list(self._picked)
        written = render(to_outline(kept))
        while kept and (over := self._count(written) - self._max) > 0:
            while kept and over > 0:
                over -= self._cost(kept.pop())
            written = render(to_outline(kept))
        return written

    def _pick(self, note: Note, until: int) -> bool:
        """Add a note unless that exceeds `until` tokens; return False only if it did not fit, not if it is a repetition."""
        text = without_handle(note.text)
        if not text or text in self._texts or self._repeats(note, text):
            return True
        cost = self._cost(note)
        if self._spent + cost > min(until, self._max):
            return False
        self._spent += cost
        self._picked.append(note)
        self._texts.add(text)
        self._seen[note.section].add(words(text))
        return True

    def _repeats(self, note: Note, text: str) -> bool:
        if note.section in _REPETITIVE or note.at <= 0:
            return False
        return self._seen[note.section].nearest(words(text)) is not None

    def _cost(self, note: Note) -> int:
        heading = 0 if any(other.section == note.section for other in self._picked) else 6
        return self._count(f"- {note.text}\n") + heading


def by_worth(notes: Iterable[Note]) -> list[Note]:
    """Return the notes, those with the highest worth first."""
    return sorted(notes, key=lambda note: -note.worth)


def to_outline(notes: Sequence[Note]) -> SummaryOutline:
    """Return the notes as an outline: chronicles and carried-over items by time, the rest by worth."""
    found: dict[Section, list[str]] = {section: [] for section in Section}
    for note in sorted(notes, key=_sort_key):
        found[note.section].append(note.text)
    return outline(found)


def _sort_key(note: Note) -> tuple[float, float]:
    if note.section in _CHRONICLES or note.at < 0:
        return (note.at, 0)
    return (1, -note.worth)
