"""Items of the Responses format: what is one message, what an edit leaves alone, and what has to change with it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.formats.cache_marks import (
    break_item,
    carries_item_break,
    count_item_blocks,
    unbreak_item,
)
from lowwater.core.formats.codec import decode_messages, decode_response, encode_messages, messages_in
from lowwater.core.formats.openai_responses import is_elsewhere
from lowwater.core.messages import Format, Image, Message, Opaque, Text, Thinking, ToolCall, ToolResult
from lowwater.core.strict_json import read_fields
from lowwater.errors import MalformedMessage
from lowwater.testing.legality import refusal_of
from lowwater.testing.strategies import transcripts

FORMAT: Format = "openai_responses"
ANSWER = [
    b'{"type":"reasoning","id":"rs_1", "summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"gAAA"}',
    b'{"type":"message","id":"msg_1_by_rs_1", "role":"assistant","status":"completed","phase":"commentary",'
    b'"content":[{"type":"output_text","text":"Looking.","annotations":[]},{"type":"refusal","refusal":"no"}]}',
    b'{"type":"function_call","id":"fc_1_by_rs_1", "call_id":"c1","name":"ls","arguments":"{}","n":1.0}',
    b'{"type":"local_shell_call","id":"lsh_1", "call_id":"c2","action":{"type":"exec","command":["ls"],"env":{}}}',
]


def sent(*messages: Message) -> list[Any]:
    return [json.loads(raw) for raw in encode_messages(messages, FORMAT)]


def test_an_answer_is_one_message_and_leaves_as_its_items() -> None:
    [message] = decode_messages(ANSWER, FORMAT)
    kinds = [type(part) for part in message.parts]
    assert kinds == [Thinking, Text, Opaque, ToolCall, ToolCall]
    assert message.thinking[0].text == "Hm."
    assert message.calls[1] == ToolCall(
        id="c2", name="local_shell", arguments='{"action":{"command":["ls"],"env":{},"type":"exec"}}'
    )
    assert encode_messages([message], FORMAT) == ANSWER
    [together] = messages_in(ANSWER, FORMAT)
    assert decode_messages([together], FORMAT) == [message]


def test_without_its_reasoning_an_item_loses_the_id_that_would_ask_for_it() -> None:
    [message] = decode_messages(ANSWER, FORMAT)
    left = message.with_parts([part for part in message.parts if not isinstance(part, Thinking)])
    said, call, shell = sent(left)
    assert said == {name: value for name, value in json.loads(ANSWER[1]).items() if name != "id"}
    assert call == {name: value for name, value in json.loads(ANSWER[2]).items() if name != "id"}
    assert shell == {name: value for name, value in json.loads(ANSWER[3]).items() if name != "id"}
    outputs = [
        {"type": "function_call_output", "call_id": "c1", "output": ""},
        {"type": "local_shell_call_output", "call_id": "c2", "output": ""},
    ]
    body = {"model": "gpt-6", "input": [said, call, shell, *outputs]}
    assert refusal_of(body, FORMAT) is None
    with_ids = {"model": "gpt-6", "input": [*map(json.loads, ANSWER[1:]), *outputs]}
    refused = refusal_of(with_ids, FORMAT)
    assert refused is not None
    assert refused.rule == "reasoning_given", "which is why"


@pytest.mark.parametrize("gone", range(5))
def test_an_edit_of_one_part_leaves_the_bytes_of_every_other_item(gone: int) -> None:
    [message] = decode_messages(ANSWER, FORMAT)
    item_of = [0, 1, 1, 2, 3]
    parts = [part for at, part in enumerate(message.parts) if at != gone]
    left = encode_messages([message.with_parts(parts)], FORMAT)
    kept = [raw for at, raw in enumerate(ANSWER) if at != item_of[gone]]
    if gone:
        assert [raw for raw in left if raw in ANSWER] == kept
    assert decode_messages(left, FORMAT)[0].parts == tuple(parts)


def test_an_edited_text_keeps_the_fields_of_its_message() -> None:
    [message] = decode_messages(ANSWER, FORMAT)
    parts = [Text(text="Short.") if isinstance(part, Text) else part for part in message.parts]
    encoded = encode_messages([message.with_parts(parts)], FORMAT)
    assert [encoded[0], *encoded[2:]] == [ANSWER[0], *ANSWER[2:]]
    said = json.loads(encoded[1])
    assert (said["phase"], said["id"]) == ("commentary", "msg_1_by_rs_1")
    assert said["content"][0] == {"type": "output_text", "text": "Short."}


def test_edited_arguments_and_thoughts_keep_their_fields() -> None:
    [message] = decode_messages(ANSWER, FORMAT)
    thought, said, refusal, call, shell = message.parts
    assert isinstance(thought, Thinking)
    assert isinstance(call, ToolCall)
    changed: list[Any] = [
        Thinking(text="H.", signature=thought.signature, extra=thought.extra),
        said,
        refusal,
        ToolCall(id=call.id, name=call.name, arguments='{"a":1}', extra=call.extra),
        shell,
    ]
    items = sent(message.with_parts(changed))
    assert items[0] | {"summary": 0} == json.loads(ANSWER[0]) | {"summary": 0}
    assert items[0]["summary"] == [{"type": "summary_text", "text": "H."}]
    assert items[2] == json.loads(ANSWER[2]) | {"arguments": '{"a":1}'}


def test_a_message_that_only_thought_becomes_words() -> None:
    [message] = decode_messages(ANSWER[:1], FORMAT)
    [item] = sent(message.with_parts([Text(text="[thinking left out]")]))
    assert item["type"] == "message"
    assert item["role"] == "assistant"
    assert item["content"] == [{"type": "output_text", "text": "[thinking left out]"}]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b'{"type":"function_call_output","call_id":"c","output":"long","x":1}', "[elided]"),
        (
            b'{"type":"custom_tool_call_output","call_id":"c","output":[{"type":"input_text","text":"l"}]}',
            "[elided]",
        ),
        (b'{"type":"local_shell_call_output","id":"c","output":"long"}', "[elided]"),
        (
            b'{"type":"apply_patch_call_output","call_id":"c","status":"completed","output":"long"}',
            "[elided]",
        ),
        (
            b'{"type":"shell_call_output","call_id":"c","output":[{"stdout":"long","stderr":"","outcome":'
            b'{"type":"exit","exit_code":1}}]}',
            [{"stdout": "[elided]", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
        ),
    ],
)
def test_an_elided_output_keeps_its_form(raw: bytes, shown: object) -> None:
    [message] = decode_messages([raw], FORMAT)
    [result] = message.results
    assert (message.role, result.call_id) == ("tool", "c")
    [item] = sent(
        message.with_parts([ToolResult(call_id="c", parts=(Text(text="[elided]"),), extra=result.extra)])
    )
    assert item == json.loads(raw) | {"output": shown}


def test_a_screenshot_cannot_be_replaced_by_words() -> None:
    raw = b'{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":"u"}}'
    [message] = decode_messages([raw], FORMAT)
    edited = message.with_parts([ToolResult(call_id="c", parts=(Text(text="[elided]"),))])
    assert encode_messages([edited], FORMAT) == [raw]


def test_a_missing_output_is_of_the_kind_of_its_call() -> None:
    [asked] = decode_messages(
        [b'{"type":"custom_tool_call","id":"a","call_id":"c","name":"patch","input":"x"}'], FORMAT
    )
    stub = Message(role="tool", parts=(ToolResult(call_id="c", parts=(Text(text="none"),)),))
    assert sent(asked, stub)[1] == {"type": "custom_tool_call_output", "call_id": "c", "output": "none"}


def test_what_comes_from_another_format_is_written_as_items() -> None:
    chat = decode_messages(
        [
            b'{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"u"}}]}',
            b'{"role":"assistant","content":"ok","reasoning_content":"hm","tool_calls":'
            b'[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}',
            b'{"role":"tool","tool_call_id":"a","content":"out"}',
        ],
        "openai_chat",
    )
    assert sent(*chat) == [
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "look"}, {"type": "input_image", "image_url": "u"}],
        },
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "out"},
    ]


def test_a_window_that_the_client_had_compacted_is_no_compaction_to_follow() -> None:
    compaction = b'{"type":"compaction","id":"cmp_1","encrypted_content":"gAAA"}'
    [alone] = decode_messages([compaction], FORMAT)
    [inside] = decode_messages([compaction, ANSWER[0], ANSWER[1]], FORMAT)
    assert isinstance(alone.parts[0], Opaque)
    assert isinstance(inside.parts[0], Opaque)
    assert (alone.parts[0].block, inside.parts[0].block) == ("compaction_window", "compaction")
    assert alone.parts[0] == inside.parts[0]
    assert encode_messages([alone], FORMAT) == [compaction]


def test_pictures_and_files_are_read() -> None:
    raw = (
        b'{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AA==","detail":"low"},'
        b'{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,BB=="}]}'
    )
    [message] = decode_messages([raw], FORMAT)
    picture, file = message.parts
    assert picture == Image(source="base64", data="AA==", media_type="image/png", detail="low")
    assert (file.kind, encode_messages([message], FORMAT)) == ("document", [raw])


@pytest.mark.parametrize(
    ("body", "elsewhere"),
    [
        (b'{"input":"hi"}', False),
        (b'{"input":[{"role":"user","content":"item_reference"}]}', False),
        (b'{"input":"hi","previous_response_id":null,"conversation":null}', False),
        (b'{"input":"hi","previous_response_id":"resp_1"}', True),
        (b'{"input":"hi","conversation":{"id":"conv_1"}}', True),
        (b'{"input":[{"type":"item_reference","id":"msg_1"}]}', True),
        (b'{"input":7}', False),
    ],
)
def test_whether_the_history_is_at_the_provider(body: bytes, elsewhere: bool) -> None:
    assert is_elsewhere(read_fields(body)) is elsewhere


@given(transcripts(FORMAT), st.data())
def test_breakpoints_come_off_as_they_went_on(raws: list[bytes], data: st.DataObject) -> None:
    raw = data.draw(st.sampled_from(raws))
    broken = break_item(raw)
    assert (broken is not raw) == carries_item_break(raw)
    assert count_item_blocks(raw) >= 1
    [before], [after] = decode_messages([raw], FORMAT), decode_messages([broken], FORMAT)
    assert before == after
    assert unbreak_item(raw) is raw
    assert b"prompt_cache_breakpoint" not in unbreak_item(broken)
    assert decode_messages([unbreak_item(broken)], FORMAT) == [before]


def test_the_models_own_items_carry_no_breakpoint() -> None:
    assert not any(map(carries_item_break, ANSWER))
    user = b'{"role":"user","content":"hi"}'
    part = {"type": "input_text", "text": "hi", "prompt_cache_breakpoint": {"mode": "explicit"}}
    assert json.loads(break_item(user)) == {"role": "user", "content": [part]}


@given(transcripts(FORMAT))
def test_every_transcript_is_legal(raws: list[bytes]) -> None:
    items = [json.loads(raw, parse_constant=lambda _: 0) for raw in raws]
    assert refusal_of({"model": "gpt-6", "input": items}, FORMAT) is None


def test_pieces_stay_apart_whatever_stands_beside_them() -> None:
    """A reader that knows some messages already decodes the others without what stood between them."""
    first, output, second = (
        ANSWER[2],
        b'{"type":"function_call_output","call_id":"c1","output":""}',
        ANSWER[1],
    )
    pieces = messages_in([first, output, second], FORMAT)
    assert len(pieces) == 3
    assert messages_in(pieces, FORMAT) == pieces
    alone = decode_messages([pieces[0], pieces[2]], FORMAT)
    assert alone == [decode_messages([raw], FORMAT)[0] for raw in (first, second)]
    assert encode_messages(alone, FORMAT) == [first, second]


def test_a_call_that_the_provider_ran_is_left_with_its_output() -> None:
    ran = [
        b'{"type":"shell_call","id":"sh_1","call_id":"c1","action":{"commands":["ls"]},"status":"completed"}',
        b'{"type":"shell_call_output","id":"sho_1","call_id":"c1","output":[{"stdout":"a","stderr":""}]}',
        ANSWER[1],
    ]
    answer = b'{"object":"response","status":"completed","output":[' + b",".join(ran) + b"]}"
    message = decode_response(answer).message
    assert (message.calls, message.results, message.text) == ((), (), "Looking.")
    assert encode_messages([message], FORMAT) == ran
    assert [each.role for each in decode_messages(ran, FORMAT)] == ["assistant", "tool", "assistant"]


def test_an_answer_that_said_nothing_can_be_given_words() -> None:
    for raw in (b"[]", b'[{"type":"message","role":"assistant","content":""}]'):
        [message] = decode_messages([raw], FORMAT)
        assert message.parts == ()
        encoded = encode_messages([message.with_parts([Text(text="Words.")])], FORMAT)
        assert decode_messages(encoded, FORMAT)[0].text == "Words."


def test_a_list_that_is_no_answer_is_refused() -> None:
    with pytest.raises(MalformedMessage, match="not one answer"):
        decode_messages([b'[{"role":"user","content":"a"}]'], FORMAT)
