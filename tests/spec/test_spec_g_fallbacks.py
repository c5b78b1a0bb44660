"""Specification G: models and fallbacks; which model writes a summary comes with the model-backed summarizer."""

import pytest

from lowwater import Lowwater
from lowwater.errors import BadInput
from lowwater.settings import FallbackProvider
from lowwater.testing.fakes import ScriptedSummarizer

SEED = ["threshold", "prune-naive", "runway", "hermes-classic"]


@pytest.mark.parametrize("policy", SEED)
def test_g_the_effective_context_is_the_smallest_of_the_primary_and_its_fallbacks(policy: str) -> None:
    models = ["claude-haiku-4-5", "gpt-4o", "gpt-5.4-mini"]
    for primary in models:
        fallbacks = [model for model in models if model != primary]
        status = Lowwater(model=primary, fallbacks=fallbacks, policy=policy).session().status()
        assert (status.context, status.threshold, status.wall) == (128_000, 64_000, 112_000)


def test_g_it_stays_so_while_a_larger_fallback_answers() -> None:
    session = Lowwater(model="gpt-4o", fallbacks=["claude-opus-5-5"], policy="runway").session()
    session.use("claude-opus-5-5")
    assert (session.status().model, session.status().context) == ("claude-opus-5-5", 128_000)


def test_g_a_switch_re_derives_everything_at_once(opened) -> None:
    session = opened(policy="runway", model="claude-opus-5-5")
    seen = {}
    for model in ("claude-opus-5-5", "claude-haiku-4-5", "gpt-4o", "claude-opus-5-5"):
        session.use(model)
        status = session.status()
        seen[model] = (status.context, status.threshold, status.wall, status.caching)
    assert seen == {
        "claude-opus-5-5": (1_000_000, 500_000, 984_000, "on, 1h"),
        "claude-haiku-4-5": (200_000, 100_000, 184_000, "on, 1h"),
        "gpt-4o": (128_000, 64_000, 112_000, "automatic"),
    }


@pytest.mark.parametrize(
    ("model", "steps", "target"), [("gpt-4o", 56, 54_400), ("claude-haiku-4-5", 78, 85_000)]
)
def test_g_the_runway_follows_too(opened, loop, faithful, compacted, model, steps, target) -> None:
    summarizer = ScriptedSummarizer(faithful)
    session = opened(loop(steps, lines=90), policy="runway", model="claude-opus-5-5", summarizer=summarizer)
    session.prepare()
    assert session.status().last_compaction is None
    session.use(model)
    session.prepare()
    assert compacted(session).because.facts["target"] == target
    assert f"{target:,}" in session.explain()


def test_g_a_switch_compacts_before_sending_if_the_view_no_longer_fits(opened, loop, compacted) -> None:
    session = opened(loop(60), policy="never", model="claude-opus-5-5")
    session.prepare()
    session.use("gpt-4o", base_url="http://small")
    session.learn_context_length(30_000)
    request = session.prepare()
    assert compacted(session).because.code == "wall"
    assert request.tokens < session.status().wall == 22_500


def test_g_a_switch_counts_anew(opened, reported) -> None:
    session = opened(policy="runway")
    reported(session, 60_000)
    session.use("gpt-4o-mini")
    assert session.status().prompt < 100


@pytest.mark.parametrize(
    "said",
    [
        "This model's maximum context length is 40000 tokens. However, your messages resulted in 61234 tokens.",
        "prompt is too long: 61234 tokens > 40000 maximum",
    ],
    ids=["openai", "anthropic"],
)
def test_g_a_limit_that_the_provider_reports_in_an_error_is_learned(opened, loop, said) -> None:
    session = opened(loop(75), policy="runway")
    assert session.prepare().tokens > 40_000
    session.learn_context_length(RuntimeError(f"Error code: 400 - {said}"))
    assert session.status().context == 40_000
    assert session.prepare().tokens < session.status().wall == 30_000


def test_g_what_is_learned_is_keyed_by_provider_url_and_model() -> None:
    lowwater = Lowwater(model="claude-opus-5-5", policy="runway")
    here, there = lowwater.session("here"), lowwater.session("there")
    here.use("gpt-4o", base_url="http://here")
    here.learn_context_length(RuntimeError("maximum context length is 32000 tokens"))
    found = {}
    for model in ("gpt-4o", "gpt-4o-mini"):
        for url in ("http://here", "http://there", ""):
            there.use(model, base_url=url)
            found[model, url] = there.status().context
    assert found.pop(("gpt-4o", "http://here")) == 32_000, "in every session"
    assert set(found.values()) == {128_000}


def test_g_what_is_learned_of_a_fallback_counts_for_the_whole_chain() -> None:
    here = FallbackProvider(model="gpt-4o", base_url="http://here")
    lowwater = Lowwater(model="claude-opus-5-5", fallbacks=[here], policy="runway")
    falling_back, other = lowwater.session("one"), lowwater.session("two")
    falling_back.use("gpt-4o")
    falling_back.learn_context_length(RuntimeError("maximum context length is 48000 tokens"))
    assert (other.status().model, other.status().context) == ("claude-opus-5-5", 48_000)


def test_g_an_error_about_something_else_teaches_nothing(opened) -> None:
    session = opened(policy="runway")
    with pytest.raises(BadInput, match="names no context length"):
        session.learn_context_length(RuntimeError("Error code: 529 - overloaded"))
    assert session.status().context == 128_000
