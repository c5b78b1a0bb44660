"""Every real package on a session that takes it over its trigger: requests come back, and do what was measured before."""

from functools import cache

import pytest

from bench.peers.catalogue import VARIANTS
from bench.real_peers import FIRST
from bench.real_peers_cases import generated
from bench.real_peers_rows import Row
from bench.real_peers_run import compare

pytestmark = pytest.mark.full

REQUESTS, TOKENS = 32, 130_000
WHOLE = (53, 204_000)
"""The session of the figures: on a shorter one, one more cut or one less near its end is a fourth of the cost."""
SUMMARISE = ("hermes", "langchain-untrimmed", "pydantic-ai-summarising", "openai-agents", "strands")


@cache
def row_of(name: str, requests: int = REQUESTS, tokens: int = TOKENS) -> Row:
    variant = next(variant for variant in VARIANTS if variant.name == name)
    group = compare("generated", [generated(requests=requests, tokens=tokens)], [variant], [FIRST])
    row = group.rows[-1]
    if not row.requests:
        pytest.skip(row.failed)
    return row


@pytest.mark.parametrize("name", [variant.name for variant in VARIANTS])
def test_every_request_comes_back_and_costs_something_sane(name):
    row = row_of(name)
    assert not row.failed
    assert row.requests == REQUESTS
    assert 0.3 < row.money[0].over_never < 6
    assert row.invalid == 0 or name == "litellm-trim"


@pytest.mark.parametrize("name", SUMMARISE)
def test_those_that_summarise_ask_for_it(name):
    row = row_of(name)
    assert row.summary_calls >= 1
    assert row.breaks >= row.summary_calls
    assert row.money[0].summaries > 0


@pytest.mark.parametrize("name", ["hermes", "langchain", "langchain-untrimmed", "openai-agents"])
def test_the_models_of_a_replay_cost_what_the_real_ones_do(name):
    assert row_of(name, *WHOLE).money[0].over_model == pytest.approx(1, abs=0.15)


def test_langchain_by_default_forgets_without_asking_for_a_summary():
    row = row_of("langchain")
    assert row.summary_calls == 0
    assert row.breaks >= 1
    assert row.facts_left < row.facts


def test_langchain_s_editing_grows_beyond_its_trigger():
    assert row_of("langchain-editing").money[0].peak > 100_000


def test_headroom_keeps_everything_and_its_prefix():
    row = row_of("headroom-frozen")
    assert row.breaks == 0
    assert row.facts_left == row.facts
    assert row.money[0].over_never < 1


def test_litellm_s_trimming_breaks_the_prefix_each_time_and_sends_what_no_provider_takes():
    row = row_of("litellm-trim")
    assert row.breaks >= 4
    assert row.invalid >= 4


def test_the_agents_sdk_s_runner_compacts_only_between_runs():
    """Once for each word of the user behind ten items, not every ten items."""
    assert row_of("openai-agents-runner").summary_calls < row_of("openai-agents").summary_calls / 2
