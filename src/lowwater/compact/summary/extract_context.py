"""What the sections so far have not said: the assistant's own sentences, then bare names, that still carry references."""

from collections.abc import Iterator, Mapping, Sequence

from lowwater.compact.summary.notes import LAST, Note, Room
from lowwater.compact.summary.telling import Told, joined
from lowwater.compact.summary.template import Section
from lowwater.values.summaries import Critical, CriticalKind

_LABELS: Mapping[CriticalKind, str] = {
    "path": "Paths also named: ",
    "identifier": "Identifiers also named: ",
    "value": "Values also named: ",
}
_PER_ITEM = 24
_LONGEST = 300
_TOGETHER = 5
"""Sentences in one item."""


def sentence_notes(missing: Sequence[Critical], sentences: Sequence[Told], room: Room) -> Iterator[Note]:
    """Yield sentences that name what is missing, the most names per character first; each brings something new.

    Sentences of one message stand together in one item.
    """
    open_names = {reference.text for reference in missing}
    ranked = sorted(
        sentences, key=lambda told: (-room.focuses(told.text), -_density(told, open_names), told.number)
    )
    together: dict[int, list[Told]] = {}
    for sentence in ranked:
        gained = sentence.names & open_names
        if not gained or sentence.process or len(sentence.text) > _LONGEST:
            continue
        if len(gained) < 2 and len(sentence.text) > 120:
            continue
        open_names -= gained
        together.setdefault(sentence.number, []).append(sentence)
    order = {id(sentence): at for at, sentence in enumerate(sentences)}
    for number, some in together.items():
        for start in range(0, len(some), _TOGETHER):
            in_order = sorted(some[start : start + _TOGETHER], key=lambda sentence: order[id(sentence)])
            text = room.cited(joined(sentence.text for sentence in in_order), number)
            yield Note(section=Section.CONTEXT, text=text, worth=room.worth(text, 1.0), at=number)


def _density(sentence: Told, open_names: set[str]) -> float:
    return len(sentence.names & open_names) / (len(sentence.text) + 40)


def name_notes(missing: Sequence[Critical]) -> Iterator[Note]:
    """Yield the missing references that are names as lists by kind, and the others as they are."""
    for reference in missing:
        if reference.kind == "error":
            yield Note(section=Section.CONTEXT, text=f"Seen on the way: {reference.text}", worth=1.1, at=LAST)
    for reference in missing:
        if reference.kind in {"ask", "forbidden"}:
            section = Section.RESOLVED if reference.kind == "ask" else Section.CONSTRAINTS
            yield Note(section=section, text=f'"{reference.text}"', worth=1.1, at=LAST)
    for kind, label in _LABELS.items():
        names = [_listed(reference.text) for reference in missing if reference.kind == kind]
        for start in range(0, len(names), _PER_ITEM):
            text = label + ", ".join(names[start : start + _PER_ITEM])
            yield Note(section=Section.CONTEXT, text=text, worth=0.5, at=LAST)


def _listed(name: str) -> str:
    return f"`{name}`" if " " in name or "," in name else name
