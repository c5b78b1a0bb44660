import json
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from lowwater.core.formats.codec import decode_messages, encode_messages
from lowwater.core.messages import Format, Message, Opaque, unpaired
from lowwater.testing.strategies import conversations, messages, transcripts

FORMATS: tuple[Format, ...] = ("anthropic", "openai_chat", "openai_responses")
BOTH: st.SearchStrategy[Format] = st.sampled_from(FORMATS)
QUICK = settings(max_examples=60)
FINDING = settings(max_examples=4_000, database=None, phases=[Phase.generate])


@QUICK
@given(transcripts("anthropic"))
def test_anthropic_roles_alternate_and_marks_are_at_most_four(raws: list[bytes]) -> None:
    read = [json.loads(raw) for raw in raws]
    roles = [message["role"] for message in read]
    assert roles == [("user", "assistant")[at % 2] for at in range(len(roles))]
    blocks = [
        block for message in read if isinstance(message["content"], list) for block in message["content"]
    ]
    assert sum("cache_control" in block for block in blocks) <= 4


@QUICK
@given(BOTH.flatmap(lambda form: st.tuples(st.just(form), messages(form))))
def test_a_single_message_decodes(drawn: tuple[Format, bytes]) -> None:
    form, raw = drawn
    assert encode_messages(decode_messages([raw], form), form) == [raw]


@QUICK
@given(conversations())
def test_neutral_conversations_are_legal_in_both_formats(drawn: list[Message]) -> None:
    assert not unpaired(drawn)
    for form in FORMATS:
        raws = encode_messages(drawn, form)
        assert not unpaired(decode_messages(raws, form))


def holds(raws: list[bytes], text: bytes) -> bool:
    return any(text in raw for raw in raws)


def any_block(raws: list[bytes], **fields: Any) -> bool:
    contents = [json.loads(raw).get("content") for raw in raws]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    inner = [b for block in blocks if isinstance(block.get("content"), list) for b in block["content"]]
    return any(all(block.get(name) == value for name, value in fields.items()) for block in blocks + inner)


ANTHROPIC = {
    "a string as content": lambda raws: any(isinstance(json.loads(raw)["content"], str) for raw in raws),
    "a cache mark": lambda raws: any_block(raws, cache_control={"type": "ephemeral"}),
    "an image": lambda raws: any_block(raws, type="image"),
    "a document": lambda raws: any_block(raws, type="document"),
    "thinking": lambda raws: any_block(raws, type="thinking"),
    "redacted thinking": lambda raws: any_block(raws, type="redacted_thinking"),
    "a failed tool": lambda raws: any_block(raws, type="tool_result", is_error=True),
    "an empty result": lambda raws: any_block(raws, type="tool_result", content=""),
    "a block nobody knows": lambda raws: any(
        isinstance(part, Opaque) for message in decode_messages(raws, "anthropic") for part in message.parts
    ),
    "parallel calls": lambda raws: any(len(m.calls) > 1 for m in decode_messages(raws, "anthropic")),
    "an unknown field": lambda raws: holds(raws, b"x_trace"),
    "a float written out": lambda raws: holds(raws, b"1.0"),
    "a large integer": lambda raws: holds(raws, b"123456789012345678901234567890"),
    "raw CJK": lambda raws: holds(raws, "日本語".encode()),
    "escaped CJK": lambda raws: holds(raws, b"\\u65e5\\u672c"),
    "blanks around": lambda raws: any(raw.startswith(b"{\n") for raw in raws),
}
CHAT = {
    "a system prompt": lambda raws: json.loads(raws[0])["role"] == "system",
    "null content": lambda raws: any(json.loads(raw).get("content", "") is None for raw in raws),
    "no content at all": lambda raws: any("content" not in json.loads(raw) for raw in raws),
    "an image": lambda raws: any_block(raws, type="image_url"),
    "a file": lambda raws: any_block(raws, type="file"),
    "a custom tool": lambda raws: holds(raws, b'"custom"'),
    "reasoning": lambda raws: any("reasoning_content" in json.loads(raw) for raw in raws),
    "an empty result": lambda raws: any(
        message["role"] == "tool" and message["content"] == "" for message in map(json.loads, raws)
    ),
    "a name": lambda raws: any("name" in json.loads(raw) for raw in raws),
    "a cache mark": lambda raws: any_block(raws, cache_control={"type": "ephemeral"}),
    "parallel calls": lambda raws: any(len(m.calls) > 1 for m in decode_messages(raws, "openai_chat")),
}


RESPONSES = {
    "instructions among the items": lambda raws: json.loads(raws[0])["role"] == "developer",
    "a message without its type": lambda raws: any("type" not in json.loads(raw) for raw in raws),
    "an image": lambda raws: any_block(raws, type="input_image"),
    "a file": lambda raws: any_block(raws, type="input_file"),
    "a refusal": lambda raws: any_block(raws, type="refusal"),
    "reasoning": lambda raws: holds(raws, b'"encrypted_content"'),
    "a custom tool": lambda raws: holds(raws, b'"custom_tool_call_output"'),
    "a local shell": lambda raws: holds(raws, b'"local_shell_call_output"'),
    "a search of the provider": lambda raws: holds(raws, b'"web_search_call"'),
    "parallel calls": lambda raws: any(len(m.calls) > 1 for m in decode_messages(raws, "openai_responses")),
    "an answer of several items": lambda raws: len(decode_messages(raws, "openai_responses")) < len(raws),
}


@pytest.mark.parametrize("wanted", RESPONSES.values(), ids=RESPONSES.keys())
def test_responses_transcripts_contain(wanted: Any) -> None:
    assert wanted(find(transcripts("openai_responses"), wanted, settings=FINDING))


@pytest.mark.parametrize("wanted", ANTHROPIC.values(), ids=ANTHROPIC.keys())
def test_anthropic_transcripts_contain(wanted: Any) -> None:
    assert wanted(find(transcripts("anthropic"), wanted, settings=FINDING))


@pytest.mark.parametrize("wanted", CHAT.values(), ids=CHAT.keys())
def test_chat_transcripts_contain(wanted: Any) -> None:
    assert wanted(find(transcripts("openai_chat"), wanted, settings=FINDING))
