"""Messages are matched by content: clients re-serialise, move cache marks and drop fields."""

import pytest

from lowwater.core.formats.codec import decode_messages
from lowwater.core.messages import Format


def same(a: bytes, b: bytes, format: Format) -> bool:
    [left], [right] = decode_messages([a], format), decode_messages([b], format)
    assert (left == right) == (hash(left) == hash(right)) == (left.digest == right.digest)
    return left == right


@pytest.mark.parametrize(
    ("a", "b"),
    [
        pytest.param(
            b'{"role":"user","content":"hi"}', b'{ "content" : "hi", "role":"user"}', id="order and blanks"
        ),
        pytest.param(
            b'{"role":"user","content":"hi"}',
            b'{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}',
            id="string or marked block",
        ),
        pytest.param(
            b'{"role":"user","content":"\\u00e9"}', '{"role":"user","content":"é"}'.encode(), id="escapes"
        ),
        pytest.param(
            b'{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"n","input":{"x":1,"y":[2]}}]}',
            b'{"role":"assistant","id":"msg_1","stop_reason":"tool_use","content":'
            b'[{"id":"a","input":{"y":[2],"x":1},"name":"n","type":"tool_use","caller":{}}]}',
            id="key order in arguments, dropped fields",
        ),
        pytest.param(
            b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"}]}',
            b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":false,'
            b'"content":[{"type":"text","text":"r"}]}]}',
            id="result as string or block",
        ),
        pytest.param(
            b'{"role":"user","content":[{"type":"new","x":1,"cache_control":{"type":"ephemeral"}}]}',
            b'{"role":"user","content":[{"x":1,"type":"new"}]}',
            id="mark on an unknown block",
        ),
    ],
)
def test_equal_content_is_equal(a: bytes, b: bytes) -> None:
    assert same(a, b, "anthropic")


@pytest.mark.parametrize(
    ("a", "b"),
    [
        pytest.param(b'{"role":"user","content":"hi"}', b'{"role":"assistant","content":"hi"}', id="role"),
        pytest.param(b'{"role":"user","content":"hi"}', b'{"role":"user","content":"hi "}', id="text"),
        pytest.param(
            b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"}]}',
            b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r","is_error":true}]}',
            id="error",
        ),
        pytest.param(
            b'{"role":"user","content":[{"type":"image","source":{"type":"url","url":"a"}}]}',
            b'{"role":"user","content":[{"type":"image","source":{"type":"url","url":"b"}}]}',
            id="image",
        ),
    ],
)
def test_other_content_is_not(a: bytes, b: bytes) -> None:
    assert not same(a, b, "anthropic")


def test_a_tool_message_is_the_same_without_its_name() -> None:
    assert same(
        b'{"role":"tool","tool_call_id":"a","content":"r","name":"ls"}',
        b'{"role":"tool","tool_call_id":"a","content":"r"}',
        "openai_chat",
    )


def test_two_users_are_told_apart_by_name() -> None:
    assert not same(
        b'{"role":"user","content":"yes","name":"ann"}',
        b'{"role":"user","content":"yes","name":"bob"}',
        "openai_chat",
    )


@pytest.mark.parametrize(
    ("a", "b"),
    [
        pytest.param(
            b'{"role":"user","content":"hi"}',
            b'{"type":"message","role":"user","id":"m","content":[{"type":"input_text","text":"hi",'
            b'"prompt_cache_breakpoint":{"mode":"explicit"}}]}',
            id="string or part",
        ),
        pytest.param(
            b'[{"type":"reasoning","id":"r","summary":[],"encrypted_content":"g"},'
            b'{"type":"function_call","id":"f","call_id":"c","name":"n","arguments":"{\\"a\\":1}","status":"completed"}]',
            b'[{"type":"reasoning","summary":[],"content":null,"encrypted_content":"g"},'
            b'{"type":"function_call","call_id":"c","name":"n","arguments":"{ \\"a\\" : 1}"}]',
            id="ids, status, spelling of arguments",
        ),
        pytest.param(
            b'{"type":"function_call_output","call_id":"c","output":"r"}',
            b'{"type":"function_call_output","id":"o","call_id":"c","output":[{"type":"input_text","text":"r"}]}',
            id="output as string or part",
        ),
        pytest.param(
            b'{"role":"assistant","content":"hi"}',
            b'{"type":"message","id":"m","status":"completed","role":"assistant","content":'
            b'[{"type":"output_text","text":"hi","annotations":[],"logprobs":[]}]}',
            id="an answer as a client writes it",
        ),
    ],
)
def test_items_written_anew_are_equal(a: bytes, b: bytes) -> None:
    assert same(a, b, "openai_responses")
