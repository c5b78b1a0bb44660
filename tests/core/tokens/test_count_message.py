"""Sizing one message: every text once, framing by provider, nothing crashes it."""

import base64
import json
import struct

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.messages import (
    AnyPart,
    Document,
    Image,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Wire,
)
from lowwater.core.tokens.counting import CHAT, CLAUDE, DATA_TOKENS, count_message, count_thinking, framing_of


class CountingTokenizer:
    """Counts words, and keeps what it was asked."""

    vocabulary = "words"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def count(self, text: str, /) -> int:
        self.asked.append(text)
        return len(text.split())


PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0\0\0\x0dIHDR" + struct.pack(">II", 750, 100)).decode()

EVERYTHING = Message(
    role="assistant",
    parts=(
        Thinking(text="first thought"),
        Text(text="one two three"),
        ToolCall(id="a", name="read", arguments='{"path":"x y","deep":{"n":1}}'),
        ToolResult(call_id="a", parts=(Text(text="alpha beta"), Image(source="base64", data=PNG))),
        Document(source="text", data="body of it", title="a title"),
        Opaque(block="new", body='{"type":"new","n":1}'),
    ),
)


@pytest.mark.parametrize(
    ("framing", "arguments"),
    [(CHAT, ['{"path":"x y","deep":{"n":1}}']), (CLAUDE, ["x y", '{"n":1}'])],
    ids=["chat: arguments as text", "claude: arguments by value"],
)
def test_every_text_of_a_message_is_counted_once(framing, arguments):
    tokenizer = CountingTokenizer()
    count_message(EVERYTHING, tokenizer, framing=framing)
    assert sorted(tokenizer.asked) == sorted(
        [
            "first thought",
            "one two three",
            "read",
            *arguments,
            "alpha beta",
            "body of it",
            "a title",
            '{"type":"new","n":1}',
        ]
    )


@pytest.mark.parametrize(
    ("message", "chat", "claude"),
    [
        pytest.param(Message(role="user", parts=(Text(text="a b c"),)), 4 + 3, 4 + 3, id="text"),
        pytest.param(Message(role="user", parts=()), 4, 4, id="nothing"),
        pytest.param(Message(role="user", name="ann", parts=(Text(text="a"),)), 6 + 1, 6 + 1, id="name"),
        pytest.param(
            Message(role="assistant", parts=(ToolCall(id="1", name="run", arguments='{"a": "x", "b": 2}'),)),
            4 + 11 + 1 + 4,
            4 + 24 + 1 + 2 * (18 + 1),
            id="call",
        ),
        pytest.param(
            Message(role="tool", parts=(ToolResult(call_id="1", parts=(Text(text="a b"),)),)),
            4 + 5 + 2,
            4 + 8 + 2,
            id="result",
        ),
        pytest.param(
            Message(role="user", parts=(Image(source="base64", data=PNG),)),
            4 + 85 + 340,
            4 + 100,
            id="picture",
        ),
        pytest.param(
            Message(role="user", parts=(Document(source="text", data="x y z"),)), 4 + 3, 4 + 3, id="document"
        ),
    ],
)
def test_a_part_costs_its_content_and_what_the_provider_writes_around_it(message, chat, claude):
    assert count_message(message, CountingTokenizer(), framing=CHAT) == chat
    assert count_message(message, CountingTokenizer(), framing=CLAUDE) == claude


@pytest.mark.parametrize(
    "arguments",
    ["", "not json", "[1]", '"text"', "null", "{" * 3000, '{"a": "x", "b": "\\ud83d"}'],
    ids=lambda text: text[:8] or "empty",
)
def test_arguments_that_are_no_object_count_as_their_text(arguments):
    call = Message(role="assistant", parts=(ToolCall(id="1", name="run", arguments=arguments),))
    tokenizer = CountingTokenizer()
    count_message(call, tokenizer, framing=CLAUDE)
    assert sorted(tokenizer.asked) == sorted(["run", arguments])


def test_a_signature_stands_for_the_thinking_it_holds_and_the_text_does_not_show():
    digest = Thinking(text="short digest", signature="s" * 5_200)
    hidden = Thinking(text="", signature="s" * 5_200, redacted=True)
    plain = Thinking(text="a b c d", signature="s" * 50)
    counted = [
        count_thinking(Message(role="assistant", parts=(part,)), CountingTokenizer())
        for part in (digest, hidden, plain)
    ]
    assert counted == [900, 900, 4]


def test_thinking_is_a_part_of_the_message_count():
    message = Message(role="assistant", parts=(Thinking(text="a b"), Text(text="c")))
    without = Message(role="assistant", parts=(Text(text="c"),))
    tokenizer = CountingTokenizer()
    whole = count_message(message, tokenizer)
    assert whole == count_message(without, tokenizer) + count_thinking(message, tokenizer)


def test_media_in_an_unknown_block_are_not_read_as_text():
    body = json.dumps({"type": "input_audio", "input_audio": {"data": "QUJD" * 5_000}})
    message = Message(role="user", parts=(Opaque(block="input_audio", body=body),))
    tokenizer = CountingTokenizer()
    assert count_message(message, tokenizer) == 4 + DATA_TOKENS + tokenizer.count(
        body.replace("QUJD" * 5_000, "")
    )


def test_without_a_framing_the_format_a_message_came_in_decides():
    wire = Wire(format="anthropic", raw=b"{}")
    assert framing_of(Message(role="user", parts=(), wire=wire)) == CLAUDE
    assert framing_of(Message(role="user", parts=())) == CHAT
    message = Message(role="assistant", parts=(ToolCall(id="1", name="run", arguments="{}"),), wire=wire)
    tokenizer = CountingTokenizer()
    assert count_message(message, tokenizer) == count_message(message, tokenizer, framing=CLAUDE)


anything = st.text(alphabet=st.characters(), max_size=60)  # lone surrogates included
simple = st.one_of(
    st.builds(Text, text=anything),
    st.builds(Image, source=st.sampled_from(["base64", "url", "file"]), data=anything, detail=anything),
    st.builds(
        Document,
        source=st.sampled_from(["base64", "url", "file", "text"]),
        data=anything,
        media_type=st.sampled_from(["", "text/plain", "application/pdf"]),
    ),
    st.builds(Opaque, block=anything, body=anything),
)
parts = st.one_of(
    simple,
    st.builds(Thinking, text=anything, signature=anything),
    st.builds(ToolCall, id=anything, name=anything, arguments=anything),
    st.builds(ToolResult, call_id=anything, parts=st.lists(simple, max_size=3).map(tuple)),
)


@given(st.lists(parts, max_size=5), st.sampled_from([CHAT, CLAUDE]))
def test_a_message_is_its_parts_and_one_frame(some: list[AnyPart], framing):
    tokenizer = CountingTokenizer()
    whole = count_message(Message(role="user", parts=tuple(some)), tokenizer, framing=framing)
    each = [count_message(Message(role="user", parts=(part,)), tokenizer, framing=framing) for part in some]
    assert whole == framing.message + sum(count - framing.message for count in each)
    assert all(count >= framing.message for count in each)


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=5))
def test_an_argument_counts_the_same_however_it_was_escaped(arguments: dict[str, str]):
    plain = msgspec.json.encode(arguments).decode()
    escaped = json.dumps(arguments, ensure_ascii=True, indent=3)
    counts = {
        count_message(
            Message(role="assistant", parts=(ToolCall(id="1", name="run", arguments=text),)),
            CountingTokenizer(),
            framing=CLAUDE,
        )
        for text in (plain, escaped)
    }
    assert len(counts) == 1
