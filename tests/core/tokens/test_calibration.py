"""Learning from reported usage."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.tokens.counting import HIGHEST_SCALE, LOWEST_SCALE, Calibration


def after(calibration: Calibration, *pairs: tuple[int, float]) -> Calibration:
    for counted, reported in pairs:
        calibration = calibration.observe(counted=counted, reported=reported)
    return calibration


def straight(hidden: int, scale: float, calls: int, step: int = 4_000) -> list[tuple[int, float]]:
    return [(at * step, hidden + round(scale * at * step)) for at in range(1, calls + 1)]


def test_before_any_report_the_family_is_all_there_is():
    fresh = Calibration(prior=1.2)
    assert (fresh.scale, fresh.hidden) == (1.2, 0.0)
    assert fresh.predict(1_000) == fresh.next_prompt(1_000) == 1_200


def test_one_report_settles_the_hidden_part_and_leaves_the_scale():
    once = Calibration(prior=1.2).observe(counted=1_000, reported=21_200)
    assert (once.scale, once.hidden) == (1.2, 20_000)
    assert once.predict(3_000) == once.next_prompt(3_000) == 23_600


@pytest.mark.parametrize("scale", [0.8, 1.0, 1.4, 2.1])
def test_the_scale_comes_from_growth_and_nears_the_truth(scale):
    few, many = (after(Calibration(prior=1.1), *straight(30_000, scale, calls)) for calls in (5, 60))
    assert abs(many.scale - scale) < abs(few.scale - scale) + 1e-9
    assert many.scale == pytest.approx(scale, rel=0.05)
    assert many.next_prompt(250_000) == pytest.approx(30_000 + scale * 250_000, rel=0.01)
    assert many.predict(250_000) == pytest.approx(30_000 + scale * 250_000, rel=0.02)


@pytest.mark.parametrize("reported", [0, -5, math.nan, math.inf, -math.inf], ids=str)
def test_a_report_that_is_no_positive_number_teaches_nothing(reported):
    known = after(Calibration(prior=1.1), *straight(20_000, 1.1, 5))
    assert known.observe(counted=30_000, reported=reported) == known


def test_a_shrunken_prompt_moves_the_anchor_and_not_the_scale():
    grown = after(Calibration(prior=1.0), *straight(20_000, 1.3, 20))
    rewritten = grown.observe(counted=5_000, reported=40_000)
    assert rewritten.scale == grown.scale
    assert rewritten.hidden == pytest.approx(40_000 - grown.scale * 5_000)
    assert rewritten.next_prompt(5_000) == 40_000


def test_what_the_client_dropped_without_our_seeing_it_is_a_shrunken_prompt_too():
    grown = after(Calibration(prior=1.0), *straight(20_000, 1.0, 20))
    dropped = grown.observe(counted=84_000, reported=60_000)
    assert dropped.scale == grown.scale
    assert dropped.predict(84_000) == 60_000


def test_one_injected_text_hardly_moves_the_scale():
    known = after(Calibration(prior=1.1), *straight(20_000, 1.1, 10))
    last_counted, last_reported = straight(20_000, 1.1, 10)[-1]
    surprised = known.observe(counted=last_counted + 500, reported=last_reported + 40_000)
    assert surprised.scale == pytest.approx(known.scale, rel=0.02)
    assert surprised.next_prompt(last_counted + 500) == last_reported + 40_000


def test_one_odd_report_hardly_moves_the_hidden_part():
    pairs = straight(20_000, 1.0, 9)
    odd = [(counted, reported + (3_000 if at == 4 else 0)) for at, (counted, reported) in enumerate(pairs)]
    assert after(Calibration(prior=1.0), *odd).hidden == pytest.approx(20_000, abs=400)


def test_a_restart_keeps_the_scale_and_forgets_the_rest():
    grown = after(Calibration(prior=1.0), *straight(20_000, 1.4, 20))
    assert (grown.restart().scale, grown.restart().recent) == (grown.scale, ())


def test_a_smaller_view_is_predicted_smaller_by_what_was_removed():
    grown = after(Calibration(prior=1.2), *straight(20_000, 1.2, 10))
    assert grown.next_prompt(40_000) - grown.next_prompt(10_000) == pytest.approx(1.2 * 30_000)


@pytest.mark.parametrize("prior", [math.nan, -3.0, 0.0, 99.0, math.inf], ids=str)
def test_a_senseless_prior_is_brought_within_bounds(prior):
    assert LOWEST_SCALE <= Calibration(prior=prior).scale <= HIGHEST_SCALE


counts = st.integers(0, 2_000_000)
reports = st.one_of(st.integers(-10, 3_000_000), st.floats())


@given(st.floats(0.5, 3.0), st.lists(st.tuples(counts, reports), max_size=30), counts)
def test_whatever_is_reported_predictions_stay_sane(prior, pairs, counted):
    learned = after(Calibration(prior=prior), *pairs)
    assert LOWEST_SCALE <= learned.scale <= HIGHEST_SCALE
    for predicted in (learned.predict(counted), learned.next_prompt(counted)):
        assert predicted >= math.floor(learned.scale * counted / 2)
    assert len(learned.recent) <= 10


@given(st.lists(st.tuples(counts, st.integers(1, 3_000_000)), min_size=1, max_size=20))
def test_the_same_view_again_is_predicted_as_it_was_reported(pairs):
    learned = after(Calibration(prior=1.0), *pairs)
    counted, reported = pairs[-1]
    assert learned.next_prompt(counted) == max(reported, round(learned.scale * counted / 2))
