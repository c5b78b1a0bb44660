"""Whatever was compacted, expanding what a view shows down to the leaves yields all originals, each once."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowwater.core.entries import Numbers, Rewound, SummarizedSpan
from lowwater.core.ledger import Ledger
from lowwater.core.recall.expand import expand
from lowwater.core.recall.search import recall
from lowwater.core.view import Item, Summary, view_items
from lowwater.errors import BadInput
from lowwater.testing.strategies import ledgers
from tests.core.recall.recall_ledgers import Elsewhere, compact, in_view, kept, leaves, talk


@given(ledgers())
def test_expanding_everything_in_a_view_yields_all_its_originals_each_once(ledger: Ledger) -> None:
    found: list[int] = []
    for item in ledger.view.items:
        if isinstance(item, Summary):
            below = leaves(ledger, in_view(item))
            assert sorted(below) == [n for span in item.sources for n in range(span.first, span.last + 1)]
            found += below
        else:
            (child,) = expand(ledger, f"lw:{item.number}").children
            assert (child.kind, child.tokens) == ("message", ledger.messages[item.number - 1].tokens)
            assert recall(ledger, child.handle)[0].message == ledger.message(item.number)
            found.append(item.number)
    assert sorted(found) == sorted(ledger.view.shown_numbers())


class Grown:
    """A ledger that was compacted again and again, and what each of its summaries was made of."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self.ledger = talk(draw(st.integers(2, 12)))
        self.made_of: dict[str, list[str]] = {}
        for step in draw(
            st.lists(st.sampled_from(("compact", "compact", "compact", "grow", "rewind")), max_size=9)
        ):
            getattr(self, step)()

    def compact(self) -> None:
        items = list(self.ledger.view.items)
        start = self._draw(st.integers(0, len(items) - 1))
        stop = self._draw(st.integers(start + 1, min(len(items), start + 6)))
        numbers = sorted(number for item in items[start:stop] for number in numbers_of(item))
        repeated = self._draw(st.sampled_from([0, *numbers]))
        if any(isinstance(item, Summary) and repeated in numbers_of(item) for item in items[start:stop]):
            repeated = 0
        sources = ranges_of([number for number in numbers if number != repeated])
        text = f"Summary {len(self.made_of) + 1}."
        inside = [item for item in items[start:stop] if isinstance(item, Summary) and item.sources]
        self.made_of[text] = [item.message.text for item in inside]
        if [item.sources for item in inside] == [sources]:
            self.made_of[text] = self.made_of[inside[0].message.text]
        summary = SummarizedSpan(text=text, role="user", sources=sources, tokens=0, depth=1)
        behind = [kept(repeated, repeated)] if repeated else []
        stands = (*view_items(items[:start]), summary, *behind, *view_items(items[stop:]))
        self.ledger = compact(self.ledger, *stands)

    def grow(self) -> None:
        self.ledger = self.ledger.append(talk(3).entries[0])

    def rewind(self) -> None:
        to = self._draw(st.integers(1, len(self.ledger.entries)))
        self.ledger = self.ledger.append(Rewound(at=2.0, to=to, discard_later=self._draw(st.booleans())))


@st.composite
def grown(draw: st.DrawFn) -> Grown:
    return Grown(draw)


def numbers_of(item: Item) -> list[int]:
    if isinstance(item, Summary):
        return [number for span in item.sources for number in range(span.first, span.last + 1)]
    return [item.number]


def ranges_of(numbers: Sequence[int]) -> tuple[Numbers, ...]:
    starts = [number for number in numbers if number - 1 not in numbers]
    ends = [number for number in numbers if number + 1 not in numbers]
    return tuple(Numbers(first=first, last=last) for first, last in zip(starts, ends, strict=True))


@given(grown())
def test_summaries_of_summaries_lead_to_all_originals_by_the_way_they_were_made(session: Grown) -> None:
    ledger = session.ledger
    for item in ledger.view.items:
        if isinstance(item, Summary) and item.sources:
            assert sorted(leaves(ledger, in_view(item))) == numbers_of(item)
            if len(numbers_of(item)) > 1:
                expansion = expand(ledger, in_view(item).handle)
                made_of = [child.first_line for child in expansion.children if child.kind == "summary"]
                assert sorted(made_of) == sorted(session.made_of[expansion.text])


@given(ledgers(), st.data())
def test_a_range_yields_its_messages_in_order_whatever_summaries_there_are(ledger, data) -> None:
    if not ledger.messages:
        return
    first = data.draw(st.integers(1, len(ledger.messages)))
    last = data.draw(st.integers(first, len(ledger.messages)))
    left = [number for number in range(first, last + 1) if number not in ledger.retracted()]
    if not left:
        with pytest.raises(BadInput, match="no part of this conversation any more"):
            recall(ledger, f"lw:{first}-lw:{last}")
        return
    got = recall(ledger, f"lw:{first}-lw:{last}")
    assert [one.number for one in got] == left
    assert [one.message for one in got] == [ledger.message(number) for number in left]


@settings(max_examples=30)
@given(ledgers())
def test_a_stored_ledger_expands_like_one_in_memory(ledger: Ledger) -> None:
    stored = Elsewhere(ledger).reopened
    for item in ledger.view.items:
        if isinstance(item, Summary) and item.sources:
            handle = in_view(item).handle
            assert expand(stored, handle) == expand(ledger, handle)
