"""Each cache mark on a message serves another request; there are never more than the provider takes (specification F)."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.cache.marks import LOOKBACK, Seams, place_marks

TURNS = [1] * 30
"""One block a message."""


def found_from(mark: int, shape: Sequence[int]) -> list[int]:
    """The messages whose end a mark at the end of message `mark` looks at: twenty blocks, its own included."""
    blocks = [message for message, count in enumerate(shape) for _ in range(count)]
    end = sum(shape[: mark + 1]) - 1
    looked_at = set(range(max(0, end - LOOKBACK + 1), end + 1))
    return [message for message in set(blocks) if sum(shape[: message + 1]) - 1 in looked_at]


@pytest.mark.parametrize(
    ("count", "marked"), [(0, ()), (1, (0,)), (2, (0, 1)), (3, (0, 1, 2)), (10, (7, 8, 9))], ids=str
)
def test_f_without_seams_the_last_three_messages_are_marked(count: int, marked: tuple[int, ...]) -> None:
    assert place_marks([1] * count) == marked


@pytest.mark.parametrize("shared", [10, 20, 28, 30])
def test_f_the_last_three_stay_where_the_lookback_finds_the_last_request(shared: int) -> None:
    assert place_marks(TURNS, seams=Seams(shared=shared)) == (27, 28, 29)


def test_a_turn_of_many_blocks_gets_a_mark_where_the_last_request_was_marked() -> None:
    """Thirty calls in one answer, and their results in one message, lie further apart than a mark looks back."""
    shape = [1, 1, 1, 30, 30]
    assert place_marks(shape, seams=Seams(shared=3)) == (2, 3, 4)
    chat = [1, 1, 1, 31, *[1] * 30]
    assert place_marks(chat, seams=Seams(shared=3)) == (2, len(chat) - 2, len(chat) - 1)


def test_the_compaction_edge_is_marked_beside_the_last_request_and_the_newest_message() -> None:
    assert place_marks(TURNS, seams=Seams(shared=25, edge=6)) == (6, 24, 29)


def test_right_behind_a_compaction_the_end_of_what_stayed_the_same_is_marked() -> None:
    assert place_marks(TURNS, seams=Seams(shared=4, edge=12)) == (3, 12, 29)


def test_an_earlier_edge_is_marked_itself_where_nothing_else_would_find_it() -> None:
    near = Seams(shared=14, edge=20, earlier=3)
    assert place_marks(TURNS, seams=near) == (13, 20, 29)
    wide = [1] * 4 + [3] * 26
    assert place_marks(wide, seams=near) == (3, 20, 29)


@pytest.mark.parametrize(
    ("seams", "marked"),
    [
        (Seams(shared=30, edge=29), (27, 28, 29)),
        (Seams(shared=7, edge=6), (6, 28, 29)),
        (Seams(shared=0, edge=0), (0, 28, 29)),
    ],
    ids=["all at the end", "edge and last request in one place", "nothing shared"],
)
def test_marks_that_fall_together_leave_room_for_the_newest_messages(
    seams: Seams, marked: tuple[int, ...]
) -> None:
    assert place_marks(TURNS, seams=seams) == marked


def test_a_mark_moves_back_to_a_message_that_can_carry_it() -> None:
    """At OpenAI an answer cannot."""
    seams = Seams(shared=21, edge=6)
    assert place_marks(TURNS, seams=seams, most=3, carries=lambda at: at % 2 == 1) == (5, 19, 29)
    assert place_marks(TURNS, most=2, lookback=None, carries=lambda at: at % 2 == 0) == (26, 28)
    assert place_marks(TURNS, carries=lambda _: False) == ()


def test_where_two_are_left_they_are_the_edge_and_the_newest() -> None:
    assert place_marks(TURNS, seams=Seams(shared=25, edge=6), most=2, lookback=None) == (6, 29)


@given(
    shape=st.lists(st.integers(1, 40), min_size=1, max_size=40),
    most=st.integers(2, 4),
    data=st.data(),
)
def test_whatever_was_added_the_last_request_is_found_and_the_limit_holds(
    shape: list[int], most: int, data: st.DataObject
) -> None:
    places = st.integers(0, len(shape) - 1)
    shared = data.draw(st.integers(1, len(shape)))
    edge = data.draw(st.none() | places)
    marked = place_marks(shape, seams=Seams(shared=shared, edge=edge), most=most)
    assert len(marked) <= most
    assert list(marked) == sorted(set(marked))
    assert marked[-1] == len(shape) - 1
    if edge is not None:
        assert edge in marked
    if most > 2 or edge is None:
        assert any(shared - 1 in found_from(mark, shape) for mark in marked)
