"""Scripts: every answer is a call, compactions of the recording agent are undone, and what cannot be played says why."""

import pytest
from msgspec.structs import replace

from lowwater.core.api_calls import Usage
from lowwater.core.messages import Message, Text
from lowwater.errors import BadInput
from lowwater.lab.replay.script import PAUSE, script_of
from lowwater.logs.recording import RecordedCall, RecordedMessage, Recording


def said(role, text, at=0.0, **more) -> RecordedMessage:
    return RecordedMessage(message=Message(role=role, parts=(Text(text=text),)), at=at, **more)


def recorded(*messages: RecordedMessage) -> Recording:
    return Recording(id="s", agent="a", path="p", messages=messages)


def test_what_came_before_an_answer_is_new_and_what_follows_the_last_is_left_out():
    script = script_of(
        recorded(
            said("user", "one"),
            said("assistant", "two", at=5.0, call=RecordedCall(usage=Usage(uncached=3, cache_read=4))),
            said("user", "three"),
            said("user", "four"),
            said("assistant", "five", at=9.0),
            said("user", "six"),
        )
    )
    assert [len(exchange.new) for exchange in script.exchanges] == [1, 2]
    assert [exchange.at for exchange in script.exchanges] == [5.0, 9.0]
    assert script.turn_of() == [0, 0, 1, 1, 1]
    assert [message.text for message in script.messages] == ["one", "two", "three", "four", "five"]
    assert script.first_prompt == 7


def test_the_beginning_of_a_script_is_a_script():
    script = script_of(
        recorded(
            said("user", "one"), said("assistant", "two"), said("user", "three"), said("assistant", "four")
        )
    )
    assert [message.text for message in script.beginning(1).messages] == ["one", "two"]
    assert script.beginning(1).turn_of() == [0, 0]
    assert script.beginning(9) == script


def test_messages_of_one_answer_are_one_call():
    script = script_of(recorded(said("user", "one"), said("assistant", "two"), said("assistant", "more")))
    assert [message.text for message in script.messages] == ["one", "two\nmore"]


def test_the_agents_own_summary_is_left_out():
    script = script_of(
        recorded(
            said("user", "one"),
            said("assistant", "two"),
            said("user", "summary", kind="compact_summary"),
            said("user", "three"),
            said("assistant", "four"),
        )
    )
    assert "summary" not in [message.text for message in script.messages]


def test_the_time_of_the_request_counts_where_it_is_recorded():
    call = RecordedCall(asked_at=3.0)
    script = script_of(recorded(said("user", "one"), said("assistant", "two", at=5.0, call=call)))
    assert script.exchanges[0].at == 3.0


def test_what_cannot_be_played_says_why():
    with pytest.raises(BadInput, match="no call"):
        script_of(recorded(said("user", "one")))


@pytest.mark.parametrize(
    ("times", "played"),
    [
        pytest.param((None, None), (0.0, PAUSE), id="none recorded"),
        pytest.param((None, 100.0), (100.0 - PAUSE, 100.0), id="the second recorded"),
        pytest.param((100.0, None), (100.0, 100.0 + PAUSE), id="the first recorded"),
    ],
)
def test_a_call_without_a_time_comes_a_pause_after_the_one_before(times, played):
    messages = [
        each for at in times for each in (said("user", "one"), replace(said("assistant", "two"), at=at))
    ]
    script = script_of(recorded(*messages))
    assert tuple(exchange.at for exchange in script.exchanges) == played
    assert script.lacks_times
