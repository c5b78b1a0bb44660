"""A request that shows a transcript fits the window, whatever the conversation was."""

import json

import pytest
from msgspec.structs import replace

from lowwater.core.messages import Format, Message, Text
from lowwater.core.summary.request import SummaryRequest
from lowwater.core.summary.template import Section
from lowwater.core.tokens.estimate import CharacterTokenizer
from lowwater.errors import SummaryFailed
from lowwater.summarizers.endpoint import endpoint_for
from lowwater.summarizers.requests import MOST_BYTES, transcript_body
from lowwater.testing.fakes import WordTokenizer
from tests.summarizers.conftest import request_of

COUNT = CharacterTokenizer()


def told(request: SummaryRequest, *, window: int = 128_000, format: Format = "anthropic") -> str:
    endpoint = endpoint_for("m", base_url="http://here/v1", format=format)
    body = json.loads(transcript_body(request, endpoint, context_length=window, tokenizer=COUNT))
    return str(body["messages"][-1]["content"])


def long_request(words: int) -> SummaryRequest:
    messages = tuple(
        Message(role="user" if at % 2 == 0 else "assistant", parts=(Text(text=f"number-{at} " * words),))
        for at in range(200)
    )
    return SummaryRequest(messages=messages, max_tokens=500)


def test_it_holds_the_transcript_the_template_and_the_rules() -> None:
    request = replace(request_of(), numbers=tuple(range(1, 17)), recall=True, focus="the parser")
    text = told(request)
    assert "[lw:1 user said]" in text
    assert all(f"# {section}\n" in text for section in Section)
    assert "concerns this topic: the parser" in text
    assert "such as lw:12" in text
    assert "Do not call any tool" in text
    assert "previous summary" not in text


def test_a_previous_summary_is_shown_and_is_to_be_updated() -> None:
    text = told(replace(request_of(), previous="## Goal\n- Make the parser fast."))
    assert text.index("- Make the parser fast.") < text.index("----- transcript -----")
    assert "It also replaces the previous summary" in text


@pytest.mark.parametrize("window", [8_000, 32_000, 128_000])
def test_it_fits_the_window_with_its_answer(window: int) -> None:
    request = long_request(400)
    text = told(request, window=window)
    assert COUNT.count(text) + 2 * request.max_tokens <= window
    assert "number-199 " in text, "the newest is there"
    assert "number-0 " in text, "and how it began"


def test_what_does_not_fit_is_left_out_with_a_note_oldest_first() -> None:
    text = told(long_request(400), window=8_000)
    assert "pieces left out here]" in text
    assert "number-100 " not in text


def test_it_is_bounded_in_bytes_too() -> None:
    lines = "\n".join("=" * 2_900 for _ in range(2))
    messages = tuple(
        Message(role="user", parts=(Text(text=f"{at} {lines}"),))
        for at in range(3 * MOST_BYTES // (2 * len(lines)))
    )
    endpoint = endpoint_for("m", base_url="http://here/v1")
    request = SummaryRequest(messages=messages, max_tokens=500)
    body = transcript_body(request, endpoint, context_length=10**9, tokenizer=WordTokenizer())
    assert len(body) < MOST_BYTES + 20_000


def test_a_window_too_small_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(SummaryFailed, match="1,500 tokens is too small") as caught:
        told(request_of(), window=1_500)
    assert caught.value.kind == "refused"


@pytest.mark.parametrize(
    ("base_url", "format", "limit"),
    [
        ("", "anthropic", {"max_tokens": 1_200}),
        ("http://here/v1", "openai_chat", {"max_tokens": 1_200}),
        ("", "openai_chat", {"max_completion_tokens": 9_200}),
        ("", "openai_responses", {"max_output_tokens": 9_200}),
        ("https://chatgpt.com/backend-api/codex", "openai_responses", {}),
    ],
    ids=["Anthropic", "compatible", "OpenAI, where thinking counts", "Responses", "one that limits itself"],
)
def test_the_answer_is_limited_in_the_field_that_is_read(
    base_url: str, format: Format, limit: dict[str, int]
) -> None:
    endpoint = endpoint_for("m", base_url=base_url, format=format, api_key="k")
    body = json.loads(transcript_body(request_of(), endpoint, context_length=128_000, tokenizer=COUNT))
    assert {name: value for name, value in body.items() if name.startswith("max_")} == limit


def test_a_response_is_shown_the_same_and_nothing_is_stored() -> None:
    endpoint = endpoint_for("m", base_url="http://here/v1", format="openai_responses")
    body = json.loads(transcript_body(request_of(), endpoint, context_length=128_000, tokenizer=COUNT))
    assert list(body) == ["model", "max_output_tokens", "instructions", "input", "store"]
    assert body["store"] is False
    assert body["input"] == [{"role": "user", "content": told(request_of())}]
