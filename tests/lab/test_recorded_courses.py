"""A recorded session as a course."""

import pytest

from lowwater.lab.course import CourseUse, Timed, course_of, elided_size
from lowwater.testing.fakes import WordTokenizer
from lowwater.testing.views import Script, lines


def played(*, first_prompt: int = 0, uses: tuple[CourseUse, ...] = (), tail: int = 100):
    script = Script().user("please look").calls("read", {"path": "a.py"}, lines(200))
    script.calls("write", {"path": "a.py"}, "ok").says("done").user("thanks")
    messages = [Timed(message=message, at=10.0 * at) for at, message in enumerate(script.messages())]
    return course_of(
        "session", messages, first_prompt=first_prompt, tail=tail, uses=uses, tokenizer=WordTokenizer()
    )


def test_every_answer_is_a_turn():
    assert len(played().turns) == 3


def test_a_result_belongs_to_the_turn_after_its_call():
    results = [turn.results for turn in played().turns]
    assert results[0] == 0
    assert results[1] > 900
    assert 0 < results[2] < 50


def test_an_answer_is_text_of_the_next_turn():
    turns = played().turns
    assert turns[1].text == turns[0].output
    assert turns[2].text == turns[1].output


def test_gaps_are_between_answers():
    assert [turn.gap for turn in played().turns] == [0.0, 20.0, 20.0]


def test_what_no_message_shows_of_the_first_prompt_is_fixed():
    shown = played().turns[0].whole
    assert played(first_prompt=shown + 500).fixed == 500
    assert played(first_prompt=1).fixed == 0


def test_a_read_is_expected_to_be_used_again_more_than_a_write():
    chances = [turn.chance for turn in played().turns]
    assert chances[0] == 0
    assert chances[1] > chances[2]


def test_only_long_results_shrink():
    turns = played().turns
    assert turns[1].elided < turns[1].results // 5
    assert turns[2].elided == turns[2].results
    assert elided_size(199) == 199


@pytest.mark.parametrize(
    ("tail", "left"), [(1, 2), (10_000, 1)], ids=["it left the tail between", "it is still in the tail"]
)
def test_a_result_that_was_just_used_is_not_recalled_again(tail, left):
    uses = (CourseUse(at=1, of=0, tokens=9), CourseUse(at=2, of=0, tokens=9))
    assert len(played(uses=uses, tail=tail).uses or ()) == left


def test_a_session_without_answers_has_no_turns():
    messages = [Timed(message=message, at=0.0) for message in Script().user("hello").messages()]
    course = course_of("s", messages, first_prompt=9, tail=1, uses=(), tokenizer=WordTokenizer())
    assert course.turns == ()
