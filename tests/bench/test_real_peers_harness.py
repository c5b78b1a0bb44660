"""The harness that runs other packages, driven with a worker of no package."""

import sys
from functools import cache
from pathlib import Path

import pytest

from bench.peers.worker import TRIGGER, WINDOW, Worker
from bench.real_peers_billing import Sizes, bill
from bench.real_peers_cases import Case, generated, is_taken
from bench.real_peers_play import Played, play, play_never
from bench.real_peers_rows import uses_by_turn
from bench.real_peers_sent import prefix_breaks, text_of
from lowwater.adapters.models import load_registry
from lowwater.lab.replay.script import model_named

MODULE = "tests.bench.trivial_worker"


@cache
def short() -> Case:
    return generated(requests=14, tokens=30_000)


def played(variant: str, *, limit: float = 60.0, reports_usage: bool = True) -> Played:
    worker = Worker(
        Path(sys.executable), MODULE, variant=variant, packages=("msgspec",), tools=short().tools, limit=limit
    )
    return play(short(), worker, lambda words: None, reports_usage=reports_usage)


def billed(done: Played):
    model = model_named("openai-30m", load_registry())
    sizes = Sizes(model)
    fixed = sizes.preamble(short().script)
    return bill(done.sents, model, fixed=fixed, uses=uses_by_turn(short()), sizes=sizes)


def test_a_peer_that_removes_nothing_sends_and_costs_what_the_session_does():
    done, never = played("whole"), play_never(short())
    assert not done.failed
    assert [sent.messages for sent in done.sents] == [sent.messages for sent in never.sents]
    assert billed(done) == billed(never)
    assert prefix_breaks(done.sents) == 0
    assert all(is_taken(sent.messages) for sent in done.sents)
    assert all(fact in text_of(done.sents[-1].messages) for fact in short().facts)


def test_versions_are_told_and_what_the_package_prints_does_not_get_in_the_way():
    done = played("whole")
    assert list(done.versions) == ["msgspec"]
    assert done.wall > 0


def test_a_peer_is_told_what_its_last_request_measured_unless_it_shall_not_be():
    done, prompts = played("told"), billed(played("told")).prompts
    said = [sent.messages[-1].text for sent in done.sents]
    assert said == ["None", *(str(prompt) for prompt in prompts[:-1])]
    quiet = played("told", reports_usage=False)
    assert {sent.messages[-1].text for sent in quiet.sents} == {"None"}


def test_a_peer_that_summarises_is_billed_for_it_and_its_breaks_are_counted():
    done, never = played("summary"), play_never(short())
    asked = [each for sent in done.sents for each in sent.asked]
    assert asked
    assert prefix_breaks(done.sents) == len(asked)
    assert all(len(each.answer) == len(asked[0].answer) for each in asked)
    assert any(short().facts[0] in each.prompt for each in asked)
    figures = billed(done)
    assert figures.summaries > 0
    assert figures.asked > 1_000
    assert max(figures.prompts) < max(billed(never).prompts)


def test_requests_that_no_provider_takes_are_found():
    done = played("orphan")
    assert not all(is_taken(sent.messages) for sent in done.sents)
    assert is_taken(done.sents[0].messages)


def test_a_peer_that_ends_is_told_with_its_last_words():
    done = played("dies")
    assert len(done.sents) == 2
    assert done.failed.startswith("after 2 of 14 requests it ended with status 1")
    assert "no tokens today" in done.failed


def test_a_peer_that_does_not_answer_is_stopped():
    done = played("stalls", limit=2.0)
    assert len(done.sents) <= 2
    assert done.failed.endswith("of 14 requests it was stopped: 2 seconds were not enough")


def test_a_module_that_cannot_be_run_is_told():
    worker = Worker(
        Path(sys.executable), "tests.bench.no_such_worker", variant="", packages=(), tools=(), limit=60.0
    )
    done = play(short(), worker, lambda words: None)
    assert not done.sents
    assert "No module named 'tests.bench.no_such_worker'" in done.failed


def test_peers_start_at_half_of_the_window_they_are_told():
    assert TRIGGER * 2 == WINDOW


@pytest.mark.parametrize("sheet", ["openai-30m", "anthropic-r10", "anthropic-r05"])
def test_a_history_that_grows_is_read_up_to_where_the_last_request_ended(sheet):
    model = model_named(sheet, load_registry())
    assert model.prices is not None
    sizes = Sizes(model)
    done, fixed = play_never(short()), sizes.preamble(short().script)
    figures = bill(done.sents, model, fixed=fixed, uses={}, sizes=sizes)
    prompts = [fixed + sum(map(sizes.of, sent.messages)) for sent in done.sents]
    assert list(figures.prompts) == prompts
    least = model.cache.min_cacheable or 0
    reads = [prompt if prompt >= least else 0 for prompt in prompts[:-1]]
    assert figures.read == sum(reads)
    outputs = sum(sizes.of(sent.answer) for sent in done.sents)
    unmarked = sum(prompt for prompt in prompts if prompt < least)
    written = sum(prompts) - sum(reads) - unmarked
    prices = model.prices
    cost = (
        prices.cache_read * sum(reads)
        + prices.cache_write * written
        + prices.input * unmarked
        + prices.output * outputs
    ) / 1_000
    assert figures.cost == pytest.approx(cost, abs=len(prompts))
