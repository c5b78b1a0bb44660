"""How the summaries of a ledger came about: which compaction made one, and of what.

Only entries that compacted or rewound are read, the newest first, and no more of them than the question needs.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from msgspec import Struct

from lowwater.engine.recall.ranges import inside, overlap
from lowwater.values.entries import Compacted, Numbers, Rewound, Summarized
from lowwater.values.ledger import Ledger


class Standing(Struct, frozen=True, kw_only=True):
    """A summary, and the position of a compaction that shows it."""

    summary: Summarized
    position: int


def shown(ledger: Ledger) -> tuple[Standing, ...]:
    """Return the summaries that the view shows now."""
    return next(_lineage(ledger, len(ledger.entries)), ())


def find_summary(ledger: Ledger, numbers: Sequence[Numbers]) -> Standing | None:
    """Return the newest summary of exactly these messages, or else of messages with this first and last one.

    Summaries that a rewind has undone are not among those looked at.
    """
    ends: Standing | None = None
    for standings in _lineage(ledger, len(ledger.entries)):
        # Messages that no summary stands for here stood in person ever before.
        near = [one for one in standings if overlap(one.summary.sources, numbers)]
        if not near:
            break
        for one in near:
            if one.summary.sources == tuple(numbers):
                return one
            if ends is None and len(numbers) == 1 and _ends(one.summary.sources) == numbers[0]:
                ends = one
    return ends


def made_of(ledger: Ledger, standing: Standing) -> tuple[Standing, ...]:
    """Return the summaries that this one was made of; what else it stands for it was made of directly.

    A summary that only writes another one of the same messages anew is made of what that one is made of.
    """
    summary = standing.summary
    for standings in _lineage(ledger, standing.position):
        if any(_same(one.summary, summary) for one in standings):
            continue
        within = [
            one for one in standings if one.summary.sources and inside(one.summary.sources, summary.sources)
        ]
        if len(within) != 1 or within[0].summary.sources != summary.sources:
            return tuple(within)
        summary = within[0].summary
    return ()


def _lineage(ledger: Ledger, position: int) -> Iterator[tuple[Standing, ...]]:
    """Yield the summaries of each compaction the view at `position` goes back to, the newest first."""
    while (found := _in_force(ledger, position)) is not None:
        position = found
        entry = ledger.entries[position]
        assert isinstance(entry, Compacted)
        yield tuple(
            Standing(summary=stand, position=position)
            for stand in entry.stands
            if isinstance(stand, Summarized)
        )


def _in_force(ledger: Ledger, position: int) -> int | None:
    """Return the position of the compaction that the view is based on when the ledger has `position` entries."""
    at = _before(ledger, position)
    while at >= 0:
        saved = ledger.saved[at]
        if saved.kind == "compacted":
            return saved.position
        at -= 1
        if saved.kind == "rewound":
            entry = ledger.entries[saved.position]
            assert isinstance(entry, Rewound)
            at = _before(ledger, entry.to)
    return None


def _before(ledger: Ledger, position: int) -> int:
    return bisect_left(ledger.saved, position, key=lambda saved: saved.position) - 1


def _same(one: Summarized, other: Summarized) -> bool:
    return one.sources == other.sources and one.text == other.text


def _ends(sources: Sequence[Numbers]) -> Numbers | None:
    return Numbers(first=sources[0].first, last=sources[-1].last) if sources else None
