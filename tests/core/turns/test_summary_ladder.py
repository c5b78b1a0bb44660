"""Specification C and J: retry, another model, the extractive one, a marker; validation, repair, competition, what is too weak."""

from collections.abc import Sequence
from typing import Any

import pytest

from lowwater.core.messages import Message, Text, ToolCall, ToolResult
from lowwater.core.summary.critical import critical_references
from lowwater.core.summary.request import SummaryRequest, Written
from lowwater.core.summary.validation import ENOUGH, REPAIRABLE, coverage
from lowwater.core.turns.effects import Failure, Summarize, SummaryOutcome
from lowwater.core.turns.state import Ladder, SummarizerBackoff
from lowwater.core.turns.summaries import EXTRACTIVE, MARKER, ObtainedSummary, need_for, obtain
from lowwater.testing.fakes import WordTokenizer

WORDS = WordTokenizer()
PATHS = [f"src/module_{number}/handler_{number}.py" for number in range(12)]


def conversation() -> tuple[Message, ...]:
    messages = [
        Message(role="user", parts=(Text(text="Rename every handler, but do not touch the tests."),)),
    ]
    for number, path in enumerate(PATHS):
        call = ToolCall(id=f"c{number}", name="edit", arguments=f'{{"path": "{path}"}}')
        messages += [
            Message(role="assistant", parts=(Text(text=f"Now {path} gets its new name."), call)),
            Message(
                role="tool",
                parts=(ToolResult(call_id=call.id, parts=(Text(text="edited, 40 lines changed " * 20),)),),
            ),
        ]
    return tuple(messages)


def request(max_tokens: int = 600) -> SummaryRequest:
    messages = conversation()
    numbers = tuple(range(1, len(messages) + 1))
    return SummaryRequest(
        messages=messages, numbers=numbers, max_tokens=max_tokens, newest_user=messages[0], recall=True
    )


GOOD = Written(
    text="## Goal\n- Rename every handler, but do not touch the tests.\n\n## Relevant Files\n- "
    + "\n- ".join(PATHS),
    by="good",
)
BETTER = Written(text=GOOD.text + "\n- all of them were edited, 40 lines changed in each", by="better")
HALF = Written(
    text="## Goal\n- Rename every handler, but do not touch the tests.\n\n## Relevant Files\n- "
    + "\n- ".join(PATHS[:8]),
    by="half",
)
NEARLY = Written(
    text="## Goal\n- Rename every handler, but do not touch the tests.\n\n## Relevant Files\n- "
    + "\n- ".join(PATHS[:2]),
    by="nearly",
)
LOREM = Written(
    text="Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore. "
    * 3,
    by="lorem",
)
UNBOUND = Written(text=GOOD.text.replace(", but do not touch the tests", ""), by="unbound")
OPPOSITE = Written(text=UNBOUND.text + "\n- tests/test_all.py: the agent may touch the tests.", by="opposite")
WEAK = Written(text="Some files were looked at and some things were changed in a few places. " * 3, by="weak")
REFUSAL = Written(text="I'm sorry, but I can't help with that request about this conversation.", by="no")


class Played:
    """The ladder run against outcomes by rung; what it asked is kept."""

    def __init__(
        self,
        outcomes: dict[int, Sequence[SummaryOutcome]],
        *,
        must: bool = False,
        max_tokens: int = 600,
        **ladder: Any,
    ) -> None:
        self.asked: list[Summarize] = []
        need = need_for(request(max_tokens), replaces=3_000, tokenizer=WORDS, must=must)
        options = {"rungs": len(outcomes), **ladder}
        steps = obtain(need, Ladder(**options), at=100.0)
        left = {rung: list(each) for rung, each in outcomes.items()}
        try:
            effect = next(steps)
            while True:
                self.asked.append(effect)
                effect = steps.send(left[effect.rung].pop(0))
        except StopIteration as done:
            self.obtained: ObtainedSummary = done.value

    @property
    def by(self) -> str:
        return self.obtained.judged.written.by if self.obtained.judged else ""

    @property
    def rungs(self) -> list[int]:
        return [effect.rung for effect in self.asked]


FAILED = Failure(kind="failed", at=130.0)
NETWORK = Failure(kind="network", at=130.0)
AUTH = Failure(kind="auth", at=130.0)
LATE = Failure(kind="timeout", at=160.0)


def test_the_first_good_summary_is_taken() -> None:
    played = Played({0: [GOOD], 1: [BETTER]})
    assert (played.by, played.rungs) == ("good", [0])
    assert played.obtained.failed_at is None


@pytest.mark.parametrize(
    ("outcomes", "rungs"),
    [
        ({0: [FAILED, GOOD]}, [0, 0]),
        ({0: [NETWORK, GOOD]}, [0, 0]),
        ({0: [FAILED, FAILED], 1: [GOOD]}, [0, 0, 1]),
        ({0: [AUTH], 1: [GOOD]}, [0, 1]),
        ({0: [LATE], 1: [GOOD]}, [0, 1]),
        ({0: [REFUSAL], 1: [GOOD]}, [0, 1]),
    ],
    ids=["failed once", "network once", "failed twice", "no access", "too late", "refused"],
)
def test_a_failure_is_retried_where_that_may_help_and_then_another_model_is_asked(
    outcomes: dict[int, Sequence[SummaryOutcome]], rungs: list[int]
) -> None:
    played = Played(outcomes)
    assert (played.by, played.rungs) == ("good", rungs)
    assert played.obtained.failed_at is None, "somebody delivered"


@pytest.mark.parametrize(
    "bad",
    [
        Written(text="ok", by="short"),
        Written(text="", by="empty"),
        REFUSAL,
        Written(text=GOOD.text, by="cut", cut_off=True),
        Written(text=GOOD.text + " word" * 4_000, by="grown"),
        Written(text=GOOD.text + " word" * 900, by="long"),
    ],
    ids=["short", "empty", "refusal", "cut off", "larger than what it replaces", "far too long"],
)
def test_what_is_no_summary_is_not_repaired_into_one(bad: Written) -> None:
    played = Played({0: [bad]})
    assert played.by == EXTRACTIVE
    assert played.obtained.failed_at == 100.0


def test_a_summary_that_is_nearly_good_is_repaired_and_keeps_the_score_of_what_was_written() -> None:
    played = Played({0: [NEARLY], 1: [GOOD]})
    judged = played.obtained.judged
    assert judged is not None
    assert (judged.written.by, played.rungs) == ("nearly", [0])
    assert judged.verdict.accepted
    assert judged.verdict.because.code == "repaired"
    assert REPAIRABLE <= judged.verdict.score < ENOUGH
    assert judged.verdict.repaired_score == 1.0, "and of what was repaired"
    assert all(path in judged.written.text for path in PATHS)
    assert played.obtained.low, "that it had to be repaired is remembered"
    assert Played({0: [NEARLY], 1: [GOOD]}, accepts_weak=False).by == "good", "where weak ones are refused"


def test_names_that_a_good_summary_left_out_are_listed_behind_it_as_far_as_there_is_room() -> None:
    played = Played({0: [HALF]})
    judged = played.obtained.judged
    assert judged is not None
    assert judged.written.text.startswith(HALF.text)
    assert all(path in judged.written.text for path in PATHS)
    assert judged.verdict.because.code == "accepted"
    assert judged.verdict.score < 1.0, "what was written is judged"
    assert played.obtained.rejected == ()
    assert WORDS.count(judged.written.text) <= WORDS.count(HALF.text) + 3_000 // 30
    complete = Played({0: [GOOD]}).obtained.judged
    assert complete is not None
    assert complete.written.text == GOOD.text


@pytest.mark.parametrize("competing", [True, False], ids=["competing", "in order"])
@pytest.mark.parametrize("accepts_weak", [True, False], ids=["accept", "refuse"])
@pytest.mark.parametrize("bad", [LOREM, WEAK], ids=["Lorem ipsum", "generalities"])
def test_a_text_about_nothing_never_stands_where_there_is_another(
    bad: Written, *, accepts_weak: bool, competing: bool
) -> None:
    ladder = {"accepts_weak": accepts_weak, "competing": competing}
    for others, by in (((NEARLY,), "nearly"), ((HALF,), "half"), ((BETTER,), "better"), ((), EXTRACTIVE)):
        if by == "nearly" and not accepts_weak:
            continue
        wins = EXTRACTIVE if competing and by in {"nearly", "half"} else by
        for first in (0, len(others)):
            outcomes: list[Written] = [*others[:first], bad, *others[first:]]
            played = Played({rung: [each] for rung, each in enumerate(outcomes)}, **ladder)
            assert played.by == wins
            judged = played.obtained.judged
            assert judged is not None
            expected = coverage(critical_references(request()), judged.verdict.missing)
            assert judged.verdict.score == pytest.approx(expected), "the score is that of what was written"


@pytest.mark.parametrize("must", [True, False], ids=["must fit", "may wait"])
def test_a_text_about_nothing_does_not_stand_where_there_is_nothing_else_either(*, must: bool) -> None:
    played = Played({0: [LOREM]}, max_tokens=5, must=must)
    assert played.by == (MARKER if must else "")


def test_a_summary_that_turns_a_prohibition_around_never_stands() -> None:
    played = Played({0: [OPPOSITE], 1: [GOOD]})
    assert played.by == "good"
    assert [each.code for each in played.obtained.rejected] == ["turned_around"]
    assert Played({0: [OPPOSITE]}).by == EXTRACTIVE


def test_what_the_user_forbade_is_put_back_word_for_word_whatever_the_score() -> None:
    written = UNBOUND
    played = Played({0: [written]})
    judged = played.obtained.judged
    assert judged is not None
    assert judged.written.by == written.by
    assert [each.code for each in played.obtained.rejected] == ["prohibition_dropped"]
    assert judged.verdict.score > 0.6
    assert judged.verdict.repaired_score == 1.0
    assert judged.written.text.startswith(written.text)
    assert '- "Rename every handler, but do not touch the tests."' in judged.written.text
    kept = Played({0: [GOOD]}).obtained.judged
    assert kept is not None
    assert kept.written.text == GOOD.text, "nothing is added to one that says it"


@pytest.mark.parametrize("accepts_weak", [True, False], ids=["the best of the weak", "a marker"])
def test_what_the_user_forbade_stands_in_the_last_resort_too(*, accepts_weak: bool) -> None:
    played = Played({0: [WEAK]}, max_tokens=5, must=True, accepts_weak=accepts_weak)
    judged = played.obtained.judged
    assert judged is not None
    assert "do not touch the tests" in judged.written.text


def test_a_prohibition_outlives_every_update_of_the_summary() -> None:
    told, said = conversation(), ""
    for turn in range(4):
        messages = told if turn == 0 else told[1:]
        asked = SummaryRequest(messages=messages, max_tokens=600, previous=said)
        need = need_for(asked, replaces=3_000, tokenizer=WORDS, must=False)
        steps = obtain(need, Ladder(rungs=1), at=100.0)
        next(steps)
        with pytest.raises(StopIteration) as done:
            steps.send(UNBOUND)
        said = done.value.value.judged.written.text
        assert said.count("do not touch the tests") == 1


def test_the_time_of_the_last_failure_is_told() -> None:
    assert Played({0: [FAILED, FAILED], 1: [LATE]}).obtained.failed_at == 160.0


def test_competing_summarizers_are_all_asked_and_the_best_wins() -> None:
    played = Played({0: [HALF], 1: [BETTER], 2: [REFUSAL]}, competing=True)
    assert (played.by, played.rungs) == ("better", [0, 1, 2])
    assert Played({0: [HALF], 1: [REFUSAL]}, competing=True).by == EXTRACTIVE, "which competes with them"
    assert Played({0: [HALF], 1: [GOOD]}).by == "half", "without competition the first that is good"


def test_time_is_shared_by_those_who_may_still_be_asked() -> None:
    played = Played({0: [LATE], 1: [LATE], 2: [LATE]})
    assert [round(effect.share, 2) for effect in played.asked] == [0.33, 0.5, 1.0]


def test_the_best_of_the_weak_goes_on_or_none_as_the_setting_says() -> None:
    # So little room that nothing can be repaired and nothing extracted.
    weaker: dict[int, Sequence[SummaryOutcome]] = {
        0: [WEAK],
        1: [Written(text=WEAK.text + PATHS[0], by="weak but one")],
    }
    accepted = Played(weaker, max_tokens=5)
    assert accepted.obtained.judged is not None
    assert not accepted.obtained.judged.verdict.accepted
    assert accepted.by == "weak but one"
    refused = Played(weaker, max_tokens=5, accepts_weak=False)
    assert refused.obtained.judged is None
    assert refused.obtained.failed_at == 100.0


def test_where_it_must_fit_a_marker_stands_for_what_has_no_summary() -> None:
    played = Played({0: [FAILED, FAILED]}, max_tokens=5, must=True, accepts_weak=False)
    judged = played.obtained.judged
    assert judged is not None
    assert judged.written.by == MARKER
    assert "lw:1 to lw:25" in judged.written.text, "it says how to get back what was left out"


def test_without_a_model_nothing_fails() -> None:
    played = Played({})
    assert (played.by, played.asked) == (EXTRACTIVE, [])
    assert played.obtained.failed_at is None


def test_repeatedly_low_scores_switch_to_the_next_strategy_and_an_hour_switches_back() -> None:
    standing = SummarizerBackoff()
    for _ in range(2):
        standing = standing.after(low=True, now=50.0)
    assert standing.after(low=False, now=50.0) == SummarizerBackoff(), (
        "a good one counts from the start again"
    )
    moved = standing.after(low=True, now=50.0)
    assert moved.first == 1
    assert moved.after(low=None, now=60.0) == moved
    assert moved.at(3_000.0) == moved
    assert moved.at(3_650.0) == SummarizerBackoff()
    assert Played({0: [GOOD], 1: [HALF]}, first=1).rungs == [1]


def test_where_there_is_nothing_to_tell_the_summary_says_what_was_left_out() -> None:
    chatter = tuple(Message(role="user", parts=(Text(text="ok " * 300),)) for _ in range(9))
    asked = SummaryRequest(messages=chatter, numbers=tuple(range(1, 10)), max_tokens=600, recall=True)
    need = need_for(asked, replaces=2_700, tokenizer=WORDS, must=False)
    with pytest.raises(StopIteration) as done:
        next(obtain(need, Ladder(), at=100.0))
    judged = done.value.value.judged
    assert judged is not None
    assert judged.written.by == EXTRACTIVE
    assert judged.verdict.accepted
