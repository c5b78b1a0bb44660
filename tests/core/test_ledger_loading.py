"""A ledger opened again says the same as the one that was written, and reads no more of it than it needs."""

from hypothesis import given

from lowwater.core.entries import (
    Appended,
    Compacted,
    Entry,
    KeptRange,
    Numbers,
    Opened,
    Rewound,
    SummarizedSpan,
)
from lowwater.core.ledger import Ledger, Numbered
from lowwater.core.ledger_loading import reopen
from lowwater.core.messages import Message, Text
from lowwater.core.sequences import LazySequence
from lowwater.core.stored import Landmark, Outline
from lowwater.testing.strategies import ledgers


def outline_of(ledger: Ledger) -> Outline:
    landmarks: list[Landmark] = []
    messages = tokens = 0
    for position, entry in enumerate(ledger.entries):
        if isinstance(entry, Appended):
            messages += len(entry.messages)
            tokens += sum(entry.tokens)
        else:
            kind = str(entry.__struct_config__.tag)
            landmarks.append(
                Landmark(position=position, kind=kind, at=entry.at, messages=messages, tokens=tokens)  # type: ignore[arg-type]
            )
    return Outline(
        version=1,
        entries=len(ledger.entries),
        messages=messages,
        tokens=tokens,
        landmarks=tuple(landmarks),
    )


class Elsewhere:
    """A ledger that counts what is fetched from it."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.fetched: set[int] = set()
        self.fetches = 0

    def entries(self, first: int, end: int) -> list[Entry]:
        return self.ledger.entries[first:end]

    def messages(self, first: int, end: int) -> list[Numbered]:
        self.fetched.update(range(first + 1, end + 1))
        self.fetches += 1
        return self.ledger.messages[first:end]

    def reopened(self) -> Ledger:
        entries: LazySequence[Entry] = LazySequence(len(self.ledger.entries), self.entries)
        return reopen(
            outline_of(self.ledger), entries, LazySequence(len(self.ledger.messages), self.messages)
        )


@given(ledgers())
def test_every_view_of_it_is_the_same(ledger: Ledger) -> None:
    again = Elsewhere(ledger).reopened()
    assert again.view == ledger.view
    assert again.vocabulary == ledger.vocabulary
    assert list(again.preambles) == list(ledger.preambles)
    assert [(s.position, s.messages, s.kind, s.at, s.name) for s in again.saved] == [
        (s.position, s.messages, s.kind, s.at, s.name) for s in ledger.saved
    ]
    for position in range(len(ledger.entries) + 1):
        assert again.view_at(position) == ledger.view_at(position)


@given(ledgers())
def test_it_goes_on_as_the_one_that_was_written_would(ledger: Ledger) -> None:
    again = Elsewhere(ledger).reopened()
    new = Message(role="user", parts=(Text(text="more"),))
    appended = Appended(at=9.0, messages=(new,), tokens=(3,))
    for to in {0, len(ledger.entries) // 2, len(ledger.entries)}:
        for discard in (True, False):
            later: list[Entry] = [appended, Rewound(at=10.0, to=to, discard_later=discard), appended]
            one, other = ledger.extend(later), again.extend(later)
            assert one.view == other.view
            assert one.history() == other.history()
            assert list(one.entries) == list(other.entries)
            assert one.view_at(len(one.entries) - 2) == other.view_at(len(one.entries) - 2)


@given(ledgers())
def test_whole_is_the_size_of_all_messages_a_view_stands_for(ledger: Ledger) -> None:
    for position in range(len(ledger.entries) + 1):
        view = ledger.view_at(position)
        assert view.original_tokens == sum(
            ledger.messages[number - 1].tokens for number in view.shown_numbers()
        )


def test_only_what_the_view_shows_is_fetched_and_neighbours_together() -> None:
    def said(number: int) -> Appended:
        message = Message(role="user", parts=(Text(text=f"message {number}"),))
        return Appended(at=float(number), messages=(message,), tokens=(2,))

    summary = SummarizedSpan(text="so far", role="user", sources=(Numbers(first=4, last=980),), tokens=5)
    stands = (
        KeptRange(numbers=Numbers(first=1, last=3)),
        summary,
        KeptRange(numbers=Numbers(first=981, last=1_000)),
    )
    entries: list[Entry] = [Opened(at=0.0, model="m", vocabulary="words"), *map(said, range(1, 1_001))]
    entries += [Compacted(at=1_001.0, mechanisms=("summarize",), items=stands), said(1_001), said(1_002)]
    elsewhere = Elsewhere(Ledger().extend(entries))
    again = elsewhere.reopened()
    assert len(again.view.items) == 3 + 1 + 20 + 2
    assert elsewhere.fetched == {1, 2, 3, *range(981, 1_003)}
    assert elsewhere.fetches == 3
    again.extend([said(1_003)]).view_at(1_001)
    assert elsewhere.fetched == set(range(1, 1_003))
