"""Specification G: the window follows the model and its fallbacks, a switch counts at once, a limit in an error is learned."""

import json
from typing import Any

import openai
import pytest

from lowwater.errors import BadInput
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.settings import CompressionSettings, FallbackProvider, Settings
from lowwater.testing.provider import Provider
from tests.generated import generate_session

MESSAGES: list[Any] = [
    json.loads(raw)
    for raw in generate_session("coding", seed=51, target_tokens=110_000).as_openai_chat()[:-1]
]
BIG, SMALL = "claude-opus-5-5", "gpt-4o"
"""A million tokens, and 128,000."""


def test_the_seed_presets_plan_for_the_smallest_context_of_the_chain() -> None:
    alone, chained = (Lowwater(model=BIG, policy="runway", fallbacks=others) for others in ([], [SMALL]))
    assert alone.session().status().context == 1_000_000
    assert chained.session().status().context == 128_000
    assert chained.session().status().threshold == 64_000


def test_fallbacks_may_come_from_the_settings() -> None:
    settings = Settings(fallback_providers=(FallbackProvider(model=SMALL, base_url="http://here"),))
    assert Lowwater(model=BIG, policy="runway", settings=settings).session().status().context == 128_000


def test_a_switch_re_derives_threshold_tail_and_wall_at_once() -> None:
    session = Lowwater(model=BIG, policy="runway").session()
    before = session.status()
    session.use(SMALL)
    after = session.status()
    assert (before.threshold, before.wall) == (500_000, 984_000)
    assert (after.threshold, after.wall) == (64_000, 112_000)
    assert after.model == SMALL
    session.use(BIG)
    assert session.status() == before


def test_a_view_that_no_longer_fits_is_compacted_before_it_is_sent() -> None:
    session = Lowwater(model=BIG, policy="never").session()
    session.append(MESSAGES)
    assert session.prepare().tokens > 112_000
    assert internals(session).last_compaction is None
    session.use(SMALL)
    request = session.prepare()
    assert request.tokens < 112_000
    compaction = internals(session).last_compaction
    assert compaction is not None
    assert compaction.because.code == "wall"
    assert compaction.model == SMALL


def test_what_was_learned_of_one_model_does_not_leak_to_the_next() -> None:
    session = Lowwater(model=SMALL).session()
    for tokens in (1_000, 40_000, 90_000):
        session.append({"role": "user", "content": "hello"})
        session.prepare()
        session.record(completion("hi", prompt=tokens))
    assert session.status().prompt > 90_000
    session.use("gpt-4o-mini")
    assert session.status().prompt < 1_000, "another model may count otherwise: it is counted anew"


def completion(text: str, *, prompt: int) -> dict[str, Any]:
    usage = {"prompt_tokens": prompt, "completion_tokens": 5, "total_tokens": prompt + 5}
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}


@pytest.mark.parametrize(
    ("said", "tokens"),
    [
        ("prompt is too long: 208310 tokens > 200000 maximum", 200_000),
        ("input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease", 200_000),
        ("This model's maximum context length is 8192 tokens. However, your messages resulted in", 8_192),
        ("The input token count exceeds the maximum number of tokens allowed (1,048,576).", 1_048_576),
        ("the request exceeds the available context size (4096 tokens), try increasing it", 4_096),
    ],
    ids=["anthropic", "anthropic with output", "openai", "gemini", "llama.cpp"],
)
def test_a_limit_that_a_provider_reports_in_an_error_is_learned(said: str, tokens: int) -> None:
    session = Lowwater(model="model-nobody-knows").session()
    assert session.learn_context_length(RuntimeError(f"Error code: 400 - {said}")) == tokens
    assert session.status().context == tokens


def test_an_error_of_the_real_sdk_teaches_the_limit() -> None:
    session = Lowwater(model="model-nobody-knows", policy="never").session()
    with Provider(default_context=30_000) as provider:
        client = openai.OpenAI(api_key="k", base_url=provider.openai_base_url, max_retries=0)
        request = session.prepare(MESSAGES)
        with pytest.raises(openai.BadRequestError) as refused:
            client.chat.completions.create(model="model-nobody-knows", **request.as_openai())
        session.learn_context_length(refused.value)
        client.chat.completions.create(model="model-nobody-knows", **session.prepare().as_openai())
        client.close()
    assert session.status().context == 30_000


def test_an_error_about_something_else_teaches_nothing() -> None:
    session = Lowwater(model=SMALL).session()
    with pytest.raises(BadInput, match="names no context length"):
        session.learn_context_length(RuntimeError("overloaded"))
    with pytest.raises(BadInput, match="makes no sense"):
        session.learn_context_length(0)
    assert session.status().context == 128_000


def test_a_learned_limit_holds_for_provider_url_and_model_and_for_every_session() -> None:
    lowwater = Lowwater(model=BIG)
    one, two = lowwater.session("one"), lowwater.session("two")
    one.use("qwen3-coder", base_url="http://one")
    sold = one.status().context
    one.learn_context_length("maximum context length is 32000 tokens")
    two.use("qwen3-coder", base_url="http://one")
    assert (one.status().context, two.status().context) == (32_000, 32_000)
    two.use("qwen3-coder", base_url="http://two")
    assert two.status().context == sold
    two.use(SMALL, base_url="http://one")
    assert two.status().context == 128_000
    assert one.status().context == 32_000


def test_a_limit_learned_of_a_fallback_counts_for_the_chain() -> None:
    lowwater = Lowwater(
        model=BIG,
        policy="runway",
        fallbacks=[FallbackProvider(model=SMALL, base_url="http://here")],
    )
    session = lowwater.session()
    session.use(SMALL)
    session.learn_context_length(60_000)
    session.use(BIG)
    assert session.status().context == 60_000


def test_an_auto_threshold_follows_the_measured_growth() -> None:
    settings = Settings(compression=CompressionSettings(threshold="auto"))
    session = Lowwater(model=BIG, policy="runway", settings=settings).session()
    assert session.status().threshold == 500_000
    for turn in range(1, 15):
        session.append({"role": "user", "content": "hello"})
        session.prepare()
        session.record(completion("hi", prompt=2_000 * turn))
    assert 64_000 <= session.status().threshold < 250_000
