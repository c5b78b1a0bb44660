"""Bad input gets one sentence that names the message and what is wrong with it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.formats.codec import decode_messages, decode_request, raw_messages
from lowwater.core.formats.files import decode_conversation, encode_conversation
from lowwater.core.messages import Format
from lowwater.errors import BadInput, MalformedMessage, UnknownFormat, UnreadableJson


@pytest.mark.parametrize(
    ("format", "raw", "says"),
    [
        ("openai_chat", b'{"role":"robot","content":"x"}', "unknown role 'robot'"),
        ("openai_chat", b'{"role":"function","name":"f","content":"x"}', "use role 'tool'"),
        ("openai_chat", b'{"content":"x"}', "missing required field role"),
        ("openai_chat", b'{"role":"tool","content":"x"}', "needs a tool_call_id"),
        ("openai_chat", b'{"role":"user","content":7}', "content: expected str | array | null, got int"),
        ("openai_chat", b'{"role":"user","content":[{"text":"x"}]}', "a content part has no type"),
        ("openai_chat", b'{"role":"user","content":[{"type":"text"}]}', "missing required field text"),
        ("openai_chat", b'{"role":"user","content":["x"]}', "expected object, got str"),
        ("openai_chat", b'{"role":"user","content":"x","tool_calls":[{}]}', "cannot hold tool_calls"),
        ("openai_chat", b'{"role":"assistant","tool_calls":[{"id":"a"}]}', "neither a function nor a custom"),
        (
            "openai_chat",
            b'{"role":"assistant","tool_calls":[{"id":"a","function":{}}]}',
            "function: object missing",
        ),
        ("openai_chat", b'"x"', "expected object, got str"),
        ("openai_responses", b'{"role":"tool","content":"x"}', "unknown role 'tool'"),
        ("openai_responses", b'{"content":"x"}', "neither a type nor a role"),
        ("openai_responses", b'{"role":"user"}', "a message has no content"),
        ("openai_responses", b'{"role":"user","content":[{"text":"x"}]}', "a content part has no type"),
        (
            "openai_responses",
            b'{"role":"user","content":[{"type":"input_text"}]}',
            "missing required field text",
        ),
        ("openai_responses", b'{"type":"function_call","call_id":"c"}', "missing required field name"),
        ("openai_responses", b'{"type":"reasoning","summary":7}', "summary: expected array | null, got int"),
        ("openai_responses", b'{"type":""}', "an empty type"),
        ("openai_responses", b'"x"', "expected object, got str"),
        ("anthropic", b'{"role":"tool","content":"x"}', "unknown role 'tool'"),
        ("anthropic", b'{"role":"user","content":null}', "content: expected str | array, got null"),
        ("anthropic", b'{"role":"user"}', "missing required field content"),
        ("anthropic", b'{"role":"user","content":[{}]}', "a content block has no type"),
        (
            "anthropic",
            b'{"role":"user","content":[{"type":"tool_use","id":"a","name":"b"}]}',
            "cannot be in",
        ),
        (
            "anthropic",
            b'{"role":"assistant","content":[{"type":"tool_use","name":"b"}]}',
            "missing required field id",
        ),
        (
            "anthropic",
            b'{"role":"assistant","content":[{"type":"tool_result","tool_use_id":"a"}]}',
            "cannot be in",
        ),
        (
            "anthropic",
            b'{"role":"user","content":[{"type":"image","source":{"type":5}}]}',
            "type: expected str",
        ),
    ],
)
def test_a_malformed_message_is_named_by_index_and_problem(format: Format, raw: bytes, says: str) -> None:
    good = b'{"role":"user","content":"fine"}'
    with pytest.raises(MalformedMessage) as caught:
        decode_messages([good, good, raw], format)
    assert caught.value.index == 2
    assert str(caught.value).startswith("message 2: ")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b'[{"role":"user","content":"x"', "cut short"),
        (b"[NaN]", "not JSON"),
        (b'[{"role":"user","content":"\\ud83d"}]', "lone surrogate"),
        (b'[{"role":"user","content":"\\ude00 \\ud83d\\ude00"}]', "lone surrogate"),
        (b"[" * 2000 + b"]" * 2000, "nested too deeply"),
        (b'[{"role":"user","content":"\xff\xfe"}]', "UTF-8"),
    ],
    ids=["truncated", "nan", "lone high surrogate", "lone low surrogate", "depth 2,000", "not utf-8"],
)
def test_unreadable_json_says_why(data: bytes, says: str) -> None:
    with pytest.raises(BadInput, match=says) as caught:
        decode_conversation(data)
    assert "\n" not in str(caught.value)


def test_depth_inside_a_message_is_an_error_too() -> None:
    deep = (
        b'{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"b","input":'
        + b"[" * 2000
        + b"]" * 2000
    )
    with pytest.raises(MalformedMessage, match="nested too deeply"):
        decode_messages([deep + b"}]}"], "anthropic")


def test_a_pair_of_escaped_surrogates_is_a_character() -> None:
    [message] = decode_messages([b'{"role":"user","content":"\\ud83d\\ude00 \\\\ud83d"}'])
    assert message.text == "😀 \\ud83d"


def test_python_text_with_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(MalformedMessage, match="message 1: text with a lone surrogate"):
        raw_messages([{"role": "user", "content": "fine"}, {"role": "user", "content": "\ud83d"}])


def test_python_objects_that_are_no_content_are_refused() -> None:
    with pytest.raises(MalformedMessage, match="message 0: not something JSON can hold"):
        raw_messages([{"role": "user", "content": object()}])


def test_a_message_of_fifty_megabytes_is_read_and_written() -> None:
    raw = b'{"role":"user","content":"' + b"x" * 50_000_000 + b'"}'
    conversation = decode_conversation(b"[" + raw + b"]")
    assert len(conversation.messages[0].text) == 50_000_000
    assert encode_conversation(conversation) == b"[" + raw + b"]"


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", UnknownFormat),
        (b"hello", UnknownFormat),
        (b"{}", UnknownFormat),
        (b'{"messages":3}', BadInput),
        (b'{"model":"m"}\n{"x":1}', UnknownFormat),
        (b'{"role":"user","content":"x"}\n{"ro', UnreadableJson),
    ],
    ids=["empty", "prose", "no messages", "messages no list", "lines without roles", "cut line"],
)
def test_what_is_no_conversation_says_what_was_expected(data: bytes, error: type[BadInput]) -> None:
    with pytest.raises(error):
        decode_conversation(data)


def test_a_broken_line_is_named() -> None:
    with pytest.raises(UnreadableJson, match="line 2: "):
        decode_conversation(b'{"role":"user","content":"x"}\n{"ro')


def test_an_empty_list_is_an_empty_conversation() -> None:
    assert decode_conversation(b"[]").messages == ()
    assert decode_request(b'{"messages":[]}').messages == ()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
FIELD = st.sampled_from(
    "role content type text id name input tool_calls function arguments source tool_use_id tool_call_id thinking "
    "signature image_url url is_error file messages".split()
)
WORD = st.sampled_from(
    "user assistant tool system text image document tool_use tool_result thinking image_url file custom base64 url "
    "redacted_thinking function".split()
)
NEAR_MISS = st.recursive(
    JSON | WORD,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(FIELD, inner, max_size=6),
    max_leaves=20,
)


@given(
    st.one_of(
        NEAR_MISS, st.lists(st.dictionaries(FIELD, NEAR_MISS)), st.fixed_dictionaries({"messages": NEAR_MISS})
    )
)
def test_fuzzed_json_is_read_or_refused_in_one_sentence(value: object) -> None:
    data = json.dumps(value).encode()
    for format in (None, "openai_chat", "anthropic", "openai_responses"):
        try:
            conversation = decode_conversation(data, format)
        except BadInput as error:
            assert str(error)
            assert "\n" not in str(error)
        else:
            assert json.loads(encode_conversation(conversation)) == value


@given(st.binary())
def test_fuzzed_bytes_are_read_or_refused(data: bytes) -> None:
    for wrapped in (
        data,
        b"[" + data + b"]",
        b'{"messages":[' + data + b"]}",
        b'[{"role":"user","content":"' + data,
    ):
        try:
            decode_conversation(wrapped)
        except BadInput as error:
            assert str(error)
