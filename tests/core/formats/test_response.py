"""Whole answers as the APIs give them: what the call cost, what was billed beside it, why the cache was missed."""

import json
from typing import Any

import pytest
from anthropic.types.beta import BetaMessage
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from lowwater.core.api_calls import Usage, together
from lowwater.core.costs.prices import cost_of, cost_of_all
from lowwater.core.formats.codec import decode_response, encode_messages
from lowwater.core.models.model import CacheRules, Cliff, MarkedPrefixes, Model, Prices
from lowwater.errors import BadInput

CACHE = CacheRules(matching=MarkedPrefixes(max_marks=4))
LOW = Prices(input=3_000_000, cache_read=300_000, cache_write=3_750_000, output=15_000_000)
HIGH = Prices(input=6_000_000, cache_read=600_000, cache_write=7_500_000, output=22_500_000)
STEEP = Model(
    name="steep",
    provider="p",
    family="",
    context_length=1_000_000,
    cache=CACHE,
    prices=LOW,
    cliffs=(Cliff(above=200_000, prices=HIGH),),
)
MESSAGE: dict[str, Any] = {
    "id": "msg_01",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5-20250929",
    "content": [
        {"type": "compaction", "content": "Earlier: the build was made to pass."},
        {"type": "text", "text": "Done."},
    ],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "context_management": {"applied_edits": []},
    "usage": {
        "input_tokens": 1_200,
        "cache_creation_input_tokens": 800,
        "cache_read_input_tokens": 21_000,
        "cache_creation": {"ephemeral_5m_input_tokens": 800, "ephemeral_1h_input_tokens": 0},
        "output_tokens": 1_000,
        "output_tokens_details": {"thinking_tokens": 200},
        "server_tool_use": None,
        "service_tier": "standard",
        "iterations": [
            {
                "type": "compaction",
                "input_tokens": 2_000,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 180_000,
                "cache_creation": None,
                "output_tokens": 3_500,
            },
            {
                "type": "message",
                "model": "claude-sonnet-4-5-20250929",
                "input_tokens": 1_200,
                "cache_creation_input_tokens": 800,
                "cache_read_input_tokens": 21_000,
                "cache_creation": {"ephemeral_5m_input_tokens": 800, "ephemeral_1h_input_tokens": 0},
                "output_tokens": 1_000,
            },
        ],
    },
}
COMPLETION: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1_790_000_000,
    "model": "gpt-5.6-2026-07-01",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Done.", "refusal": None, "annotations": []},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ],
    "usage": {
        "prompt_tokens": 12_033,
        "completion_tokens": 420,
        "total_tokens": 12_453,
        "prompt_tokens_details": {"cached_tokens": 11_904, "cache_write_tokens": 100, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 320, "audio_tokens": 0},
    },
    "service_tier": "default",
    "system_fingerprint": None,
}

RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1_790_000_000,
    "model": "gpt-5.6-2026-07-01",
    "status": "completed",
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "temperature": 1.0,
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
        },
    ],
    "usage": {
        "input_tokens": 12_033,
        "input_tokens_details": {"cached_tokens": 11_904, "cache_write_tokens": 100},
        "output_tokens": 420,
        "output_tokens_details": {"reasoning_tokens": 320},
        "total_tokens": 12_453,
    },
    "service_tier": "default",
}


def decoded(body: dict[str, Any], **fields: object) -> Any:
    return decode_response(json.dumps({**body, **fields}).encode())


def test_a_compaction_by_the_provider_is_billed_beside_the_answer() -> None:
    response = decoded(MESSAGE)
    assert response.usage == Usage(uncached=1_200, cache_read=21_000, cache_write=800, output=1_000)
    assert response.others == (Usage(uncached=2_000, cache_read=180_000, output=3_500),)
    assert response.calls == (response.usage, *response.others)
    assert response.prompt == 23_000
    assert response.list_price


def test_two_calls_below_a_cliff_do_not_cross_it_together() -> None:
    response = decoded(MESSAGE)
    # 1,200 × $3 + 21,000 × $0.30 + 800 × $3.75 + 1,000 × $15 per million, and 2,000 × $3 + 180,000 × $0.30 + 3,500 × $15.
    assert cost_of_all(response.calls, STEEP) == 27_900_000 + 112_500_000
    as_one = together(response.calls)
    assert as_one.prompt == 205_000
    assert cost_of(as_one, STEEP) == 19_200_000 + 120_600_000 + 6_000_000 + 101_250_000, "a call nobody made"


def test_a_chat_completion_is_one_call() -> None:
    response = decoded(COMPLETION)
    assert response.usage == Usage(uncached=29, cache_read=11_904, cache_write=100, output=420)
    assert (response.calls, response.prompt, response.list_price) == ((response.usage,), 12_033, True)
    # 29 × $3 + 11,904 × $0.30 + 100 × $3.75 + 420 × $15 per million.
    assert cost_of_all(response.calls, STEEP) == 87_000 + 3_571_200 + 375_000 + 6_300_000


def test_a_response_is_one_call_and_its_items_one_message() -> None:
    response = decoded(RESPONSE)
    assert response.usage == Usage(uncached=29, cache_read=11_904, cache_write=100, output=420)
    assert (response.calls, response.prompt, response.list_price) == ((response.usage,), 12_033, True)
    assert (response.message.role, response.message.text, response.stop) == (
        "assistant",
        "Done.",
        "completed",
    )
    assert [part.kind for part in response.message.parts] == ["thinking", "text"]
    assert [json.loads(raw) for raw in encode_messages([response.message], "openai_responses")] == RESPONSE[
        "output"
    ]


def test_a_response_that_was_cut_says_why_and_one_that_failed_is_none() -> None:
    cut = decoded(RESPONSE, status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    assert cut.stop == "max_output_tokens"
    empty = decoded(RESPONSE, output=[])
    assert (empty.message.parts, encode_messages([empty.message], "openai_responses")) == ((), [])
    with pytest.raises(BadInput, match="the response failed, there is nothing to record: Sorry"):
        decoded(RESPONSE, status="failed", error={"code": "server_error", "message": "Sorry"})


@pytest.mark.parametrize("body", [COMPLETION, RESPONSE], ids=["openai_chat", "openai_responses"])
@pytest.mark.parametrize("tier", ["flex", "priority"])
def test_an_answer_at_another_tier_has_no_list_price(body: dict[str, Any], tier: str) -> None:
    assert not decoded(body, service_tier=tier).list_price


@pytest.mark.parametrize(
    "body", [MESSAGE, COMPLETION, RESPONSE], ids=["anthropic", "openai_chat", "openai_responses"]
)
def test_without_usage_nothing_is_known_to_be_billed(body: dict[str, Any]) -> None:
    response = decoded(body, usage=None)
    assert (response.usage, response.calls, response.prompt) == (None, (), 0)


@pytest.mark.parametrize(
    ("diagnostics", "reason"),
    [
        (
            {"cache_miss_reason": {"type": "system_changed", "cache_missed_input_tokens": 9_000}},
            "system_changed",
        ),
        ({"cache_miss_reason": {"type": "messages_changed"}}, "messages_changed"),
        ({"cache_miss_reason": {"type": "previous_message_not_found"}}, ""),
        ({"cache_miss_reason": {"type": "unavailable"}}, ""),
        ({"cache_miss_reason": None}, ""),
        ({"cache_miss_reason": {"type": 5}}, ""),
        (None, ""),
        ("none", ""),
    ],
    ids=[
        "system",
        "messages",
        "nothing to compare",
        "unavailable",
        "pending",
        "garbage",
        "no miss",
        "a word",
    ],
)
def test_why_anthropic_missed_its_cache(diagnostics: object, reason: str) -> None:
    response = decoded(MESSAGE, diagnostics=diagnostics)
    assert (response.miss_reason, response.message.text) == (reason, "Done.")


@pytest.mark.parametrize(
    ("diagnostics", "reason"),
    [
        (
            {"type": "cache_miss", "reason": "tools_changed", "cache_missed_tokens": 11_000},
            "tools_changed",
        ),
        ({"type": "cache_hit"}, ""),
        ({"type": "comparison_response_not_found"}, ""),
        ({"type": "cache_miss", "reason": ["tools"]}, ""),
        (None, ""),
    ],
    ids=["tools", "hit", "nothing to compare", "garbage", "not asked"],
)
def test_why_openai_missed_its_cache(diagnostics: object, reason: str) -> None:
    assert decoded(COMPLETION, prompt_cache_diagnostics=diagnostics).miss_reason == reason
    assert decoded(RESPONSE, prompt_cache_diagnostics=diagnostics).miss_reason == reason


def test_an_answer_without_diagnostics_names_no_reason() -> None:
    assert decoded(MESSAGE).miss_reason == decoded(COMPLETION).miss_reason == ""


def test_the_shapes_are_those_of_the_official_sdks() -> None:
    assert BetaMessage.model_validate(MESSAGE).usage.cache_read_input_tokens == 21_000
    assert ChatCompletion.model_validate(COMPLETION).choices[0].message.content == "Done."
    assert Response.model_validate(RESPONSE).output_text == "Done."
