"""Cache marks are put on copies and taken off again; everything else stays as it was (specification F)."""

from typing import Any

import msgspec
import pytest
from hypothesis import given

from lowwater.core.cache.marks import CacheMarks
from lowwater.core.formats.cache_marks import (
    carries_chat_mark,
    mark_chat_message,
    mark_message,
    unmark_message,
)
from lowwater.core.formats.codec import decode_messages
from lowwater.core.messages import Format
from lowwater.session.request import PreparedRequest
from lowwater.testing.strategies import transcripts
from lowwater.testing.views import Script

FIVE_MINUTES = {"type": "ephemeral"}
AN_HOUR = {"type": "ephemeral", "ttl": "1h"}
FORMATS: list[Format] = ["openai_chat", "anthropic"]


def json(value: object) -> bytes:
    return msgspec.json.encode(value)


def read(raw: bytes) -> Any:
    return msgspec.json.decode(raw)


def found(value: object) -> list[object]:
    """Return every mark in a JSON value, in order."""
    match value:
        case dict():
            return [
                *([value["cache_control"]] if "cache_control" in value else []),
                *(mark for key, inner in value.items() if key != "cache_control" for mark in found(inner)),
            ]
        case list():
            return [mark for inner in value for mark in found(inner)]
        case _:
            return []


@pytest.mark.parametrize("kind", ["thinking", "redacted_thinking"])
def test_f_thinking_never_carries_it(kind: str) -> None:
    thought = {"type": kind, "thinking": "hm", "signature": "x", "data": "y"}
    text = {"type": "text", "text": "said"}
    marked = read(mark_message(json({"role": "assistant", "content": [text, thought]})))
    assert marked["content"] == [{**text, "cache_control": FIVE_MINUTES}, thought]
    alone = json({"role": "assistant", "content": [thought]})
    assert mark_message(alone) == alone


@pytest.mark.parametrize("content", ["", " \n", [], [{"type": "text", "text": ""}], None], ids=str)
def test_f_content_without_a_place_for_it_stays_as_it_is_for_anthropic(content: object) -> None:
    raw = json({"role": "assistant", "content": content})
    assert mark_message(raw) == raw


PICTURE = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "assistant", "content": ""},
        {"role": "assistant", "tool_calls": []},
        {"role": "tool", "tool_call_id": "1", "content": " \n"},
        {"role": "user", "content": [{"type": "text", "text": "Look:"}, PICTURE]},
        {"role": "user", "content": []},
    ],
    ids=["null", "empty", "none", "blank", "a picture at its end", "no parts"],
)
def test_in_chat_a_message_that_ends_with_no_text_carries_no_mark(message: dict[str, Any]) -> None:
    raw = json(message)
    assert not carries_chat_mark(raw)
    assert mark_chat_message(raw) == raw


def test_in_chat_a_tool_message_carries_it_on_a_part_and_only_where_the_router_takes_it() -> None:
    raw = json({"role": "tool", "tool_call_id": "1", "content": "out"})
    part = {"type": "text", "text": "out", "cache_control": FIVE_MINUTES}
    assert read(mark_chat_message(raw)) == {"role": "tool", "tool_call_id": "1", "content": [part]}
    assert mark_chat_message(raw, on_tools=False) == raw
    assert not carries_chat_mark(raw, on_tools=False)


def test_f_in_chat_text_becomes_a_block_that_carries_it() -> None:
    marked = read(mark_chat_message(json({"role": "user", "content": "hi"}), "1h"))
    assert marked["content"] == [{"type": "text", "text": "hi", "cache_control": AN_HOUR}]


def test_marks_are_taken_off_wherever_a_client_put_them() -> None:
    inner = [{"type": "text", "text": "a", "cache_control": FIVE_MINUTES}]
    raw = json(
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "1", "content": inner, "cache_control": AN_HOUR},
                {"type": "text", "text": "b", "cache_control": FIVE_MINUTES},
            ],
            "cache_control": FIVE_MINUTES,
        }
    )
    assert found(read(unmark_message(raw))) == []
    assert read(unmark_message(raw))["content"][0]["content"] == [{"type": "text", "text": "a"}]


@pytest.mark.parametrize(
    "raw",
    [
        b'{ "role":"user", "content":"the word \\"cache_control\\" in a text" }',
        b'{ "role":"assistant","content":[ {"type":"tool_use","id":"1","name":"t","input":{"cache_control": 1}} ] }',
        b'{ "role":"user", "content":"nothing" , "n":1.0 }',
    ],
    ids=["in a text", "in arguments", "nowhere"],
)
def test_the_bytes_of_a_message_without_marks_are_untouched(raw: bytes) -> None:
    assert unmark_message(raw) == raw


@pytest.mark.parametrize("format", FORMATS)
def test_a_mark_put_on_and_taken_off_leaves_the_same_content(format: Format) -> None:
    mark = mark_message if format == "anthropic" else mark_chat_message

    @given(transcripts(format))
    def check(raws: list[bytes]) -> None:
        for raw in raws:
            bare = unmark_message(raw)
            marked = mark(bare)
            assert len(found_in(bare)) == 0
            assert len(found_in(marked)) <= 1
            before, after = decode_messages([bare, unmark_message(marked)], format)
            assert before == after

    check()


def found_in(raw: bytes) -> list[object]:
    """Return the marks of a message; odd numbers and arguments are not looked into."""
    fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    content = fields.get("content", msgspec.Raw(b'""'))
    own: list[object] = ["mark"] if "cache_control" in fields else []
    if bytes(content)[:1] != b"[":
        return own
    blocks = msgspec.json.decode(bytes(content), type=list[dict[str, msgspec.Raw]])
    return [*own, *("mark" for block in blocks if "cache_control" in block)]


@pytest.mark.parametrize("ttl", ["5m", "1h"])
@pytest.mark.parametrize("format", FORMATS)
def test_f_system_and_3_puts_four_marks_in_all_and_removes_the_clients_own(format: Format, ttl: str) -> None:
    script = Script(format).user("go")
    for step in range(5):
        script.calls("bash", {"command": str(step)}, "ok")
    plain = script.says("Done.").user("And now?").messages()
    own = [mark_message(message.wire.raw) for message in plain if message.wire]
    request = PreparedRequest(
        messages=tuple(decode_messages(own, format)),
        detected_format=format,
        system=json([{"type": "text", "text": "Be brief.", "cache_control": AN_HOUR}]),
        tools=json([{"name": "bash", "input_schema": {}, "cache_control": FIVE_MINUTES}]),
        marks=CacheMarks(ttl=ttl, in_chat=True, on_tools=True),
    )
    body = request.as_anthropic() if format == "anthropic" else request.as_openai()
    expected = AN_HOUR if ttl == "1h" else FIVE_MINUTES
    assert found(body) == [expected] * 4
    system = body["system"] if format == "anthropic" else body["messages"][0]
    assert len(found(system)) == 1
    others = body["messages"] if format == "anthropic" else body["messages"][1:]
    assert [len(found(message)) for message in others] == [0] * (len(others) - 3) + [1] * 3
