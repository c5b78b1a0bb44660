"""A summary request on the cached prefix: at the HTTP level, every byte the cache depends on is the one that was sent before."""

import json
from typing import Any

import pytest

from lowwater.core.formats.codec import decode_messages, encode_messages, list_field
from lowwater.core.messages import Format
from lowwater.core.strict_json import write_json
from lowwater.core.summary.request import CachedPrefix
from lowwater.errors import SummaryFailed
from lowwater.summarizers.endpoint import endpoint_for
from lowwater.summarizers.requests import cached_prefix_body, spans_of
from lowwater.testing.provider import Call, CallTools, Provider, Say
from tests.summarizers.conftest import (
    MODELS,
    beginning,
    body_of,
    ending_with,
    raws_of,
    request_of,
    send,
    summarizer_at,
)

EVERY = pytest.mark.parametrize("format", MODELS)
FREE = {"max_tokens", "max_completion_tokens", "max_output_tokens", "stream", "stream_options"}


def pieces(body: bytes, format: Format) -> tuple[bytes, dict[str, bytes]]:
    """The messages without the bracket that closes them, and the other fields, as bytes."""
    fields = {name: body[span.start : span.end] for name, span in spans_of(body).items()}
    return fields.pop(list_field(format)).rstrip(b"]").rstrip(), fields


@EVERY
@pytest.mark.parametrize("last", ["user", "result"])
def test_the_prefix_of_the_summary_request_is_the_request_before_byte_for_byte(
    format: Format, last: str
) -> None:
    role = "tool" if format != "anthropic" else "user"
    raws = ending_with(role, format) if last == "result" else beginning(format)
    assert bool(decode_messages(raws, format)[-1].results) == (last == "result")
    sent = body_of(raws, format)
    with Provider([Say("ok"), Say("## Goal\n- Finish.")]) as provider:
        send(provider, sent, format)
        request = request_of(format, riding=CachedPrefix(format=format, body=sent))
        summarizer_at(provider, format).summarize(request)
        before, after = (seen.raw for seen in provider.requests)
    assert before == sent
    (messages, fields), (longer, others) = pieces(before, format), pieces(after, format)
    assert longer.startswith(messages)
    assert {name: value for name, value in others.items() if name not in FREE} == {
        name: value for name, value in fields.items() if name not in FREE
    }
    assert list(others) == list(fields), "and in their order"
    added = json.loads(longer + b"]")[len(json.loads(messages + b"]")) :]
    assert [message["role"] for message in added] == ["user"]
    assert "Do not call any tool" in added[0]["content"]
    start = before.index({"anthropic": b'"system"', "openai_chat": b'"tools"'}.get(format, b'"instructions"'))
    end = before.rindex(messages[-40:]) + 40
    assert before[start:end] in after, "tools, system and messages in one piece"


def test_the_provider_reads_its_cache_up_to_the_last_mark() -> None:
    raws = raws_of("anthropic")[:12]
    while json.loads(raws[-1])["role"] != "user":
        raws.pop()
    marked = json.loads(raws[-1])
    if isinstance(marked["content"], str):
        marked["content"] = [{"type": "text", "text": marked["content"]}]
    marked["content"][-1]["cache_control"] = {"type": "ephemeral"}
    sent = body_of([*raws[:-1], json.dumps(marked).encode()], "anthropic")
    with Provider([Say("ok"), Say("## Goal\n- Finish."), Say("## Goal\n- Finish.")]) as provider:
        first = send(provider, sent.replace(b'"stream": true', b'"stream": false'), "anthropic").json()[
            "usage"
        ]
        summarizer = summarizer_at(provider, "anthropic")
        riding = summarizer.summarize(request_of(riding=CachedPrefix(format="anthropic", body=sent)))
        apart = summarizer.summarize(request_of())
    assert riding.usage is not None
    assert apart.usage is not None
    prompt = first["input_tokens"] + first["cache_creation_input_tokens"]
    assert riding.usage.cache_read == first["cache_creation_input_tokens"] == prompt
    assert riding.usage.uncached < 1_000, "the instruction alone"
    assert riding.usage.cache_write == 0
    assert apart.usage.cache_read == 0


@EVERY
def test_what_came_since_is_part_of_it_as_far_as_calls_have_results(format: Format) -> None:
    raws = raws_of(format)
    messages = tuple(decode_messages(raws, format))
    at = next(at for at, message in enumerate(messages) if message.calls)
    calls = len(encode_messages(messages[:at], format))
    sent = body_of(raws[:calls], format)
    end = at + 1
    while messages[end].results:
        end += 1
    results = len(encode_messages(messages[:end], format))
    for since, kept in ((messages[at : at + 1], 0), (messages[at:end], results - calls)):
        with Provider(default=Say("## Goal\n- Finish.")) as provider:
            riding = CachedPrefix(format=format, body=sent, since=since)
            summarizer_at(provider, format).summarize(request_of(format, riding=riding))
            (seen,) = provider.requests
        listed = seen.body[list_field(format)]
        assert len(listed) == calls + kept + 1
        assert [json.loads(raw) for raw in raws[: calls + kept]] == listed[:-1]


@EVERY
def test_a_tool_call_in_the_answer_is_a_failed_summary(format: Format) -> None:
    answer = CallTools((Call("bash", {"command": "ls"}),), text="## Goal\n- Finish. " * 20)
    with Provider(default=answer) as provider:
        riding = CachedPrefix(format=format, body=body_of(beginning(format), format))
        with pytest.raises(SummaryFailed, match="called a tool") as caught:
            summarizer_at(provider, format).summarize(request_of(format, riding=riding))
    assert caught.value.kind == "failed"


@pytest.mark.parametrize(
    ("format", "others"),
    [
        ("anthropic", {"model": "claude-haiku-4-5"}),
        ("openai_chat", {}),
        ("anthropic", {"tool_choice": {"type": "any"}}),
        ("anthropic", {"tool_choice": {"type": "tool", "name": "bash"}}),
        ("anthropic", {"messages": []}),
        ("anthropic", {"messages": "none"}),
    ],
    ids=["another model", "another format", "any tool forced", "one tool forced", "no messages", "malformed"],
)
def test_what_cannot_be_extended_is_shown_as_a_transcript(format: Format, others: dict[str, Any]) -> None:
    sent = body_of(raws_of(format)[:1], format, **others)
    with Provider(default=Say("## Goal\n- Finish.")) as provider:
        request = request_of(riding=CachedPrefix(format=format, body=sent))
        summarizer_at(provider, "anthropic").summarize(request)
        (seen,) = provider.requests
    assert "tools" not in seen.body
    (shown,) = seen.body["messages"]
    assert shown["content"].startswith("----- transcript -----")


CHAT_CHOICES: dict[str, Any] = {
    "auto": "auto",
    "none": "none",
    "allowed": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}},
    "required": "required",
    "named": {"type": "function", "function": {"name": "bash"}},
    "required of some": {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": []}},
}


@pytest.mark.parametrize("choice", CHAT_CHOICES)
def test_a_choice_of_tools_is_left_alone_unless_it_forces_one(choice: str) -> None:
    sent = body_of(raws_of("openai_chat")[:2], "openai_chat", tool_choice=CHAT_CHOICES[choice])
    request = request_of("openai_chat", riding=CachedPrefix(format="openai_chat", body=sent))
    body = cached_prefix_body(request, endpoint_for(MODELS["openai_chat"], base_url="http://here/v1"))
    assert (body is not None) == (choice in ("auto", "none", "allowed"))
    if body:
        assert json.loads(body)["tool_choice"] == CHAT_CHOICES[choice]


LIMITS: dict[str, tuple[Format, dict[str, Any], dict[str, Any]]] = {
    "twice what was asked for": ("anthropic", {}, {"max_tokens": 1_200}),
    "no less than before where thinking takes some": (
        "anthropic",
        {"max_tokens": 32_000, "thinking": {"type": "enabled", "budget_tokens": 31_999}},
        {"max_tokens": 32_000, "thinking": {"type": "enabled", "budget_tokens": 31_999}},
    ),
    "thinking switched off takes none": (
        "anthropic",
        {"thinking": {"type": "disabled"}},
        {"max_tokens": 1_200, "thinking": {"type": "disabled"}},
    ),
    "in the field that was used": (
        "openai_chat",
        {"max_tokens": None, "max_completion_tokens": 9_000},
        {"max_completion_tokens": 9_000},
    ),
    "no less than before in a response, where thinking counts": (
        "openai_responses",
        {"max_output_tokens": 32_000},
        {"max_output_tokens": 32_000},
    ),
    "room to think in a response": ("openai_responses", {}, {"max_output_tokens": 9_200}),
    "no options for a stream that is none": (
        "openai_chat",
        {"stream_options": {"include_usage": True}},
        {"max_tokens": 1_200, "stream": False, "stream_options": None},
    ),
}


@pytest.mark.parametrize("case", LIMITS)
def test_the_limit_leaves_room_for_the_summary(case: str) -> None:
    format, others, expected = LIMITS[case]
    sent = body_of(raws_of(format)[:2], format, **others)
    request = request_of(format, riding=CachedPrefix(format=format, body=sent))
    body = cached_prefix_body(request, endpoint_for(MODELS[format], base_url="http://here", format=format))
    assert body is not None
    told = json.loads(body)
    assert {name: told[name] for name in expected} == expected
    assert told["stream"] is False


@pytest.mark.parametrize(
    ("thinking", "limit"),
    [({"type": "enabled", "budget_tokens": 5_000}, 6_200), ({"type": "adaptive"}, 9_200), (None, 1_200)],
    ids=["budget", "adaptive", "none"],
)
def test_where_no_limit_was_kept_it_is_above_what_thinking_takes(thinking: Any, limit: int) -> None:
    sent = write_json(
        {"model": "claude-x", "messages": [{"role": "user", "content": "hello"}], "thinking": thinking}
    )
    body = cached_prefix_body(
        request_of(riding=CachedPrefix(format="anthropic", body=sent)), endpoint_for("claude-x", api_key="k")
    )
    assert body is not None
    assert json.loads(body)["max_tokens"] == limit


def test_nothing_about_streams_is_added_where_none_was_asked_for() -> None:
    sent = write_json({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]})
    body = cached_prefix_body(
        request_of(riding=CachedPrefix(format="openai_chat", body=sent)),
        endpoint_for("m", base_url="http://here"),
    )
    assert body is not None
    assert list(json.loads(body)) == ["model", "max_tokens", "messages"]


def test_the_instruction_says_where_the_part_to_condense_ends_and_what_it_updates() -> None:
    riding = CachedPrefix(format="anthropic", body=body_of(raws_of("anthropic")[:1], "anthropic"))
    request = request_of(riding=riding, count=1)
    body = cached_prefix_body(request, endpoint_for(MODELS["anthropic"], api_key="k"))
    assert body is not None
    told = json.loads(body)["messages"][-1]["content"]
    beginning = " ".join(request.messages[0].text.split())[:60]
    assert beginning in told
    assert "summary of earlier turns" not in told
