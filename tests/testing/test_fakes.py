import pytest

from lowwater.errors import BadSetting
from lowwater.ports import Clock, Tokenizer
from lowwater.testing.fakes import ScriptedClock, WordTokenizer


def test_the_clock_stands_still_until_it_is_advanced() -> None:
    clock = ScriptedClock(100.0)
    assert (clock.now(), clock.now()) == (100.0, 100.0)
    clock.advance(301.5)
    assert clock.now() == 401.5


def test_the_clock_reads_the_given_times_and_stays_at_the_last() -> None:
    clock = ScriptedClock(times=[5.0, 8.0])
    assert [clock.now() for _ in range(4)] == [5.0, 8.0, 8.0, 8.0]
    clock.advance(2)
    assert clock.now() == 10.0


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_the_clock_does_not_run_backwards(seconds: float) -> None:
    with pytest.raises(BadSetting, match="only goes forward"):
        ScriptedClock().advance(seconds)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("  \n\t", 0), ("one two", 2), ("x = f(a_b, 12)", 8), ("naïve café", 2), ("👍 ok!", 3)],
    ids=repr,
)
def test_words_and_marks_are_tokens(text: str, tokens: int) -> None:
    assert WordTokenizer().count(text) == tokens


def test_the_fakes_fit_their_ports() -> None:
    clock: Clock = ScriptedClock()
    tokenizer: Tokenizer = WordTokenizer()
    assert (clock.now(), tokenizer.vocabulary) == (0.0, "words")
