"""The request that has Anthropic compact by itself, and what is made of its answer."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from lowwater.core.api_calls import Usage
from lowwater.core.formats.anthropic import betas_for, betas_of_body, dropping
from lowwater.core.summary.request import CachedPrefix, SummaryRequest
from lowwater.errors import SummaryFailed
from lowwater.summarizers.endpoint import endpoint_for, with_betas
from lowwater.summarizers.model import ModelSummarizer
from lowwater.summarizers.native import MOST_INSTRUCTIONS, block_written_in, native_body

ENDPOINT = endpoint_for("claude-opus-5-5", base_url="http://here", api_key="k", format="anthropic")
BODY = {"model": "alias", "messages": [{"role": "user", "content": "Hi  é"}], "tools": [{"name": "bash"}]}
BLOCK = b'{"type": "compaction","content":"So far, so good.",  "signature":"c2ln","tool_changes":[ ]}'


def request_for(body: dict[str, Any] | None, **options: Any) -> SummaryRequest:
    raw = None if body is None else json.dumps(body, indent=1).encode()
    riding = None if raw is None else CachedPrefix(format="anthropic", body=raw)
    return SummaryRequest(messages=(), max_tokens=600, cached_prefix=riding, native=True, **options)


def answer_of(content: bytes, stop: str = "compaction", **usage: Any) -> bytes:
    steps = [{"type": "compaction", "input_tokens": 40, "cache_read_input_tokens": 900, "output_tokens": 60}]
    spent = {"input_tokens": 0, "output_tokens": 0, "iterations": steps, **usage}
    around = {"role": "assistant", "model": "claude-opus-5-5", "stop_reason": stop, "usage": spent}
    return json.dumps(around).encode().removesuffix(b"}") + b', "content": [' + content + b"]}"


def test_every_byte_of_the_conversation_stays_where_it_is() -> None:
    request = request_for(BODY)
    assert request.cached_prefix is not None
    body = native_body(request, ENDPOINT)
    asked = json.loads(body)
    assert asked.pop("compaction")["type"] == "summarize"
    assert asked.pop("max_tokens") == 1_200
    assert asked == {**BODY, "model": "claude-opus-5-5"}
    start = request.cached_prefix.body.index(b'"messages"')
    assert body[body.index(b'"messages"') :].startswith(request.cached_prefix.body[start : -len(b"\n}")])


@pytest.mark.parametrize(
    ("thinking", "tokens"),
    [
        ({"type": "enabled", "budget_tokens": 5_000}, 6_200),
        ({"type": "adaptive"}, 9_200),
        ({"type": "disabled"}, 1_200),
    ],
    ids=["a budget", "adaptive", "disabled"],
)
def test_there_is_room_to_think_before_it_is_written(thinking: dict[str, Any], tokens: int) -> None:
    body = native_body(request_for({**BODY, "thinking": thinking}), ENDPOINT)
    assert json.loads(body)["max_tokens"] == tokens
    assert json.loads(body)["thinking"] == thinking


def test_the_focus_is_told_and_what_is_too_long_is_cut() -> None:
    told = json.loads(native_body(request_for(BODY, focus="the flux"), ENDPOINT))["compaction"][
        "instructions"
    ]
    assert "the flux" in told
    assert "Do not call any tool" in told
    long = json.loads(native_body(request_for(BODY, focus="x" * 30_000), ENDPOINT))["compaction"][
        "instructions"
    ]
    assert len(long) == MOST_INSTRUCTIONS


@pytest.mark.parametrize(
    "request_",
    [
        request_for(None),
        replace(request_for(BODY), cached_prefix=CachedPrefix(format="openai_chat", body=b"{}")),
        request_for({**BODY, "tool_choice": {"type": "any"}}),
        request_for({**BODY, "tool_choice": {"type": "tool", "name": "bash"}}),
    ],
    ids=["nothing to compact", "another format", "any tool", "a certain tool"],
)
def test_what_cannot_be_compacted_is_not_sent(request_: SummaryRequest) -> None:
    with pytest.raises(SummaryFailed) as failed:
        native_body(request_, ENDPOINT)
    assert failed.value.kind == "refused"


def test_the_block_is_read_with_what_it_says_and_what_it_cost() -> None:
    written = block_written_in(answer_of(BLOCK), asked="claude")
    assert written.block == BLOCK
    assert written.text == "So far, so good."
    assert written.usage == Usage(uncached=40, cache_read=900, output=60)


@pytest.mark.parametrize(
    ("content", "stop", "kind", "said"),
    [
        (b"", "max_tokens", "failed", "used up its length"),
        (b"", "tool_use", "failed", "called a tool"),
        (b"", "refusal", "refused", "declined"),
        (b"", "model_context_window_exceeded", "refused", "no room"),
        (b"", "end_turn", "failed", "into nothing"),
        (b"", "compaction", "failed", "without a block"),
        (b'{"type":"text","text":"So far."}', "compaction", "failed", "without a block"),
        (b'{"type":"compaction","content":null}', "compaction", "failed", "without a block"),
        (b'{"type":"compaction","content":" ","signature":"x"}', "compaction", "failed", "without a block"),
        (b'{"type":"compaction","content":"So far."}', "compaction", "failed", "not signed"),
        (BLOCK + b"," + BLOCK, "compaction", "failed", "without a block"),
        (BLOCK, "something_new", "failed", "without a block"),
    ],
)
def test_an_answer_without_a_block_is_a_failure_that_says_why(
    content: bytes, stop: str, kind: str, said: str
) -> None:
    with pytest.raises(SummaryFailed, match=said) as failed:
        block_written_in(answer_of(content, stop), asked="claude")
    assert failed.value.kind == kind
    assert failed.value.spent == Usage(uncached=40, cache_read=900, output=60), "it was billed all the same"


def test_an_answer_that_is_none_is_a_failure() -> None:
    with pytest.raises(SummaryFailed, match="cannot be read"):
        block_written_in(b"<html>", asked="claude")


def test_what_the_body_needs_goes_into_the_header_beside_what_is_there() -> None:
    assert with_betas(ENDPOINT, ()) is ENDPOINT
    asked = with_betas(ENDPOINT, ("compact-2026-09-04",))
    assert asked.headers["anthropic-beta"] == "compact-2026-09-04"
    assert with_betas(asked, ("compact-2026-09-04",)) is asked
    both = with_betas(asked, ("other-1", "compact-2026-09-04"))
    assert both.headers["anthropic-beta"] == "compact-2026-09-04,other-1"
    assert both.headers["x-api-key"] == "k"


def test_which_betas_a_request_needs() -> None:
    signed = b'{"role":"assistant","content":[' + BLOCK + b"]}"
    came = b'{"role":"assistant","content":[{"type":"compaction","content":"So far."},{"type":"text","text":"On."}]}'
    said = b'{"role":"user","content":"a \\"compaction\\" of sorts"}'
    assert betas_for([said]) == ()
    assert betas_for([signed, said]) == ("compact-2026-09-04",)
    assert betas_for([came]) == ("compact-2026-01-12",)
    drops = dropping(b'{"type":"adaptive","display":"x"}')
    assert json.loads(drops) == {
        "type": "adaptive",
        "display": "x",
        "block_binding": {"prefix_mismatch_behavior": "drop_block"},
    }
    assert betas_for([said], drops) == ("thinking-binding-controls-2026-08-01",)
    body = b'{"messages":[' + signed + b'],"thinking":' + drops + b"}"
    assert betas_of_body(body) == ("compact-2026-09-04", "thinking-binding-controls-2026-08-01")
    assert betas_of_body(b'{"messages":[]}', compacting=True) == ("compact-2026-09-04",)
    assert betas_of_body(b'{"messages":[]}') == ()
    assert betas_of_body(b'"compaction"') == ()


@pytest.mark.parametrize(
    "thinking",
    [b"", b'{"type":"enabled","budget_tokens":2000}', b'{"type":"adaptive","block_binding":{}}'],
    ids=["none", "a budget", "the client's own"],
)
def test_only_adaptive_thinking_can_be_dropped_and_a_clients_word_stands(thinking: bytes) -> None:
    assert dropping(thinking) == thinking


def test_only_at_anthropics_api_a_provider_can_be_asked() -> None:
    assert ModelSummarizer(model="claude-opus-5-5", api_key="k").compacts
    assert not ModelSummarizer(model="gpt-5.5", api_key="k").compacts
    assert not ModelSummarizer(
        model="claude-opus-5-5", base_url="https://openrouter.ai/api/v1", api_key="k"
    ).compacts
