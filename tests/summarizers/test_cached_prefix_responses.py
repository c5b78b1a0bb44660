"""A summary request that extends a Responses request: what is its own about that."""

import json
from typing import Any

import pytest

from lowwater.core.formats.codec import decode_response
from lowwater.core.messages import Format
from lowwater.core.summary.request import CachedPrefix
from lowwater.summarizers.endpoint import endpoint_for
from lowwater.summarizers.requests import cached_prefix_body
from lowwater.testing.provider import Provider, Say, Think
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

RESPONSES: Format = "openai_responses"

RESPONSES_CHOICES: dict[str, Any] = {
    "auto": "auto",
    "none": "none",
    "allowed": {"type": "allowed_tools", "mode": "auto", "tools": []},
    "required": "required",
    "named": {"type": "function", "name": "bash"},
    "of the provider": {"type": "web_search"},
    "required of some": {"type": "allowed_tools", "mode": "required", "tools": []},
}


@pytest.mark.parametrize("choice", RESPONSES_CHOICES)
def test_a_choice_of_tools_in_a_response_is_left_alone_unless_it_forces_one(choice: str) -> None:
    body = cached_prefix_fields(tool_choice=RESPONSES_CHOICES[choice])
    assert (body is not None) == (choice in ("auto", "none", "allowed"))


def cached_prefix_fields(url: str = "http://here/v1", **others: Any) -> dict[str, Any] | None:
    """The summary's request that rides on a Responses request with these fields."""
    sent = body_of(raws_of(RESPONSES)[:2], RESPONSES, **others)
    request = request_of(RESPONSES, riding=CachedPrefix(format=RESPONSES, body=sent))
    endpoint = endpoint_for(MODELS[RESPONSES], base_url=url, format=RESPONSES)
    body = cached_prefix_body(request, endpoint)
    return json.loads(body) if body else None


def test_a_response_that_would_come_in_the_background_is_waited_for() -> None:
    body = cached_prefix_fields(background=True)
    assert body is not None
    assert body["background"] is False


def test_an_input_that_is_one_text_is_not_ridden_on() -> None:
    assert cached_prefix_fields(input="Hello.") is None


def test_where_nothing_but_streams_is_answered_the_request_has_one_item_more_and_no_other_change() -> None:
    bare = body_of(raws_of(RESPONSES)[:2], RESPONSES).replace(b'"max_output_tokens": 4000,', b"")
    request = request_of(RESPONSES, riding=CachedPrefix(format=RESPONSES, body=bare))
    codex = "https://chatgpt.com/backend-api/codex"
    endpoint = endpoint_for(MODELS[RESPONSES], base_url=codex, format=RESPONSES)
    body = cached_prefix_body(request, endpoint)
    assert body is not None
    sent, told = json.loads(bare), json.loads(body)
    *before, _ = told.pop("input")
    assert (before, told) == (sent.pop("input"), sent)
    assert told["stream"] is True


@pytest.mark.parametrize("stores", [True, False], ids=["stored", "not stored"])
def test_reasoning_that_only_its_id_tells_of_is_sent_where_the_provider_can_find_it(*, stores: bool) -> None:
    sent = body_of(beginning(RESPONSES), RESPONSES, store=stores, stream=False)
    with Provider([Think("hm", Say("Done.")), Say("## Goal\n- Finish.")]) as provider:
        answer = decode_response(send(provider, sent, RESPONSES).content)
        riding = CachedPrefix(format=RESPONSES, body=sent, since=(answer.message,))
        summarizer_at(provider, RESPONSES).summarize(request_of(RESPONSES, riding=riding))
        assert provider.refusals == ()
        items = provider.requests[-1].body["input"]
    assert [item["type"] for item in items if item.get("type") == "reasoning"] == ["reasoning"] * stores
    assert "Done." in json.dumps(items[-2])


def test_the_provider_reads_its_cache_and_the_usage_tells_so() -> None:
    sent = body_of(ending_with("tool", RESPONSES), RESPONSES, stream=False)
    with Provider(default=Say("## Goal\n- Finish.")) as provider:
        first = decode_response(send(provider, sent, RESPONSES).content)
        riding = CachedPrefix(format=RESPONSES, body=sent)
        ridden = summarizer_at(provider, RESPONSES).summarize(request_of(RESPONSES, riding=riding))
        apart = summarizer_at(provider, RESPONSES).summarize(request_of(RESPONSES))
    assert first.usage is not None
    assert ridden.usage is not None
    assert apart.usage is not None
    assert ridden.usage.cache_read > 0.8 * first.usage.prompt > 1_000
    assert apart.usage.cache_read == 0
