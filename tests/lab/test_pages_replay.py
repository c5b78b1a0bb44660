"""The replay's page has the report's numbers, and timelines that say what they leave out."""

import msgspec
import pytest

from lowwater.lab.pages.replay import (
    MOST_NUMBERS,
    MOST_POINTS,
    ReplayData,
    Timelines,
    replay_page,
    replay_page_data,
    thinned,
    timeline_of,
)
from tests.lab.report_samples import DOLLAR, HOSTILE, MADE, PageReader, replay_of, session_result


def test_the_data_in_the_page_are_the_reports() -> None:
    report, timelines = replay_of(session_result(1, name=HOSTILE), session_result(2))
    page = replay_page(report, timelines=timelines, made_at=MADE)
    inside = msgspec.json.decode(PageReader(page).data, type=ReplayData)
    assert inside == replay_page_data(report, timelines)
    assert {row.name for row in inside.sessions} == {HOSTILE, "session-0002"}


def test_every_policy_has_its_figures_in_every_arm_that_it_was_played_in() -> None:
    report, _ = replay_of(session_result(1), session_result(2))
    neutral, unkind = replay_page_data(report, ()).arms
    rows = {row.name: row for row in neutral.policies}
    assert set(rows) == {
        "rent-or-buy",
        "rent-or-buy, real engine",
        "never",
        "threshold-50",
        "claude-code",
        "optimum",
    }
    assert "rent-or-buy, real engine" not in {row.name for row in unkind.policies}
    ours = rows["rent-or-buy"]
    assert ours.with_rework == round(2 * 1.2 * 1.05 * DOLLAR)
    assert ours.mean == pytest.approx(1.05)
    assert rows["rent-or-buy, real engine"].reach == pytest.approx(0.95)
    assert ours.reach is None
    assert rows["claude-code"].is_bounded is False


def test_dollars_add_up_over_the_sessions_from_the_shortest_to_the_longest() -> None:
    report, _ = replay_of(session_result(1, calls=300), session_result(2, calls=100))
    arm = replay_page_data(report, ()).arms[0]
    assert arm.steps == [1, 2]
    sums = {each.name: each.cost for each in arm.cumulated}
    assert sums["optimum"] == [1 * DOLLAR, 4 * DOLLAR]
    assert sums["threshold-50"] == [round(1.3 * DOLLAR), round(5.2 * DOLLAR)]


def test_a_session_that_does_not_fit_under_some_policy_is_in_no_sum_and_said_to_be_left_out() -> None:
    report, timelines = replay_of(session_result(1), session_result(2, fits=False))
    assert replay_page_data(report, ()).arms[0].compared == 1
    assert "Left out: 1 session that does not fit under every policy." in replay_page(
        report, timelines=timelines
    )


def test_the_optimum_is_shown_though_nobody_asked_for_it() -> None:
    report, _ = replay_of(session_result(1))
    without = msgspec.structs.replace(
        report, policies=tuple(each for each in report.policies if each.policy != "optimum")
    )
    rows = {row.name: row for row in replay_page_data(without, ()).arms[0].policies}
    assert rows["optimum"].is_optimum
    assert rows["optimum"].with_rework == round(1.2 * DOLLAR)


def test_a_short_session_is_drawn_whole() -> None:
    timeline = timeline_of(session_result(1, calls=120))
    assert timeline.at == list(range(1, 121))
    line = timeline.lines[0]
    assert [mark.index for mark in line.marks] == [50, 100]
    assert line.cost[-1] == round(1.05 * 1.2 * DOLLAR)


def test_a_long_session_is_thinned_and_keeps_its_events_and_its_sum() -> None:
    timeline = timeline_of(session_result(1, calls=1_000))
    assert MOST_POINTS <= len(timeline.at) < 2 * MOST_POINTS
    line = timeline.lines[0]
    assert [timeline.at[mark.index] for mark in line.marks] == [turn + 1 for turn in range(50, 1_000, 50)]
    assert line.cost[-1] == round(1.05 * 10 * DOLLAR)
    report, _ = replay_of(session_result(1, calls=1_000))
    assert "thinned to about 160 calls" in replay_page(report)


def test_events_between_two_points_are_drawn_as_one_at_the_later() -> None:
    result = session_result(1, calls=1_000)
    every = tuple(
        msgspec.structs.replace(result.outcomes[0].events[0], turn=turn, before=turn) for turn in range(1_000)
    )
    changed = msgspec.structs.replace(result.outcomes[0], events=every)
    timeline = timeline_of(msgspec.structs.replace(result, outcomes=(changed,)))
    marks = timeline.lines[0].marks
    assert len(timeline.at) == MOST_POINTS
    assert sum(mark.count for mark in marks) == 1_000
    assert all(mark.before <= timeline.at[mark.index] for mark in marks)


@pytest.mark.parametrize("count", [0, 1, 160, 161, 5_000])
def test_thinning_keeps_both_ends_and_the_order(count: int) -> None:
    found = thinned(count, 160)
    assert found == sorted(set(found))
    assert len(found) == min(count, 160)
    assert found[:1] == ([0] if count else [])
    assert found[-1:] == ([count - 1] if count else [])


def test_timelines_are_of_the_sessions_where_compaction_saves_most_whatever_the_order() -> None:
    results = [session_result(number) for number in range(30)]
    forwards, backwards = Timelines(most=5), Timelines(most=5)
    for result in results:
        forwards.add(result)
    for result in reversed(results):
        backwards.add(result)
    assert [each.name for each in forwards.chosen()] == [
        f"session-{number:04}" for number in range(29, 24, -1)
    ]
    assert forwards.chosen() == backwards.chosen()


def test_timelines_do_not_outgrow_a_page() -> None:
    timelines = Timelines(most=1_000)
    for number in range(140):
        timelines.add(session_result(number, calls=400))
    found = timelines.chosen()
    assert len(found) < 140
    assert MOST_NUMBERS * 0.9 < sum(each.numbers for each in found) <= MOST_NUMBERS


def test_what_was_skipped_is_told_with_its_reason() -> None:
    skipped = msgspec.structs.replace(
        session_result(3), skipped="no model is recorded", bounds=(), outcomes=()
    )
    report, timelines = replay_of(session_result(1), skipped)
    page = replay_page(report, timelines=timelines, made_at=MADE)
    assert "1 session could not be replayed: no model is recorded." in page


def test_calls_beyond_the_limit_are_said_to_be_left_out() -> None:
    report, timelines = replay_of(session_result(1), msgspec.structs.replace(session_result(2), beyond=7))
    assert "1 session with very many calls, played up to a limit: 7 calls beyond it" in replay_page(
        report, timelines=timelines
    )


def test_a_replay_of_nothing_has_a_page() -> None:
    report, timelines = replay_of()
    page = replay_page(report, timelines=timelines, made_at=MADE)
    assert "No session could be replayed" in page
    assert PageReader(page).data


def test_the_headline_compares_ours_with_the_optimum_and_with_the_others() -> None:
    report, timelines = replay_of(session_result(1), session_result(2))
    page = replay_page(report, timelines=timelines, made_at=MADE)
    assert (
        "<h1>Rent-or-buy comes within 5.0 % of the cheapest schedule possible; the others cost 16 % to 33 % more</h1>"
        in page
    )
