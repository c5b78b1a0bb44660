"""A client that goes back takes messages back; one that compacts its own list does not, and can recall what it dropped."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.entries import Appended, Rewound
from lowwater.core.ledger import Ledger
from lowwater.core.messages import Message
from lowwater.core.recall.expand import expand
from lowwater.core.recall.search import recall
from lowwater.core.recall.tools import ExpandArguments, answer_expand
from lowwater.core.reconcile import branch_of, entries_for, goes_back, reconcile
from lowwater.errors import BadInput
from lowwater.testing.strategies.ledgers import draw_compaction
from lowwater.testing.views import Script
from tests.core.test_ledger_loading import Elsewhere

SUMMARY = "This session is being continued from a previous conversation. The summary: files were read."


def worked(turns: list[int]) -> list[Message]:
    """Return a conversation in which each turn calls so many tools one after the other; every text is its own."""
    script = Script()
    for turn, calls in enumerate(turns):
        script.user(f"question {turn}")
        for call in range(calls):
            script.calls("bash", {"command": f"{turn} {call}"}, f"output {turn} {call}")
        script.says(f"answer {turn}")
    return script.messages()


def take(ledger: Ledger, sent: list[Message]) -> Ledger:
    """Return the ledger after a client sent this list."""
    found = reconcile(ledger, sent)
    return ledger.extend(entries_for(found, [len(message.text) + 1 for message in found.new], 9.0))


def texts(messages: list[Message]) -> list[str]:
    return [
        text
        for message in messages
        for text in (message.text, *(result.text for result in message.results))
        if text
    ]


def is_recalled(ledger: Ledger, words: str) -> bool:
    """Return whether a search finds these words, beside a match or in it."""
    return any(
        words in text for one in recall(ledger, words) for text in (one.text, *(n.text for n in one.near))
    )


@st.composite
def sessions(draw: st.DrawFn) -> tuple[list[int], Ledger]:
    """Draw how many calls each turn made, and the ledger of that conversation, perhaps compacted by Lowwater."""
    turns = draw(st.lists(st.integers(0, 2), min_size=3, max_size=6))
    ledger = Ledger().extend(
        Appended(at=1.0, messages=(message,), tokens=(len(message.text) + 1,)) for message in worked(turns)
    )
    compaction = draw_compaction(draw, ledger, 2.0) if draw(st.booleans()) else None
    return turns, ledger if compaction is None else ledger.append(compaction)


@given(sessions(), st.data())
def test_what_a_client_took_back_is_never_recalled(
    drawn: tuple[list[int], Ledger], data: st.DataObject
) -> None:
    turns, ledger = drawn
    messages = worked(turns)
    kept = worked(turns[: data.draw(st.integers(1, len(turns) - 1))])
    dropped = messages[len(kept) :]
    new = Script().user("Another way.").messages() if data.draw(st.booleans()) else []
    after = take(ledger, [*kept, *new])
    assert [after.message(number) for number in branch_of(after)] == [*kept, *new]
    assert after.retracted() == set(range(len(kept) + 1, len(messages) + 1))
    for one in (after, Elsewhere(after).reopened()):
        assert one.view == after.view
        assert one.retracted() == after.retracted()
        for text in texts(dropped):
            assert not is_recalled(one, text), text
        for text in texts(kept):
            assert is_recalled(one, text), text
        for number in after.retracted():
            for look in (recall, expand):
                with pytest.raises(BadInput, match="no part of this conversation any more"):
                    look(one, f"lw:{number}")
        everything = f"lw:1-{len(after.messages)}"
        assert [each.number for each in recall(one, everything)] == branch_of(after)
    assert after.history()[: len(messages)] == messages, "the ledger has it still"


def compactions(turns: list[int], kept: int) -> dict[str, list[Message]]:
    """Return the list of a client after its own compaction, as different clients make it; `kept` turns stay at the end."""
    messages, summary = worked(turns), Script().user(SUMMARY).messages()
    tail = messages[len(worked(turns[:-kept])) :]
    asked = [message for message in messages if message.role == "user"]
    return {
        "a summary of everything": summary,
        "a summary and the newest messages": [*summary, *tail],
        "the first answer, a summary and the newest messages": [*worked(turns[:1]), *summary, *tail],
        "the first answer and a summary": [*worked(turns[:1]), *summary],
        "what the user said and a summary": [*asked, *summary],
        "the first question and a summary": [*asked[:1], *summary],
        "the middle left out": [*worked(turns[:1]), *tail],
        "the oldest left out": tail,
    }


@pytest.mark.parametrize("shape", list(compactions([0, 0, 0], 1)))
def test_what_a_clients_own_compaction_dropped_is_recalled(shape: str) -> None:
    @given(sessions(), st.data())
    def check(drawn: tuple[list[int], Ledger], data: st.DataObject) -> None:
        turns, ledger = drawn
        kept = data.draw(st.integers(1, len(turns) - 2))
        listed = [*compactions(turns, kept)[shape], *Script().user("Go on.").messages()]
        after = take(ledger, listed)
        assert [after.message(number) for number in branch_of(after)] == listed
        assert after.retracted() == frozenset()
        for one in (after, Elsewhere(after).reopened()):
            assert one.view == after.view
            for text in texts(worked(turns)):
                assert is_recalled(one, text), text

    check()


def test_a_new_answer_to_the_same_question_takes_the_old_one_back() -> None:
    messages = worked([0, 0])
    after = take(take(Ledger(), messages), messages[:-1])
    assert after.retracted() == {len(messages)}


def test_a_rewind_by_hand_shows_what_was_taken_back_again() -> None:
    messages = worked([0, 0])
    ledger = take(Ledger(), messages)
    went = len(ledger.entries)
    back = take(ledger, [*messages[:2], *Script().user("Another way.").messages()])
    assert back.retracted() == {3, 4}
    undone = back.append(Rewound(at=10.0, to=went))
    assert undone.retracted() == frozenset()
    assert is_recalled(undone, "question 1")


@pytest.mark.parametrize(
    ("known", "dropped", "new", "back"),
    [
        (worked([0]), worked([0]), Script().user("Again.").messages(), True),
        (worked([0]), worked([0]), [], True),
        ([], worked([0]), [], False),
        ([], worked([0]), Script().user("Again.").messages(), False),
        (worked([0]), worked([0]), Script().user("Again.").says("Done.").messages(), False),
        (worked([0]), worked([0]), Script().user(SUMMARY).messages(), False),
        (worked([0])[:1], worked([0])[1:], Script().user("Stop.").messages(), False),
        (worked([0, 0])[:3], worked([0, 0])[3:], Script().user("Stop.").messages(), True),
        (worked([0, 0])[:3], worked([0, 1])[3:], Script().user("Stop.").messages(), False),
    ],
    ids=[
        "other words",
        "nothing",
        "an empty list",
        "another beginning",
        "answers nobody saw",
        "a summary",
        "no answer stays",
        "an answer that was broken off",
        "the middle of a turn",
    ],
)
def test_what_tells_going_back_from_a_compaction(
    known: list[Message], dropped: list[Message], new: list[Message], back: bool
) -> None:
    assert goes_back(known, dropped, new) is back


@pytest.mark.parametrize(
    "words",
    [
        "Zusammenfassung des bisherigen Gespraechs: Dateien wurden gelesen.",
        "以下是之前对话的摘要：文件已读。",
        "Previous conversation history was: files were read.",
        "Handover note: files were read, tests are next.",
        "Files were read. " * 100,
    ],
    ids=["German", "Chinese", "history", "handover", "long"],
)
def test_a_summary_in_other_words_is_no_going_back(words: str) -> None:
    messages = worked([0, 0, 0])
    assert not goes_back(messages[:2], messages[2:], Script().user(words).messages())


def test_a_call_is_expanded_without_a_result_that_was_taken_back() -> None:
    script = Script().user("question").says("answer").user("look").calls("bash", {"command": "ls"}, "SECRET")
    before = script.messages()
    ledger = Ledger().extend(
        Appended(at=1.0, messages=(message,), tokens=(len(message.text) + 1,)) for message in before
    )
    call = next(at for at, message in enumerate(before, start=1) if message.calls)
    stopped = Script().user("Stop, do something else.").messages()
    back = take(ledger, [*before[:call], *stopped])
    assert back.retracted()
    answer = answer_expand(back, ExpandArguments(handle=f"lw:{call}"), 5_000, len)
    assert answer is not None
    assert "SECRET" not in answer
