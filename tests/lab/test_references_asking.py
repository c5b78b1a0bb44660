from lowwater.lab.references.reachability import MOST_WORDS, Sight, words_for
from lowwater.lab.references.uses import uses_of
from tests.lab.reference_sessions import answered, asked, call, said


def words(messages, *, shown=None):
    (use,) = uses_of(messages)
    earlier = messages[: use.number - 1]
    return words_for(use, messages, Sight(earlier if shown is None else shown)).split()


SESSION = [
    asked("please repair the invoice totals"),
    said("reading billing first", call("1", '{"path": "src/billing.py"}')),
    answered("1", "def round_half_even(amount): ..."),
    said("the totals use round_half_even from src/billing.py wrongly"),
]


def test_the_words_before_the_reference_come_first_the_nearest_first_of_all():
    assert words(SESSION)[:2] == ["totals", "the"]


def test_the_answer_before_and_then_the_user_fill_up():
    assert words(SESSION)[2:] == [
        "src/billing.py",
        "first",
        "billing",
        "reading",
        "invoice",
        "repair",
        "please",
    ]


def test_neither_the_reference_nor_what_follows_it_is_asked_by():
    assert "round_half_even" not in words(SESSION)
    assert "wrongly" not in words([*SESSION[:1], asked("wrongly"), *SESSION[1:]])[:2]


def test_only_words_that_are_visible_are_used():
    assert words(SESSION, shown=[asked("the totals")]) == ["totals", "the"]
    assert words(SESSION, shown=[]) == []


def test_no_more_words_than_declared():
    many = " ".join(f"word{chr(97 + at % 26)}{chr(97 + at // 26)}" for at in range(60))
    session = [asked(many), *SESSION[1:3], said(f"{many} round_half_even")]
    assert len(words(session)) == MOST_WORDS


def test_other_arguments_of_the_call_are_at_hand_too():
    edit = call("2", '{"path": "src/billing.py", "old": "round_half_even"}')
    assert words([*SESSION[:3], said("", edit)])[0] == "src/billing.py"
