"""The difference of two views accounts for every message once, and its sizes add up."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from lowwater.core.accounts.difference import Change, Difference, difference
from lowwater.core.entries import (
    AlteredMessage,
    Appended,
    Compacted,
    Edit,
    KeptRange,
    ModelChanged,
    Numbers,
    PreambleChanged,
    Rewound,
    SummarizedSpan,
    ViewItem,
)
from lowwater.core.ledger import Ledger
from lowwater.core.messages import Message, Text
from lowwater.core.view import View
from lowwater.testing.strategies import ledgers
from lowwater.testing.views import Script, lines, size


def session() -> Ledger:
    """Two questions, each answered with the help of a tool: messages 1 to 4 and 5 to 8."""
    talk = Script().user("What is in a?").calls("read", {"path": "a"}, lines(40)).says("Lines.")
    return talk.user("And in b?").calls("read", {"path": "b"}, lines(50)).says("More lines.").ledger()


def kept(first: int, last: int) -> KeptRange:
    return KeptRange(numbers=Numbers(first=first, last=last))


def compacted(ledger: Ledger, *stands: ViewItem) -> Ledger:
    return ledger.append(Compacted(at=1.0, mechanisms=("summarize",), items=stands))


def summary(first: int, last: int, text: str = "They read a.", tokens: int = 10) -> SummarizedSpan:
    return SummarizedSpan(text=text, role="user", sources=(Numbers(first=first, last=last),), tokens=tokens)


def elided(number: int) -> AlteredMessage:
    return AlteredMessage(number=number, edits=(Edit(path=(0, 0), by=Text(text="[elided]")),), tokens=9)


def told(found: Difference) -> list[tuple[str, int, int]]:
    return [(change.kind, change.numbers[0].first, change.numbers[-1].last) for change in found.changes]


@st.composite
def pairs(draw: st.DrawFn) -> tuple[View, View]:
    """Draw two views of one session, in either order."""
    ledger = draw(ledgers())
    entries = list(ledger.entries)
    at = draw(st.integers(min_value=0, max_value=len(entries)))
    views = (Ledger().extend(entries[:at]).view, ledger.view)
    return views if draw(st.booleans()) else views[::-1]


@given(ledgers())
def test_a_view_does_not_differ_from_itself(ledger: Ledger) -> None:
    found = difference(ledger.view, ledger.view)
    assert found.is_empty
    assert len(found.changes) <= 1, "what is kept is one run"


@settings(max_examples=50)
@given(pairs())
def test_the_sizes_of_all_changes_add_up(views: tuple[View, View]) -> None:
    before, after = views
    found = difference(before, after)
    assert before.tokens + sum(change.gained for change in found.changes) == after.tokens
    assert sum(change.before.items for change in found.changes) == found.before.items == len(before.items)
    assert sum(change.after.items for change in found.changes) == found.after.items == len(after.items)


@settings(max_examples=50)
@given(pairs())
def test_every_message_is_accounted_for_exactly_once(views: tuple[View, View]) -> None:
    before, after = views
    found = difference(before, after)
    counted = Counter(
        n for change in found.changes for s in change.numbers for n in range(s.first, s.last + 1)
    )
    assert set(counted) == before.shown_numbers() | after.shown_numbers()
    assert not counted or max(counted.values()) == 1


@settings(max_examples=50)
@given(pairs())
def test_it_is_empty_only_if_the_views_show_the_same(views: tuple[View, View]) -> None:
    before, after = views
    same = before.messages == after.messages and [item.tokens for item in before.items] == [
        item.tokens for item in after.items
    ]
    around = (before.system, before.tools, before.preamble_tokens, before.model) == (
        after.system,
        after.tools,
        after.preamble_tokens,
        after.model,
    )
    if difference(before, after).is_empty:
        assert same
        assert around


@settings(max_examples=50)
@given(pairs())
def test_the_way_back_has_the_same_messages_with_the_sizes_exchanged(views: tuple[View, View]) -> None:
    before, after = views
    there, back = difference(before, after), difference(after, before)
    assert sum(change.gained for change in there.changes) == -sum(change.gained for change in back.changes)
    assert _kinds(there, "kept") == _kinds(back, "kept")


def test_a_span_that_was_summarised_is_one_change_with_its_sources() -> None:
    ledger = session()
    found = difference(ledger.view, compacted(ledger, summary(1, 4), kept(5, 8)).view)
    assert told(found) == [("summarised", 1, 4), ("kept", 5, 8)]
    change = found.changes[0]
    assert (change.before.items, change.after.items, change.after.tokens) == (4, 1, 10)
    assert change.parts[0].now == "They read a."


def test_a_summary_that_took_in_more_shows_what_it_was() -> None:
    first = compacted(session(), summary(1, 4), kept(5, 8))
    second = compacted(first, summary(1, 7, "They read a and b.", 12), kept(8, 8))
    found = difference(first.view, second.view)
    assert told(found) == [("summarised", 1, 7), ("kept", 8, 8)]
    part = found.changes[0].parts[0]
    assert (part.was, part.now) == ("They read a.", "They read a and b.")


def test_an_edited_message_says_which_part_and_how_large_it_was_and_is() -> None:
    ledger = session()
    found = difference(ledger.view, compacted(ledger, kept(1, 2), elided(3), kept(4, 8)).view)
    assert told(found) == [("kept", 1, 2), ("edited", 3, 3), ("kept", 4, 8)]
    edited = found.changes[1]
    assert edited.before.tokens == size(ledger.message(3))
    assert edited.after.tokens == 9
    [part] = edited.parts
    assert (part.path, part.what, part.now) == ((0, 0), "tool result", "[elided]")
    assert part.was.startswith("line 0 says")


def test_a_rewind_restores() -> None:
    ledger = session()
    smaller = compacted(ledger, summary(1, 4), kept(5, 6), elided(7), kept(8, 8))
    back = smaller.append(Rewound(at=2.0, to=len(ledger.entries)))
    found = difference(smaller.view, back.view)
    assert told(found) == [("restored", 1, 4), ("kept", 5, 6), ("restored", 7, 7), ("kept", 8, 8)]
    assert found.changes[2].parts[0].was == "[elided]"
    assert sum(change.gained for change in found.changes) > 0


def test_messages_that_came_later_are_appended_and_the_way_back_drops_them() -> None:
    ledger = session()
    more = Message(role="user", parts=(Text(text="And c?"),))
    longer = ledger.append(Appended(at=3.0, messages=(more, more), tokens=(4, 5)))
    assert told(difference(ledger.view, longer.view)) == [("kept", 1, 8), ("appended", 9, 10)]
    assert told(difference(longer.view, ledger.view)) == [("kept", 1, 8), ("dropped", 9, 10)]


def test_another_model_and_another_preamble_are_told() -> None:
    ledger = session()
    other = ledger.append(PreambleChanged(at=1.0, system=b'"Be brief."', tokens=3))
    other = other.append(ModelChanged(at=2.0, model="qwen3-coder"))
    found = difference(ledger.view, other.view)
    assert not found.is_empty
    assert (found.preamble.system, found.preamble.tools, found.preamble.after) == (True, False, 3)
    assert found.models.after == "qwen3-coder"


def _kinds(found: Difference, kind: str) -> list[tuple[object, ...]]:
    changes: list[Change] = [change for change in found.changes if change.kind == kind]
    return sorted((s.first, s.last) for change in changes for s in change.numbers)
