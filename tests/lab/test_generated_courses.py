"""Generated courses: frozen, and as various as declared."""

from hashlib import sha256

import msgspec
import pytest

from tests.generated.courses import TURNS, generate, is_for_tuning


def test_the_sessions_are_those_that_were_frozen():
    drawn = b"".join(
        msgspec.json.encode(generate(sheet, seed)) for sheet in ("r10", "r02") for seed in range(20)
    )
    # Which answers called tools came later, and is not drawn.
    drawn = drawn.replace(b',"calls_tools":false', b"")
    assert sha256(drawn).hexdigest().startswith("cbae30025c4034d7")


def test_sheets_have_sessions_of_their_own():
    assert generate("r10", 1).turns != generate("r05", 1).turns


def test_a_third_is_for_tuning():
    assert sum(map(is_for_tuning, range(198))) == 66


@pytest.fixture(scope="module")
def courses():
    return [generate("r10", seed) for seed in range(60)]


def test_lengths_span_the_declared_range(courses):
    counts = [len(course.turns) for course in courses]
    assert TURNS[0] <= min(counts) < 30
    assert 400 < max(counts) <= TURNS[1]


def test_some_sessions_pause_beyond_any_lifetime_and_some_never_pause(courses):
    longest = [max(turn.gap for turn in course.turns) for course in courses]
    assert min(longest) < 300
    assert max(longest) > 7_200


def test_eliding_never_grows_a_result(courses):
    assert all(turn.elided <= turn.results for course in courses for turn in course.turns)


def test_a_session_begins_with_a_user(courses):
    assert all(course.turns[0].results == 0 < course.turns[0].text for course in courses)
