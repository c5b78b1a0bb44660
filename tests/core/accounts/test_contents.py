"""What fills the window adds up, whichever way it is read."""

from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.accounts.contents import contents
from lowwater.core.formats.codec import decode_messages
from lowwater.core.messages import Message, Text, Thinking, ToolCall, ToolResult
from lowwater.testing.strategies import transcripts


def test_each_reading_names_what_is_there() -> None:
    messages = [
        Message(role="system", parts=(Text(text="s"),)),
        Message(role="user", parts=(Text(text="u"),)),
        Message(role="assistant", parts=(Thinking(text="t"), ToolCall(id="a", name="grep", arguments="{}"))),
        Message(role="tool", parts=(ToolResult(call_id="a", parts=(Text(text="r"),)),)),
        Message(role="assistant", parts=(Text(text="done"),)),
        Message(role="user", parts=(Text(text="next"),)),
    ]
    found = contents(
        messages, [[10], [20], [5, 3], [400], [7], [1]], system_tokens=2, tool_tokens=50, largest=2
    )
    assert found.tokens == 498
    assert (found.messages, found.turns) == (6, 3)
    assert {share.label: share.tokens for share in found.by_kind} == {
        "tool results": 400, "tools": 50, "user": 21, "system": 12, "assistant": 7, "thinking": 5, "tool calls": 3,
    }  # fmt: skip
    assert [(share.label, share.tokens, share.count) for share in found.by_tool] == [("grep", 403, 1)]
    assert [(share.label, share.tokens) for share in found.by_age] == [
        ("this turn", 1),
        ("1–5 turns ago", 445),
    ]
    assert [(piece.index, piece.label) for piece in found.largest] == [(3, "tool result · grep"), (1, "user")]


@given(transcripts(format="anthropic"), st.integers(0, 99))
def test_every_reading_adds_up_to_the_whole(raws: list[bytes], preamble: int) -> None:
    messages = decode_messages(raws, "anthropic")
    sizes = [[len(part.kind) for part in message.parts] for message in messages]
    found = contents(messages, sizes, system_tokens=preamble)
    assert found.tokens == preamble + sum(map(sum, sizes))
    assert sum(share.tokens for share in found.by_kind) == found.tokens
    assert sum(share.tokens for share in found.by_age) == found.tokens - preamble
    assert sum(share.count for share in found.by_age) == len(messages)
