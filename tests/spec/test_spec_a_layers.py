"""Specification A: two layers of compaction, in the loop and as the gateway's hygiene."""

import pytest

from lowwater.core.decisions import Compact, Keep
from lowwater.core.policies.safety_rules import decide
from lowwater.session.internals import internals
from lowwater.settings import CompressionSettings, Settings
from lowwater.testing.decision_contexts import example_context, offer
from lowwater.testing.fakes import ScriptedClock, ScriptedSummarizer, fail
from lowwater.testing.views import Script

OFFERS = (offer("elide", 60_000), offer("summarize", 70_000))
IN_THE_LOOP = ["threshold", "prune-naive", "runway", "hermes-classic"]
NONE = Settings()


def with_share(share: float) -> Settings:
    return Settings(compression=CompressionSettings(threshold=share))


# Fires at


@pytest.mark.parametrize("policy", IN_THE_LOOP)
@pytest.mark.parametrize("context", [128_000, 200_000, 1_000_000])
def test_a_the_loop_fires_at_50_percent_of_the_context(policy: str, context: int) -> None:
    below = decide(example_context(context // 2 - 1, *OFFERS, context=context), NONE, policy=policy)
    assert (type(below), below.because.code) == (Keep, "below-threshold")
    assert isinstance(
        decide(example_context(context // 2, *OFFERS, context=context), NONE, policy=policy), Compact
    )


@pytest.mark.parametrize(("share", "threshold"), [(0.4, 80_000), (0.5, 100_000), (0.7, 140_000)])
def test_a_the_loops_percentage_is_configurable(opened, share, threshold) -> None:
    session = opened(policy="runway", model="claude-haiku-4-5", settings=with_share(share))
    assert (session.status().context, session.status().threshold) == (200_000, threshold)


@pytest.mark.parametrize(("context", "limit"), [(128_000, 108_800), (200_000, 170_000), (1_000_000, 850_000)])
def test_a_hygiene_fires_at_85_percent_of_the_context(context: int, limit: int) -> None:
    below = decide(example_context(limit - 1, *OFFERS, context=context), NONE, policy="hygiene")
    assert below.because.code == "below-hygiene"
    at = decide(example_context(limit, *OFFERS, context=context), NONE, policy="hygiene")
    assert isinstance(at, Compact)
    loop = example_context(1, context=context).limits
    assert (at.enough, at.below) == (loop.target, limit), "down to where the loop would be content"


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_a_hygiene_is_fixed_whatever_the_loops_percentage(opened, reported, share) -> None:
    session = opened(policy="hygiene", settings=with_share(share))
    reported(session, 108_799)
    session.prepare()
    assert session.status().decision.because.facts == {"prompt": 108_799, "hygiene": 108_800}


# Counts by


@pytest.mark.parametrize(
    ("tokens", "said"),
    [(63_999, "is below the threshold of 64,000"), (64_000, "has reached the threshold of 64,000")],
)
def test_a_the_loop_counts_by_the_usage_the_provider_reported(opened, reported, tokens, said) -> None:
    session = opened(policy="runway")
    reported(session, tokens)
    session.prepare()
    assert said in session.explain()


@pytest.mark.parametrize(
    ("tokens", "said"),
    [(108_799, "is below the hygiene limit"), (108_800, "has reached the hygiene limit of 108,800")],
)
def test_a_hygiene_counts_by_the_last_reported_usage(opened, reported, tokens, said) -> None:
    session = opened(Script().user("one").says("two"), policy="hygiene")
    reported(session, tokens)
    session.prepare()
    assert said in session.explain()


@pytest.mark.parametrize(("words", "due"), [(105_000, False), (110_000, True)])
def test_a_hygiene_counts_by_the_estimate_where_nothing_was_reported(opened, words, due) -> None:
    script = Script().user("one").says("two").user("three").says(" word" * words)
    session = opened(script, policy="hygiene")
    session.prepare()
    assert ("has reached the hygiene limit" in session.explain()) == due


# When


def test_a_the_loop_compacts_before_sending(opened, loop, sink) -> None:
    session = opened(loop(40), policy="prune-naive", window=24_000)
    before = session.status().prompt
    request = session.prepare()
    assert [event.before for event in sink.compactions] == [before]
    assert request.tokens == sink.compactions[0].after < session.status().threshold <= before


def test_a_the_loop_compacts_after_a_model_switch(opened, loop, compacted) -> None:
    session = opened(loop(40), policy="threshold", model="claude-opus-5-5")
    session.prepare()
    assert session.status().last_compaction is None
    session.use("gpt-4o", base_url="http://small")
    session.learn_context_length(24_000)
    session.prepare()
    assert (compacted(session).model, session.status().context) == ("gpt-4o", 24_000)


@pytest.mark.parametrize(("more", "code"), [(0, "too-few-messages"), (1, "nothing-offered")], ids=["3", "4"])
def test_a_hygiene_leaves_fewer_than_4_messages_alone(opened, reported, more, code) -> None:
    session = opened(policy="hygiene")
    reported(session, 109_000)
    session.append([{"role": "user", "content": "on"}, *[{"role": "user", "content": "and on"}] * more])
    session.prepare()
    assert (session.status().messages, session.status().decision.because.code) == (3 + more, code)


# Why


def test_a_hygiene_catches_a_conversation_that_grew_overnight(opened, loop, told, sink) -> None:
    session = opened(Script().user("Good night."), policy="hygiene", window=24_000)
    session.prepare(max_tokens=500)
    session.append({"role": "assistant", "content": "Good night."})
    session.append(told(loop(40, script=Script().user("Good morning."))))
    assert session.status().prompt > 0.85 * 24_000
    request = session.prepare(max_tokens=500)
    assert len(sink.compactions) == 1
    assert request.tokens < session.status().threshold


def test_a_hygiene_does_not_compact_on_every_turn(opened, loop, sink) -> None:
    session = opened(loop(40), policy="hygiene", window=24_000)
    for turn in range(6):
        session.prepare(max_tokens=500)
        session.append([{"role": "assistant", "content": "ok"}, {"role": "user", "content": f"go on {turn}"}])
    assert len(sink.compactions) == 1


@pytest.mark.parametrize("tokens", [109_000, 120_000], ids=["past both limits", "past the wall"])
@pytest.mark.parametrize("policy", ["runway", "hygiene"])
def test_a_enabled_false_stops_both(opened, reported, loop, sink, policy, tokens) -> None:
    settings = Settings(compression=CompressionSettings(enabled=False))
    session = opened(loop(40, lines=5), policy=policy, settings=settings)
    reported(session, tokens)
    session.prepare()
    assert session.status().decision.because.code == "disabled"
    assert sink.compactions == []


# should_compress, wall, hygiene, threshold


@pytest.mark.parametrize(
    ("tokens", "own", "due"),
    [
        (63_999, 70_000, False),
        (64_000, 10_000, True),
        (None, 64_000, True),
        (None, 63_999, False),
        (0, 70_000, False),
    ],
    ids=["below", "at", "its own at", "its own below", "0 is a count"],
)
def test_a_a_session_says_whether_it_should_compress(opened, reported, tokens, own, due) -> None:
    session = opened(policy="threshold")
    reported(session, own)
    assert internals(session).should_compress(tokens) is due


def test_a_a_session_that_is_not_enabled_should_never_compress(opened) -> None:
    session = opened(policy="threshold", settings=Settings(compression=CompressionSettings(enabled=False)))
    assert not internals(session).should_compress(10**6)


@pytest.mark.parametrize(
    ("model", "max_tokens", "reserve"),
    [
        ("gpt-4o", 4_000, 4_000),
        ("gpt-4o", None, 16_000),
        ("gpt-4o-2024-05-13", None, 16_000),
        ("deepseek-chat", None, 8_192),
        ("claude-opus-5-5", None, 16_000),
        ("gpt-4o", 100_000, 32_000),
    ],
    ids=["asked for", "at most 16,000", "output unknown", "small output", "large output", "a quarter"],
)
def test_a_the_wall_is_the_context_less_the_reserve(opened, model, max_tokens, reserve) -> None:
    session = opened(Script().user("hi"), policy="runway", model=model)
    session.prepare(max_tokens=max_tokens)
    assert session.status().context - session.status().wall == reserve


@pytest.mark.parametrize(("max_tokens", "limit"), [(None, 108_800), (20_000, 108_000), (32_000, 96_000)])
def test_a_hygiene_is_85_percent_of_the_context_or_the_wall_if_that_is_lower(
    opened, max_tokens, limit
) -> None:
    session = opened(Script().user("hi"), policy="hygiene")
    session.prepare(max_tokens=max_tokens)
    assert f"below the hygiene limit of {limit:,}" in session.explain()


@pytest.mark.parametrize(
    ("window", "share", "threshold", "classic"),
    [
        (1_000_000, 0.5, 500_000, 500_000),
        (128_000, 0.5, 64_000, 64_000),
        (128_000, 0.3, 64_000, 38_400),
        (100_000, 0.5, 64_000, 50_000),
        (200_000, 0.9, 161_500, 161_500),
        (64_000, 0.5, 45_600, 32_000),
    ],
    ids=["half", "the floor", "floor over percent", "floor over half", "below hygiene", "hygiene over floor"],
)
def test_a_the_threshold_is_min_of_max_of_percent_and_64000_and_95_percent_of_hygiene(
    opened, window, share, threshold, classic
) -> None:
    found = {
        policy: opened(policy=policy, window=window, settings=with_share(share)).status().threshold
        for policy in ("runway", "threshold", "prune-naive", "hermes-classic")
    }
    assert found.pop("hermes-classic") == classic, "which has no floor"
    assert set(found.values()) == {threshold}


def test_a_percentages_are_of_the_context_and_not_of_the_wall(opened) -> None:
    session = opened(Script().user("hi"), policy="runway", model="claude-haiku-4-5")
    session.prepare(max_tokens=40_000)
    status = session.status()
    assert (status.wall, status.threshold) == (160_000, 100_000)


# By hand


@pytest.mark.parametrize("policy", [*IN_THE_LOOP, "never", "guarded", "hygiene"])
def test_a_by_hand_the_threshold_and_the_guards_do_not_count(opened, loop, policy) -> None:
    session = opened(loop(30), policy=policy)
    session.prepare()
    assert session.status().last_compaction is None
    event = session.compress()
    assert event.because.code == "by-hand"
    assert event.after < event.before


def test_a_by_hand_the_cool_down_does_not_count(opened, loop, told) -> None:
    failing = ScriptedSummarizer(fail(RuntimeError()))
    session = opened(loop(40), policy="threshold", summarizer=failing, clock=ScriptedClock(1_000.0))
    session.compress()
    asked = len(failing.requests)
    session.append(told(loop(30, script=Script().user("Go on."))))
    session.compress()
    assert len(failing.requests) > asked > 0
