"""A prepared request carries its marks where they serve, in either provider's form, and never too many (specification F)."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from lowwater.core.cache.marks import CacheMarks, Seams
from lowwater.core.formats.codec import decode_messages
from lowwater.core.messages import Format
from lowwater.session.request import PreparedRequest
from lowwater.testing.views import Script

SYSTEM = msgspec.json.encode("Be brief.")
TOOLS = msgspec.json.encode([{"name": "bash", "input_schema": {"type": "object"}}])
BREAK = "prompt_cache_breakpoint"


def prepared(format: Format, *, steps: int = 8, at_once: int = 1, **fields: Any) -> PreparedRequest:
    """A session of `steps` rounds of tools, the last of them of `at_once` calls."""
    script = Script(format).user("go")
    for step in range(steps):
        script.calls("bash", {"command": str(step)}, f"output {step}")
    messages = list(script.messages())
    if at_once > 1:
        messages += many(format, at_once)
    given = {
        "system": SYSTEM,
        "tools": TOOLS,
        "detected_format": format,
        "marks": CacheMarks(in_chat=True, on_tools=True),
    } | fields
    return PreparedRequest(messages=tuple(messages), **given)


def many(format: Format, count: int) -> list[Any]:
    raws: list[Any]
    if format == "anthropic":
        calls = [{"type": "tool_use", "id": f"c{at}", "name": "bash", "input": {}} for at in range(count)]
        results = [{"type": "tool_result", "tool_use_id": f"c{at}", "content": "ok"} for at in range(count)]
        raws = [{"role": "assistant", "content": calls}, {"role": "user", "content": results}]
    else:
        function = {"name": "bash", "arguments": "{}"}
        asked = [{"id": f"c{at}", "type": "function", "function": function} for at in range(count)]
        raws = [{"role": "assistant", "content": None, "tool_calls": asked}]
        raws += [{"role": "tool", "tool_call_id": f"c{at}", "content": "ok"} for at in range(count)]
    return decode_messages([msgspec.json.encode(raw) for raw in raws], format)


def marked(messages: list[Any], field: str = "cache_control") -> list[int]:
    return [at for at, message in enumerate(messages) if field in msgspec.json.encode(message).decode()]


def test_the_edge_and_the_last_request_are_marked_beside_the_newest_message() -> None:
    body = prepared("anthropic", seams=Seams(shared=15, edge=4)).as_anthropic()
    assert marked(body["messages"]) == [4, 14, 16]
    assert "cache_control" in body["system"][0]
    assert marked(body["tools"]) == []


def test_a_turn_of_many_blocks_finds_the_last_request_again() -> None:
    body = prepared("anthropic", at_once=25, seams=Seams(shared=17)).as_anthropic()
    assert marked(body["messages"]) == [16, 17, 18]
    chat = prepared("openai_chat", at_once=25, seams=Seams(shared=17)).as_openai()
    assert marked(chat["messages"]) == [0, 17, 42, 43], "the system prompt stands before them"


@pytest.mark.parametrize(
    ("system", "moves", "on_system", "on_tools"),
    [(SYSTEM, False, 1, 0), (SYSTEM, True, 0, 1), (b"", False, 0, 1), (b'" "', False, 0, 1)],
    ids=["system", "a system prompt that changes", "no system", "a blank system"],
)
def test_the_mark_before_the_messages_stands_on_the_system_or_the_last_tool(
    system: bytes, moves: bool, on_system: int, on_tools: int
) -> None:
    body = prepared("anthropic", system=system, seams=Seams(system_moves=moves)).as_anthropic()
    assert len(marked(body["tools"])) == on_tools
    assert ("cache_control" in str(body.get("system"))) == bool(on_system)
    assert len(marked(body["messages"])) == 3


def test_without_anything_before_the_messages_four_marks_stand_on_them() -> None:
    bare = prepared("anthropic", system=b"", tools=b"", seams=Seams(shared=15, edge=4))
    assert marked(bare.as_anthropic()["messages"]) == [4, 14, 15, 16]
    assert marked(replace(bare, seams=Seams()).as_anthropic()["messages"]) == [14, 15, 16]


def test_seams_follow_messages_into_another_format() -> None:
    """All results of a group stand in one message there, and the system prompt stands apart."""
    chat = prepared("openai_chat", at_once=5, system=b"", seams=Seams(shared=17, edge=4))
    system = Script("openai_chat").system("Be brief.").messages()
    moved = replace(
        chat,
        messages=(*system, *chat.messages),
        seams=Seams(shared=18, edge=5),
        detected_format="openai_chat",
    )
    body = moved.as_anthropic()
    assert len(body["messages"]) == 19
    assert marked(body["messages"]) == [4, 16, 18]
    assert marked(moved.as_openai()["messages"]) == [0, 5, 17, 23]


def test_openai_gets_three_breakpoints_and_keeps_its_own() -> None:
    marks = CacheMarks(ttl="30m", breakpoints=True, lookback=None)
    request = prepared("openai_chat", marks=marks, seams=Seams(shared=15, edge=4), cache_key="lw-1")
    body = request.as_openai()
    assert marked(body["messages"], BREAK) == [0, 5, 17]
    assert marked(body["messages"]) == []
    assert "prompt_cache_options" not in body
    part = body["messages"][5]["content"][-1]
    assert part[BREAK] == {"mode": "explicit"}


def test_an_edge_on_an_answer_moves_to_the_message_before_it_at_openai() -> None:
    marks = CacheMarks(ttl="30m", breakpoints=True, lookback=None)
    body = prepared("openai_chat", marks=marks, seams=Seams(shared=15, edge=5)).as_openai()
    assert marked(body["messages"], BREAK) == [0, 5, 17]
    assert body["messages"][6]["role"] == "assistant"


def test_breakpoints_have_no_form_at_anthropic() -> None:
    marks = CacheMarks(ttl="30m", breakpoints=True, lookback=None)
    body = prepared("anthropic", marks=marks, seams=Seams(shared=15, edge=4)).as_anthropic()
    assert marked(body["messages"]) == marked(body["messages"], BREAK) == []


def test_the_key_is_sent_to_openai_unless_a_user_has_one() -> None:
    request = prepared("openai_chat", marks=None, cache_key="lw-1")
    assert request.as_openai()["prompt_cache_key"] == "lw-1"
    assert "prompt_cache_key" not in request.as_openai(cache_key=False)
    assert "prompt_cache_key" not in replace(request, cache_key="").as_openai()
    assert "prompt_cache_key" not in request.as_anthropic()
