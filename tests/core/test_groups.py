"""Groups hold together, turns end with an answer, cuts fall between groups."""

import pytest
from hypothesis import given

from lowwater.core.formats.codec import decode_messages
from lowwater.core.messages import (
    AnyPart,
    Format,
    Message,
    Text,
    ToolCall,
    ToolResult,
    groups,
    legal_cuts,
    turns,
    unpaired,
)
from lowwater.testing.strategies import transcripts


def say(role: str, text: str = "x") -> Message:
    return Message(role=role, parts=(Text(text=text),))  # type: ignore[arg-type]  # the tests' own literals


def call(*ids: str) -> Message:
    return Message(role="assistant", parts=tuple(ToolCall(id=i, name="t", arguments="{}") for i in ids))


def answer(*ids: str, text: str = "") -> Message:
    parts: tuple[AnyPart, ...] = tuple(ToolResult(call_id=i, parts=(Text(text="r"),)) for i in ids)
    return Message(role="user" if text else "tool", parts=(*parts, Text(text=text)) if text else parts)


def spans(messages: list[Message]) -> list[tuple[int, int]]:
    return [(span.start, span.stop) for span in groups(messages)]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([], []),
        ([say("user"), say("assistant")], [(0, 1), (1, 2)]),
        ([say("user"), call("a"), answer("a"), say("assistant")], [(0, 1), (1, 3), (3, 4)]),
        ([call("a", "b"), answer("b"), answer("a")], [(0, 3)]),
        ([call("a"), answer("a", text="and go on")], [(0, 2)]),
        ([call("a"), answer("a"), call("a"), answer("a")], [(0, 2), (2, 4)]),
        ([call("a"), call("b"), answer("a"), answer("b")], [(0, 4)]),
        ([answer("gone"), say("user")], [(0, 1), (1, 2)]),
        ([call("open"), say("user")], [(0, 1), (1, 2)]),
    ],
    ids=[
        "empty",
        "plain",
        "one call",
        "parallel",
        "result with text",
        "an id used again by a later turn",
        "interleaved",
        "orphan",
        "open call",
    ],
)
def test_a_call_holds_together_with_its_results(
    messages: list[Message], expected: list[tuple[int, int]]
) -> None:
    assert spans(messages) == expected
    assert legal_cuts(messages) == [0, *(stop for _, stop in expected)]


def test_a_turn_is_what_led_to_an_answer_and_the_answer() -> None:
    messages = [say("system"), say("user"), call("a"), answer("a"), say("assistant"), say("user")]
    assert [(turn.start, turn.stop) for turn in turns(messages)] == [(0, 3), (3, 5), (5, 6)]


@pytest.mark.parametrize("format", ["openai_chat", "anthropic", "openai_responses"])
def test_either_side_of_every_cut_is_paired(format: Format) -> None:
    @given(transcripts(format=format))
    def check(raws: list[bytes]) -> None:
        messages = decode_messages(raws, format)
        assert sum(len(span) for span in groups(messages)) == len(messages)
        for cut in legal_cuts(messages):
            assert not unpaired(messages[:cut]).results
            assert not unpaired(messages[cut:]).results

    check()


def test_what_is_unpaired_is_named() -> None:
    found = unpaired(
        [call("a"), say("assistant"), answer("b"), call("c", "c"), answer("c"), answer("c"), call("d")]
    )
    assert found.calls == ((0, "a"),)
    assert found.results == ((2, "b"),)
    assert found.repeated == ((3, "c"), (5, "c"))
    assert found
    assert not unpaired([call("a"), answer("a"), call("still running")])
