"""The loop against the rules-checking provider, in both formats: streaming, tools, and no request refused."""

import os
import signal
from pathlib import Path

import pytest

from lowwater.chat.protocol import defer_interrupt
from lowwater.core.messages import Format
from lowwater.errors import AnswerFailed
from lowwater.testing.provider import (
    Call,
    CallTools,
    CutOff,
    DropConnection,
    Fail,
    Provider,
    Refuse,
    Say,
    Seen,
)
from lowwater.testing.provider.answers import Answer
from tests.chat.chat_harness import FORMATS, Watched, chat_at

BOTH = pytest.mark.parametrize("format", FORMATS)
LINES = "\n".join(f"line {number} of a file that has many words in it" for number in range(200))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    (directory / "notes.txt").write_text("one\ntwo\nthree\n")
    (directory / "long.txt").write_text(LINES)
    return directory


def results_in(seen: Seen) -> list[str]:
    """The tool results that a request brings, newest group only."""
    texts: list[str] = []
    for message in reversed(seen.body["messages"]):
        if message["role"] == "tool":
            texts.insert(0, str(message["content"]))
        elif isinstance(message["content"], list) and any("tool_use_id" in b for b in message["content"]):
            texts = [str(block["content"]) for block in message["content"]]
            break
        else:
            break
    return texts


@BOTH
def test_an_answer_is_streamed_piece_by_piece_and_kept_with_its_bill(format: Format, place: Path) -> None:
    watched = Watched()
    with Provider([Say("The answer is forty-two, as always.")]) as provider:
        chat = chat_at(provider, format, place, watched)
        chat.say("What is it?")
        chat.close()
    assert provider.refusals == ()
    assert len(watched.pieces) > 1
    assert watched.text == "The answer is forty-two, as always."
    assert [message["role"] for message in chat.session.view()] == ["user", "assistant"]
    totals = chat.session.status().totals
    assert totals.turns == 1
    assert totals.cost is not None
    assert totals.cost > 0


@BOTH
def test_parallel_tools_run_and_their_results_go_back_in_order(format: Format, place: Path) -> None:
    calls = (
        Call("read_file", {"path": "notes.txt", "offset": 2, "limit": 1}),
        Call("search", {"pattern": "thr.e"}),
        Call("todo", {"items": [{"text": "look", "state": "done"}]}),
    )
    watched = Watched()
    with Provider([CallTools(calls, "Let me look."), Say("Found it.")]) as provider:
        chat = chat_at(provider, format, place, watched)
        chat.say("Where is three?")
        chat.close()
    assert provider.refusals == ()
    assert results_in(provider.requests[1]) == [
        "[notes.txt, lines 2-2 of 3]\ntwo",
        "[1 line]\nnotes.txt:3: three",
        "1 of 1 done\n[x] look",
    ]
    assert watched.text == "Let me look.Found it."


@BOTH
def test_tools_that_change_something_are_asked_for_and_what_is_declined_is_not_done(
    format: Format, place: Path
) -> None:
    calls = (
        Call("write_file", {"path": "new.txt", "content": "x"}),
        Call("shell", {"command": "touch made-by-shell"}),
    )
    watched = Watched()
    with Provider([CallTools(calls), Say("Never mind.")]) as provider:
        chat = chat_at(provider, format, place, watched, allow=lambda _: False)
        chat.say("Do it.")
        chat.close()
    assert provider.refusals == ()
    assert all("declined" in text for text in results_in(provider.requests[1]))
    assert not (place / "new.txt").exists()
    assert not (place / "made-by-shell").exists()


@BOTH
def test_recall_is_offered_and_answered(format: Format, place: Path) -> None:
    script: list[Answer] = [
        Say("The code word is marmalade."),
        CallTools((Call("lowwater_search", {"query": "code word"}),)),
        Say("It was marmalade."),
    ]
    watched = Watched()
    with Provider(script) as provider:
        chat = chat_at(provider, format, place, watched)
        chat.say("Tell me the code word.")
        chat.say("What was it?")
        chat.close()
    assert provider.refusals == ()
    assert "marmalade" in results_in(provider.requests[2])[0]


@BOTH
def test_what_a_model_gets_wrong_about_a_tool_becomes_a_sentence_it_can_read(
    format: Format, place: Path
) -> None:
    calls = (
        Call("teleport", {"to": "Mars"}),
        Call("read_file", {"path": "missing.txt"}),
        Call("read_file", {}),
        Call("search", {"pattern": "("}),
    )
    watched = Watched()
    with Provider([CallTools(calls), Say("Sorry.")]) as provider:
        chat = chat_at(provider, format, place, watched)
        chat.say("Try it.")
        chat.close()
    assert provider.refusals == ()
    first, second, third, fourth = results_in(provider.requests[1])
    assert "no tool 'teleport'" in first
    assert "there is no file missing.txt" in second
    assert "`path` is missing" in third
    assert "no regular expression" in fourth


@BOTH
def test_a_busy_provider_is_asked_again_and_a_refusal_is_one_sentence(format: Format, place: Path) -> None:
    script: list[Answer] = [
        Fail(status=529, type="overloaded_error", message="Overloaded", retry_after=0),
        Fail(status=429, type="rate_limit_error", message="Slow down", retry_after=0),
        Say("Here I am."),
        Fail(status=403, type="permission_error", message="Your account is closed"),
    ]
    watched = Watched()
    with Provider(script) as provider:
        chat = chat_at(provider, format, place, watched)
        chat.say("Hello?")
        assert watched.text == "Here I am."
        assert len(watched.notes) == 2
        with pytest.raises(AnswerFailed, match=r"no access.*Your account is closed") as failed:
            chat.say("And now?")
        chat.close()
    assert "\n" not in str(failed.value)
    assert len(provider.requests) == 4


@BOTH
def test_a_provider_that_stays_busy_is_given_up_after_a_few_tries(format: Format, place: Path) -> None:
    watched = Watched()
    busy = Fail(status=503, type="overloaded_error", message="Overloaded", retry_after=0)
    with Provider(default=busy) as provider:
        chat = chat_at(provider, format, place, watched)
        with pytest.raises(AnswerFailed, match="503"):
            chat.say("Hello?")
        chat.close()
    assert len(provider.requests) == 4
    long_wait = Fail(status=429, type="rate_limit_error", message="Slow down", retry_after=7_200)
    with Provider(default=long_wait) as provider:
        chat = chat_at(provider, format, place, watched)
        with pytest.raises(AnswerFailed, match="7,200 s"):
            chat.say("Hello?")
        chat.close()
    assert len(provider.requests) == 1


@BOTH
def test_what_came_of_an_answer_that_broke_off_is_kept_and_the_talk_goes_on(
    format: Format, place: Path
) -> None:
    watched = Watched()
    text = "A long answer whose end nobody will ever see, for the line breaks down in the middle of it."
    with Provider([DropConnection(text), Say("Where were we?")]) as provider:
        chat = chat_at(provider, format, place, watched)
        with pytest.raises(AnswerFailed, match=r"connection failed|broke off"):
            chat.say("Tell me everything.")
        came = watched.text
        assert came
        chat.say("Go on.")
        chat.close()
    assert provider.refusals == ()
    kept = str(chat.session.view()[1]["content"])
    assert came.rstrip() in kept
    assert "[…]" in kept
    assert chat.session.status().totals.cost is not None


@BOTH
def test_an_answer_that_the_user_stops_is_kept_as_far_as_it_came(format: Format, place: Path) -> None:
    class Stopping(Watched):
        def on_text(self, piece: str, /) -> None:
            super().on_text(piece)
            if len(self.pieces) == 2:
                raise KeyboardInterrupt

    watched = Stopping()
    with Provider([Say("One two three four five six seven eight nine ten."), Say("Fine.")]) as provider:
        chat = chat_at(provider, format, place, watched)
        with pytest.raises(AnswerFailed, match="stopped"):
            chat.say("Count.")
        came = watched.text
        chat.say("Enough.")
        chat.close()
    assert provider.refusals == ()
    assert came.rstrip() in str(chat.session.view()[1]["content"])


@BOTH
def test_tools_that_the_user_stops_leave_a_result_for_every_call(format: Format, place: Path) -> None:
    def stop(question: str) -> bool:
        raise KeyboardInterrupt

    calls = (Call("read_file", {"path": "notes.txt"}), Call("shell", {"command": "true"}), Call("search", {}))
    watched = Watched()
    with Provider([CallTools(calls), Say("All right.")]) as provider:
        chat = chat_at(provider, format, place, watched, allow=stop)
        with pytest.raises(KeyboardInterrupt):
            chat.say("Do three things.")
        chat.say("Leave it.")
        chat.close()
    assert provider.refusals == ()
    told = str(provider.requests[1].body["messages"])
    assert "three" in told
    assert told.count("stopped this before it was done") == 2


@BOTH
def test_an_answer_cut_off_by_its_limit_is_an_answer(format: Format, place: Path) -> None:
    watched = Watched()
    with Provider([CutOff("And so on and")]) as provider:
        chat = chat_at(provider, format, place, watched)
        chat.say("Go on for ever.")
        chat.close()
    assert watched.text == "And so on and"
    assert len(chat.session.view()) == 2


@BOTH
def test_a_refusal_is_shown_and_kept(format: Format, place: Path) -> None:
    watched = Watched()
    with Provider([Refuse("I would rather not."), Say("Gladly.")]) as provider:
        chat = chat_at(provider, format, place, watched)
        chat.say("Do something bad.")
        chat.say("Do something good.")
        chat.close()
    assert provider.refusals == ()
    assert watched.text == "I would rather not.Gladly."


@BOTH
def test_what_is_too_long_even_alone_is_taken_back_and_the_talk_goes_on(format: Format, place: Path) -> None:
    watched = Watched()
    with Provider(default=Say("Hm."), default_context=20_000) as provider:
        chat = chat_at(provider, format, place, watched, context_length=20_000)
        chat.say("Hello.")
        with pytest.raises(AnswerFailed, match="removed again"):
            chat.say("far too many words " * 8_000)
        chat.say("Sorry.")
        chat.close()
    assert [message["role"] for message in chat.session.view()] == ["user", "assistant"] * 2
    assert chat.session.status().history == 5


def test_ctrl_c_waits_until_what_must_not_be_done_by_half_is_done() -> None:
    done: list[str] = []

    def keep() -> None:
        with defer_interrupt():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("all of it")

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        keep()
    assert done == ["all of it"]
    assert signal.getsignal(signal.SIGINT) is before
