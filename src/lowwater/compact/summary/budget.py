"""Choosing which notes a summary has room for: shares by section first, then what is worth most."""

from collections.abc import Iterable, Sequence

from lowwater.compact.summary.nearness import Seen
from lowwater.compact.summary.notes import CHRONICLES, Note, uncited
from lowwater.compact.summary.phrases import words
from lowwater.compact.summary.template import Outline, Section, outline, render
from lowwater.ports import Tokenizer

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
