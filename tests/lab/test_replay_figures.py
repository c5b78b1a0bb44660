"""Figures over sessions: ratios only where compaction matters, sums over all, nothing of what does not fit."""

import pytest
from msgspec.structs import replace

from lowwater.lab.replay.course_replay import Bounds, CadenceSums, PolicyOutcome, UsesFound
from lowwater.lab.replay.report import Pair, figures_of


def pair(cost: int, *, least: int | None = 100, never: int | None = 200, **more) -> Pair:
    fields = {"policy": "p", "kind": "course", "arm": "neutral", "is_bounded": True, **more}
    return Pair(
        outcome=PolicyOutcome(cost=cost, **fields),
        bounds=Bounds(arm="neutral", optimum=least, relaxed=50, never=never),
    )


def test_ratios_are_over_the_sessions_where_compaction_matters_and_sums_over_all():
    found = figures_of([pair(120), pair(140), pair(105, never=110), pair(300, never=None)])
    assert found.matters == 3
    assert found.cost_over_optimum.mean == pytest.approx((1.2 + 1.4 + 3.0) / 3)
    assert found.cost_over_optimum.max == 3.0
    assert found.sum_over_optimum == pytest.approx(665 / 400)
    assert found.sum_over_relaxed == pytest.approx(665 / 200)


def test_rework_counts_in_ratios_and_is_told_apart_in_dollars():
    found = figures_of([pair(10**9, least=10**9, never=10**10, rework=10**9)])
    assert found.cost_over_optimum.mean == 2.0
    assert (found.cost_usd, found.rework_usd, found.cost_with_rework_usd) == (1.0, 1.0, 2.0)


def test_a_session_that_does_not_fit_counts_nowhere():
    found = figures_of([pair(120), pair(0, fits=False)])
    assert (found.sessions, found.unfit, found.matters) == (1, 1, 1)
    assert found.cost_over_optimum.mean == 1.2


def test_without_a_session_that_matters_there_are_no_ratios():
    found = figures_of([pair(105, never=105), pair(9, least=None)])
    assert found.cost_over_optimum.mean is None
    assert found.sessions == 2


def test_only_policies_with_declared_actions_are_bounded_by_the_optimum():
    assert figures_of([pair(120)]).bound == "optimum"
    assert figures_of([pair(120, is_bounded=False)]).bound == "relaxed"


def test_recall_is_a_share_of_all_uses_and_of_those_that_left():
    measured = [
        pair(1, recall=UsesFound(uses=10, in_view=6, one_recall=3, causes={"not found": 1})),
        pair(1, recall=UsesFound(uses=10, in_view=10, one_recall=0)),
    ]
    recall = figures_of(measured).recall
    assert (recall.in_view, recall.one_recall, recall.gone, recall.reached) == (0.8, 0.15, 0.05, 0.75)
    assert recall.causes == {"not found": 1}
    unmeasured = figures_of([pair(1, recall=UsesFound(uses=4, in_view=3))]).recall
    assert (unmeasured.in_view, unmeasured.one_recall, unmeasured.reached) == (0.75, None, None)


def test_what_replaced_lost_results_is_a_share_of_the_uses_of_their_age():
    found = UsesFound(uses=10, in_view=6, one_recall=3, late=8, late_in_view=5)
    some = replace(found, lost_recent={"elided": 1}, lost_late={"summary": 3})
    whole = figures_of([pair(1, recall=some), pair(1, recall=UsesFound(uses=4, in_view=4, one_recall=0))])
    recent, late = whole.recall.recent, whole.recall.late
    assert recent is not None
    assert late is not None
    assert (recent.uses, recent.lost) == (6, {"elided": 1 / 6})
    assert (late.uses, late.lost) == (8, {"summary": 3 / 8})


def test_the_metrics_are_means_over_all_events_and_turns():
    some = CadenceSums(
        turns=50,
        events=3,
        intervals=20,
        summary_calls=2,
        reclaimed=900,
        rewritten=700,
        earliest_changed=4,
        prunes=1,
        summaries=2,
    )
    none = CadenceSums(turns=150, prompt_and_summary_tokens=7)
    metrics = figures_of([pair(1, cadence=some), pair(1, cadence=none)]).metrics
    assert metrics.events_per_100_turns == 1.5
    assert metrics.turns_between_events == 10
    assert (metrics.reclaimed_per_event, metrics.rewritten) == (300, 700)
    assert (metrics.summary_calls, metrics.prompt_and_summary_tokens, metrics.earliest_changed) == (2, 7, 4)
    assert metrics.prunes_per_summary == 0.5


def test_the_mean_view_is_over_calls_and_the_peak_over_sessions():
    found = figures_of(
        [
            pair(1, mean_view=100.0, peak_view=300, cadence=CadenceSums(turns=1)),
            pair(1, mean_view=200.0, peak_view=250, cadence=CadenceSums(turns=3)),
        ]
    )
    assert (found.mean_view, found.peak_view) == (175.0, 300)
