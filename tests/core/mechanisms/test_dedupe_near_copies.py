"""Texts that share most of their lines find each other, whatever else there is."""

from random import Random

import pytest

from lowwater.core.mechanisms.dedupe import Lines, NearCopies
from lowwater.testing.views import lines


def changed(text: str, count: int, random: Random) -> str:
    own = text.splitlines()
    for at in random.sample(range(len(own)), count):
        own[at] = f"something else {random.random()}"
    return "\n".join(own)


def test_five_percent_edited_is_found_and_forty_is_not_wherever_the_edits_are() -> None:
    random = Random(1)
    missed = wrong = 0
    for trial in range(200):
        text = lines(100, f"word{trial}")
        copies = NearCopies()
        assert copies.find_or_add(Lines(1, text)) is None
        missed += copies.find_or_add(Lines(2, changed(text, 5, random))) != 1
        wrong += copies.find_or_add(Lines(3, changed(text, 40, random))) is not None
    assert (missed, wrong) == (0, 0)


def test_of_texts_that_are_near_the_first_is_the_one_to_point_to() -> None:
    copies = NearCopies()
    found = [copies.find_or_add(Lines(number, lines(20))) for number in (1, 2, 3)]
    assert found == [None, 1, 1]


@pytest.mark.parametrize(
    "text", ["", "\n" * 50, "one line", "a\nb\nc"], ids=["empty", "blank", "one line", "few lines"]
)
def test_texts_of_a_few_lines_are_no_near_copies(text: str) -> None:
    copies = NearCopies()
    assert [copies.find_or_add(Lines(number, text)) for number in (1, 2)] == [None, None]
