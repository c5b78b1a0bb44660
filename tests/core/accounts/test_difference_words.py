"""A difference reads well in a terminal: one line per change, columns aligned, nothing for what stayed but a count."""

import re

from hypothesis import given

from lowwater.core.accounts.difference import difference, words_of
from lowwater.core.entries import Appended, Compacted, KeptRange, ModelChanged, Numbers, PreambleChanged
from lowwater.core.ledger import Ledger
from lowwater.core.messages import Message, Text
from lowwater.testing.strategies import ledgers
from tests.core.accounts.test_difference import compacted, elided, kept, session, summary


def changed() -> tuple[Ledger, Ledger]:
    before = session()
    after = compacted(before, summary(1, 4), kept(5, 6), elided(7), kept(8, 8))
    after = after.append(Appended(at=2.0, messages=(_user("And c?"),), tokens=(5,)))
    after = after.append(PreambleChanged(at=3.0, system=b'"Be brief."', tokens=1_200))
    return before, after.append(ModelChanged(at=4.0, model="qwen3-coder"))


def _user(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),))


def test_one_line_per_change_and_a_count_for_what_stayed() -> None:
    before, after = changed()
    written = words_of(difference(before.view, after.view)).splitlines()
    kinds = [line.split()[0] for line in written[1:]]
    assert kinds == ["model", "preamble", "summarised", "(2", "edited", "(1", "appended"]
    assert written[0].startswith("8 items, ")
    assert "tool result" in written[5]
    assert "4 items → 1 item" in written[3]


def test_sizes_stand_in_columns() -> None:
    before, after = changed()
    written = words_of(difference(before.view, after.view)).splitlines()
    told = [line for line in written[2:] if "unchanged" not in line]
    arrows = {line.index(" → ") for line in told if "→" in line}
    gains = {re.search(r"[+−][\d,]+", line).end() for line in told}  # type: ignore[union-attr]
    assert len(told) == 4
    assert len(arrows) == 1, "the sizes before end above each other"
    assert len(gains) == 1, "and so do the gains"


def test_a_diff_is_shown_on_demand_only() -> None:
    before, after = changed()
    found = difference(before.view, after.view)
    assert "+[elided]" not in words_of(found)
    full = words_of(found, full=True)
    assert "+[elided]" in full
    assert "-line 0 says nothing new" in full
    assert "+They read a." in full


def test_no_difference_is_said_in_one_line() -> None:
    view = session().view
    assert words_of(difference(view, view)).startswith("no difference: 8 items, ")


def test_many_spans_are_not_all_named() -> None:
    messages = tuple(_user(f"message {number}") for number in range(1, 20))
    before = Ledger().append(Appended(at=0.0, messages=messages, tokens=(5,) * 19))
    odd = tuple(KeptRange(numbers=Numbers(first=number, last=number)) for number in range(1, 20, 2))
    after = before.append(Compacted(at=1.0, mechanisms=("elide",), items=odd))
    written = words_of(difference(before.view, after.view))
    assert written.count("dropped") == 9
    back = words_of(difference(after.view, before.view))
    assert back.count("appended") == 9


@given(ledgers(), ledgers())
def test_any_two_views_can_be_told(one: Ledger, other: Ledger) -> None:
    found = difference(one.view, other.view)
    written = words_of(found, full=True)
    assert written
    assert len(words_of(found).splitlines()) <= 3 + len(found.changes)
