"""Messages as values, without a wire form: single ones, and legal conversations of them."""

import msgspec
from hypothesis import strategies as st

from lowwater.core.messages import (
    AnyPart,
    Document,
    Image,
    Message,
    ResultPart,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from lowwater.testing.strategies.skeleton import Slot, skeletons
from lowwater.testing.strategies.spelling import Spelling, arguments
from lowwater.testing.strategies.text import base64s, names, spoken, texts

_TEXT = spoken().map(lambda text: Text(text=text))
_IMAGE = st.one_of(
    base64s().map(lambda data: Image(source="base64", data=data, media_type="image/png")),
    st.just(Image(source="url", data="https://example.com/a.png")),
)
_DOCUMENT = base64s().map(
    lambda data: Document(source="base64", data=data, media_type="application/pdf", title="a.pdf")
)
_THINKING = st.one_of(
    spoken().map(lambda text: Thinking(text=text, signature="EqQBCkYIBhgCKkD==")),
    st.just(Thinking(text="", signature="ErcCsealed==", redacted=True)),
)
_SAID: st.SearchStrategy[list[AnyPart]] = st.lists(_TEXT | _IMAGE | _DOCUMENT, min_size=1, max_size=3)
_OUTPUT: st.SearchStrategy[list[ResultPart]] = st.lists(_TEXT | _TEXT | _IMAGE, max_size=2)


_ALONE = (
    Slot(speaker="user"),
    Slot(speaker="model"),
    Slot(speaker="model", call_ids=("call_a", "call_b")),
    Slot(speaker="tools", call_ids=("call_a",)),
)


@st.composite
def message_values(draw: st.DrawFn) -> Message:
    """Draw a single message of any speaker."""
    return draw_messages(draw, draw(st.sampled_from(_ALONE)))[0]


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Draw messages in which every call is answered and roles alternate as both providers want it."""
    messages: list[Message] = []
    for slot in draw(skeletons()):
        messages += draw_messages(draw, slot)
    return messages


def draw_messages(draw: st.DrawFn, slot: Slot) -> list[Message]:
    """Draw what fills one slot of a skeleton: one message, or one per answered call."""
    match slot.speaker:
        case "user":
            return [Message(role="user", parts=tuple(draw(_SAID)))]
        case "tools":
            return [Message(role="tool", parts=(_result(draw, call_id),)) for call_id in slot.call_ids]
        case "model":
            parts: list[AnyPart] = [*draw(st.lists(_THINKING, max_size=1))]
            if not slot.call_ids or draw(st.booleans()):
                parts.append(draw(_TEXT))
            calls = [
                ToolCall(id=call_id, name=draw(names()), arguments=Spelling().write(draw(arguments())))
                for call_id in slot.call_ids
            ]
            return [Message(role="assistant", parts=(*parts, *calls))]


def _result(draw: st.DrawFn, call_id: str) -> ToolResult:
    return ToolResult(call_id=call_id, parts=tuple(draw(_OUTPUT)), is_error=draw(st.booleans()))


def preambles() -> st.SearchStrategy[bytes]:
    """Return a strategy for a system prompt as JSON."""
    return texts().map(msgspec.json.encode)
