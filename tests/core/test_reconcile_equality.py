"""What makes another message, and what does not."""

import pytest

from lowwater.core.messages import AnyPart, Image, Message, Text, Thinking, ToolCall, ToolResult, Wire
from lowwater.core.reconcile import says_the_same
from lowwater.testing.views import PICTURE


def said(*parts: AnyPart, role: str = "user", name: str = "", wire: Wire | None = None) -> Message:
    return Message(role=role, parts=parts, name=name, wire=wire)  # type: ignore[arg-type]  # the tests' own literals


HI = Text(text="hi")
CALL = ToolCall(id="1", name="bash", arguments='{"a": 1, "b": 2}')
RESULT = ToolResult(call_id="1", parts=(Text(text="out"),))


@pytest.mark.parametrize(
    ("held", "sent"),
    [
        (said(HI), said(Text(text=" hi\n"))),
        (said(HI), said(HI, Text(text="  "))),
        (said(HI, role="assistant"), said(Thinking(text="hm"), HI, role="assistant")),
        (
            said(CALL, role="assistant"),
            said(ToolCall(id="1", name="bash", arguments='{"b":2,"a":1}'), role="assistant"),
        ),
        (
            said(RESULT, role="tool"),
            said(ToolResult(call_id="1", parts=(Text(text="out "),), is_error=True), role="tool"),
        ),
        (said(HI, name="ann"), said(HI)),
        (said(RESULT, role="tool", name="bash"), said(RESULT, role="tool", name="shell")),
        (said(Text(text="hi", extra=b'{"cache_control":{}}')), said(HI)),
    ],
    ids=["blanks", "blank part", "thinking", "arguments", "error mark", "name dropped", "tool name", "extra"],
)
def test_these_say_the_same(held: Message, sent: Message) -> None:
    assert says_the_same(held, sent)
    assert says_the_same(sent, held)


@pytest.mark.parametrize(
    ("held", "sent"),
    [
        (said(HI), said(Text(text="hi!"))),
        (said(HI), said(HI, role="assistant")),
        (said(HI), said(HI, HI)),
        (said(HI), said(HI, PICTURE)),
        (said(PICTURE), said(Image(source="base64", data="other", media_type="image/png"))),
        (said(HI, name="ann"), said(HI, name="bob")),
        (
            said(CALL, role="assistant"),
            said(ToolCall(id="2", name="bash", arguments=CALL.arguments), role="assistant"),
        ),
        (
            said(CALL, role="assistant"),
            said(ToolCall(id="1", name="bash", arguments='{"a": 2}'), role="assistant"),
        ),
        (said(RESULT, role="tool"), said(ToolResult(call_id="2", parts=RESULT.parts), role="tool")),
        (said(RESULT, role="tool"), said(ToolResult(call_id="1", parts=(Text(text="in"),)), role="tool")),
        (said(HI), said(RESULT)),
    ],
    ids=[
        "text",
        "role",
        "more",
        "a picture",
        "another picture",
        "name",
        "id",
        "argument",
        "result id",
        "result",
        "kind",
    ],
)
def test_these_do_not(held: Message, sent: Message) -> None:
    assert not says_the_same(held, sent)
    assert not says_the_same(sent, held)


def test_the_bytes_of_an_edited_message_are_not_what_it_says() -> None:
    raw = b'{"role":"user","content":"hi"}'
    original = said(HI, wire=Wire(format="openai_chat", raw=raw))
    edited = original.with_parts([Text(text="[elided]")])
    assert says_the_same(original, original)
    assert not says_the_same(edited, original)
