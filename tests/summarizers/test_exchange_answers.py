"""What counts as a summary in a provider's answer."""

import json
from typing import Any

import pytest

from lowwater.core.api_calls import Usage
from lowwater.errors import SummaryFailed
from lowwater.summarizers.exchange import written_in


def anthropic(*content: Any, stop: str = "end_turn", **others: Any) -> bytes:
    blocks = [{"type": "text", "text": part} if isinstance(part, str) else part for part in content]
    return json.dumps({"role": "assistant", "content": blocks, "stop_reason": stop, **others}).encode()


def chat(content: str | None, stop: str = "stop", message: Any = None, **others: Any) -> bytes:
    told = {"role": "assistant", "content": content, **(message or {})}
    return json.dumps({"choices": [{"message": told, "finish_reason": stop}], **others}).encode()


def response(*output: Any, status: str = "completed", why: str = "", **others: Any) -> bytes:
    items = [
        said({"type": "output_text", "text": item}) if isinstance(item, str) else item for item in output
    ]
    details = {"reason": why} if why else None
    told = {"object": "response", "status": status, "incomplete_details": details, "output": items}
    return json.dumps({**told, **others}).encode()


def said(part: Any) -> dict[str, Any]:
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": [part]}


def streamed(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


USED = {
    "input_tokens": 903,
    "input_tokens_details": {"cached_tokens": 900},
    "output_tokens": 40,
    "total_tokens": 943,
}
FUNCTION = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "bash", "arguments": "{}"}
REFUSAL = {"type": "refusal", "refusal": "I can't."}
CALL = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}


def test_anthropics_usage_and_model_come_with_it() -> None:
    usage = {"input_tokens": 3, "cache_read_input_tokens": 900, "output_tokens": 40}
    written = written_in(anthropic("## Goal", model="claude-x-20260101", usage=usage), asked="claude-x")
    assert (written.text, written.by, written.model) == ("## Goal", "claude-x", "claude-x-20260101")
    assert written.usage == Usage(uncached=3, cache_read=900, output=40)
    assert not written.cut_off


def test_openais_usage_and_model_come_with_it() -> None:
    usage = {"prompt_tokens": 903, "completion_tokens": 40, "prompt_tokens_details": {"cached_tokens": 900}}
    written = written_in(chat("## Goal", usage=usage), asked="gpt")
    assert written.usage == Usage(uncached=3, cache_read=900, output=40)
    assert written.model == "gpt", "the one that was asked, if the answer names none"


@pytest.mark.parametrize(
    "raw",
    [
        anthropic("half a", stop="max_tokens"),
        anthropic("half a", stop="model_context_window_exceeded"),
        chat("half a", stop="length"),
        response("half a", status="incomplete", why="max_output_tokens"),
        response("half a", status="incomplete"),
    ],
    ids=["Anthropic", "Anthropic's window", "OpenAI", "a response", "a response that does not say why"],
)
def test_what_its_length_ended_says_so(raw: bytes) -> None:
    assert written_in(raw, asked="m").cut_off


@pytest.mark.parametrize(
    ("raw", "says", "kind"),
    [
        (
            anthropic("x", {"type": "tool_use", "id": "t", "name": "n", "input": {}}),
            "called a tool",
            "failed",
        ),
        (anthropic("x", stop="tool_use"), "called a tool", "failed"),
        (chat("x", message={"tool_calls": [CALL]}), "called a tool", "failed"),
        (anthropic("no", stop="refusal"), "declined", "refused"),
        (anthropic(stop="refusal"), "declined", "refused"),
        (chat("", stop="content_filter"), "declined", "refused"),
        (chat(None, message={"refusal": "I can't."}), "declined", "refused"),
        (anthropic(), "answered with nothing", "failed"),
        (anthropic(" \n"), "answered with nothing", "failed"),
        (chat(None), "answered with nothing", "failed"),
        (chat("<think>hm"), "answered with nothing", "failed"),
        (chat("", stop="length"), "used up its length", "refused"),
        (response("x", FUNCTION), "called a tool", "failed"),
        (response("x", FUNCTION | {"type": "custom_tool_call", "input": "ls"}), "called a tool", "failed"),
        (response(said(REFUSAL)), "declined", "refused"),
        (response("I", status="incomplete", why="content_filter"), "declined", "refused"),
        (response(), "answered with nothing", "failed"),
        (response(status="queued"), "answered with nothing", "failed"),
        (response(status="incomplete", why="max_output_tokens"), "used up its length", "refused"),
        (response(status="failed"), "not able to answer now", "network"),
        (response(status="cancelled"), "not able to answer now", "network"),
        (b"", "cannot be read", "failed"),
        (b"<html>502</html>", "cannot be read", "failed"),
        (b'{"choices": [', "cannot be read", "failed"),
        (b'{"choices": []}', "cannot be read", "failed"),
        (b'{"error": {"message": "busy"}}', "cannot be read", "failed"),
        (b"[1]", "cannot be read", "failed"),
        (b"\xff\xfe", "cannot be read", "failed"),
        (b"[" * 5_000, "cannot be read", "failed"),
    ],
)
def test_what_is_no_summary_is_told_apart(raw: bytes, says: str, kind: str) -> None:
    with pytest.raises(SummaryFailed, match=says) as caught:
        written_in(raw, asked="m")
    assert caught.value.kind == kind


def test_thinking_is_no_part_of_it() -> None:
    assert written_in(chat("<think>\nwell\n</think>\n\n## Goal\n- x"), asked="m").text == "## Goal\n- x"
    thinking = {"type": "thinking", "thinking": "well", "signature": "s"}
    assert written_in(anthropic(thinking, "## Goal"), asked="m").text == "## Goal"
    quoted = "## Goal\n- Print <think> around it."
    assert written_in(chat(quoted), asked="m").text == quoted


FAILURES = {
    "server_error": ("not able to answer now", "network"),
    "rate_limit_exceeded": ("not able to answer now", "network"),
    "insufficient_quota": ("gives no access", "auth"),
    "context_length_exceeded": ("longer than what the model takes", "refused"),
    "invalid_prompt": ("refuses the request", "refused"),
}


@pytest.mark.parametrize("code", FAILURES)
@pytest.mark.parametrize("form", ["whole", "streamed"])
def test_a_response_that_failed_is_told_as_a_refusal_would_be(code: str, form: str) -> None:
    says, kind = FAILURES[code]
    raw = response(status="failed", error={"code": code, "message": "sk-secret"}, usage=USED)
    if form == "streamed":
        begun = {"type": "response.created", "response": {**json.loads(response()), "usage": None}}
        raw = streamed(begun, {"type": "response.failed", "response": json.loads(raw)})
    with pytest.raises(SummaryFailed, match=says) as caught:
        written_in(raw, asked="m")
    assert caught.value.kind == kind
    assert "sk-secret" not in str(caught.value)
    assert caught.value.spent == (Usage(uncached=3, cache_read=900, output=40) if form == "whole" else None)


def test_a_responses_usage_and_model_come_with_it() -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}
    written = written_in(response(thought, "## Goal", model="gpt-5.2-2026", usage=USED), asked="gpt-5.2")
    assert (written.text, written.model, written.cut_off) == ("## Goal", "gpt-5.2-2026", False)
    assert written.usage == Usage(uncached=3, cache_read=900, output=40)


def test_a_response_that_came_as_a_stream_reads_the_same() -> None:
    whole = json.loads(response("## Goal\n- x", model="gpt", usage=USED))
    events = streamed(
        {"type": "response.created", "response": {**whole, "output": [], "status": "in_progress"}},
        {"type": "response.output_item.done", "output_index": 0, "item": whole["output"][0]},
        {"type": "response.completed", "response": whole},
    )
    assert written_in(events, asked="gpt") == written_in(json.dumps(whole).encode(), asked="gpt")
    with pytest.raises(SummaryFailed, match="in the middle") as caught:
        written_in(events[: events.rindex(b"event:")], asked="gpt")
    assert caught.value.kind == "network"


@pytest.mark.parametrize(
    "options",
    [{"stop": "tool_use"}, {"stop": "refusal"}, {"stop": "max_tokens"}, {}],
    ids=["call", "refusal", "cut off", "nothing"],
)
def test_what_a_failed_answer_consumed_is_told(options: dict[str, str]) -> None:
    with pytest.raises(SummaryFailed) as caught:
        written_in(anthropic(usage={"input_tokens": 7, "output_tokens": 2}, **options), asked="m")
    assert caught.value.spent == Usage(uncached=7, output=2)
