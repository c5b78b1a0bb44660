import pytest

from lowwater.lab.references.reachability import MOST_ANSWERS, MOST_TOKENS, Scorer, visible_handles
from lowwater.lab.references.uses import uses_of
from tests.lab.reference_sessions import (
    TOKENIZER,
    answered,
    asked,
    call,
    elided,
    ledger_of,
    said,
    shown,
    summarised,
)

ANSWER = said("the retry limit is set by tries_allowed in the settings")
SESSION = [
    asked("what is the retry limit of the uploader?"),
    said("looking at the settings", call("1", '{"path": "settings.py"}')),
    answered("1", "# settings of the uploader\ntries_allowed = 3\n"),
    said("and now the weather", call("2", '{"city": "Bern"}', "weather")),
    answered("2", "sunny"),
]


def outcome(messages, *stands, answer=ANSWER, search=None, offers_recall=True):
    session = [*messages, answer]
    scorer = Scorer(uses_of(session), session, tokenizer=TOKENIZER, offers_recall=offers_recall)
    (found,) = scorer.at(ledger_of(messages, *stands), search)
    return found


def nothing_found(_words, _limit):
    return []


def long_result(before, after):
    """Return a result of about so many tokens before and after the line with the reference."""
    return "\n".join(
        [
            *(f"alpha beta gamma {at}" for at in range(before // 6)),
            "tries_allowed = 3",
            *(f"delta epsilon zeta {at}" for at in range(after // 6)),
        ]
    )


def with_result(text):
    return [*SESSION[:2], answered("1", text), *SESSION[3:]]


def test_what_was_never_compacted_is_in_view():
    found = outcome(SESSION)
    assert (found.place, found.because, found.answers) == ("in_view", "shown", 0)


@pytest.mark.parametrize(
    "stands",
    [
        pytest.param(
            (shown(1, 2), elided(3, "[read · names tries_allowed]"), shown(4, 5)), id="a placeholder"
        ),
        pytest.param((summarised(1, 3, "tries_allowed is 3"), shown(4, 5)), id="a summary"),
    ],
)
def test_what_a_compaction_still_names_is_in_view(stands):
    assert outcome(SESSION, *stands).place == "in_view"


def test_part_of_a_longer_name_in_a_placeholder_is_not_the_reference():
    placeholder = "[read · names tries_allowed_now · recall lw:3]"
    assert outcome(SESSION, shown(1, 2), elided(3, placeholder), shown(4, 5)).place == "one_recall"


def test_an_elided_result_is_reached_by_its_handle_in_one_answer():
    found = outcome(SESSION, shown(1, 2), elided(3, "[read · recall lw:3]"), shown(4, 5))
    assert (found.place, found.because, found.answers) == ("one_recall", "handle", 1)
    assert 0 < found.tokens <= MOST_TOKENS


def test_a_long_result_is_read_around_the_words_and_then_in_ranges():
    session = with_result(long_result(before=6_000, after=6_000))
    found = outcome(session, shown(1, 2), elided(3, "[read · recall lw:3]"), shown(4, 5))
    assert (found.place, found.because) == ("one_recall", "ranges")
    assert 1 < found.answers <= MOST_ANSWERS


def test_beyond_the_ranges_that_are_read_it_is_gone():
    session = with_result(long_result(before=6 * MOST_TOKENS, after=0))
    found = outcome(
        session, shown(1, 2), elided(3, "[read · recall lw:3]"), shown(4, 5), search=nothing_found
    )
    assert (found.place, found.because) == ("gone", "not in what was read")


def test_a_summary_leads_to_its_messages_around_the_words_at_hand():
    found = outcome(SESSION, summarised(2, 3), shown(4, 5), search=nothing_found)
    assert (found.place, found.because) == ("one_recall", "summary")


def dropped(session, search=None):
    """Return the outcome once the result left the view without a trace, its call too."""
    return outcome(session, shown(1, 1), shown(4, len(session)), search=search)


def test_without_a_handle_a_search_with_visible_words_finds_it():
    found = dropped(SESSION)
    assert (found.place, found.because, found.answers) == ("one_recall", "search", 1)


def test_a_message_that_a_search_finds_is_expanded_once():
    found = dropped(with_result(f"the retry limit of the uploader\n{'filler ' * 200}\ntries_allowed = 3"))
    assert (found.because, found.answers) == ("search", 2)


def test_what_is_not_among_the_first_five_matches_is_gone():
    others = [asked("the retry limit of the uploader?") for _ in range(6)]
    found = dropped([*with_result("unrelated\ntries_allowed"), *others])
    assert (found.place, found.because) == ("gone", "not found")


def test_without_visible_words_nothing_can_be_asked():
    found = outcome(SESSION, shown(4, 5), answer=said("tries_allowed"), search=nothing_found)
    assert found.because == "not found"
    found = outcome([SESSION[2], SESSION[4]], shown(2, 2), answer=said("tries_allowed"))
    assert (found.place, found.because) == ("gone", "no words")


def test_a_model_without_recall_has_to_run_the_tool_again():
    stands = (shown(1, 2), elided(3, "[read · recall lw:3]"), shown(4, 5))
    found = outcome(with_result(long_result(before=90, after=90)), *stands, offers_recall=False)
    assert (found.place, found.because) == ("gone", "not offered")
    assert found.tokens == TOKENIZER.count(found.use.origin.text) > 100


def test_a_result_that_the_ledger_itself_lacks_is_gone():
    session = [*SESSION, ANSWER]
    scorer = Scorer(uses_of(session), session, tokenizer=TOKENIZER)
    (found,) = scorer.at(ledger_of(with_result("cut at the door"), shown(1, 2), shown(4, 5)))
    assert (found.place, found.because) == ("gone", "not in the ledger")


def test_uses_are_looked_for_once_before_the_answer_they_are_in():
    session = [*SESSION, ANSWER, asked("and again?"), said("tries_allowed it is")]
    scorer = Scorer(uses_of(session), session, tokenizer=TOKENIZER)
    assert scorer.at(ledger_of(session[:1])) == []
    assert len(scorer.at(ledger_of(session[:5]))) == 1
    assert scorer.at(ledger_of(session[:5])) == scorer.at(ledger_of(session[:7])) == []


def test_messages_of_the_assistant_that_follow_each_other_are_one_answer():
    session = [*SESSION, said("let me see"), ANSWER]
    scorer = Scorer(uses_of(session), session, tokenizer=TOKENIZER)
    (found,) = scorer.at(ledger_of(session[:5]))
    assert found.use.number == 7


def test_visible_handles_are_those_of_placeholders_and_summaries_the_narrowest_first():
    session = [asked("the user writes lw:1"), *SESSION[1:]]
    summary = summarised(2, 3, "see lw:2 to lw:3, (lw:3) and lw:9,11–12, 14 of them")
    ledger = ledger_of(session, shown(1, 1), summary, elided(5, "recall lw:5"))
    found = [(handle.first, handle.last) for handle in visible_handles(ledger.view.items)]
    assert found == [(9, 9), (5, 5), (3, 3), (11, 12), (2, 3)]
