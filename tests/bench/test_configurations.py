"""The table of configurations, on a generated recording."""

from collections.abc import Sequence

import msgspec
import pytest
from msgspec.structs import replace

from bench.configurations import (
    APART,
    RARER,
    ROWS,
    Job,
    Played,
    PlayedBy,
    Sums,
    apart,
    beside,
    intervals,
    is_near_full,
    losses,
    play,
    rarer,
    rarer_for_a_percent,
    read_results,
    summed,
    table,
    tables,
    this_code,
)
from lowwater.errors import BadInput
from lowwater.lab.replay.as_recorded import AS_RECORDED
from lowwater.lab.replay.course_replay import PolicyOutcome
from lowwater.lab.replay.live import NEVER
from tests.lab.replay_recordings import recording

SHEET = "deepseek"
CODE = PlayedBy(code="0", commit="abc1234", day="2026-11-19")


@pytest.fixture(scope="module")
def played() -> Sequence[Played]:
    return play(Job(recording=recording(turns=90), sheet=SHEET, rows=(*ROWS, *APART[1::2], *RARER)))


def cells(lines: Sequence[str]) -> dict[str, list[str]]:
    """Return the cells of a table by the name of their row."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    return {row[0]: row[1:] for row in rows}


def test_the_cost_of_the_shipped_configuration_has_an_interval_over_the_sessions(played):
    rows = [each for each in played if each.row in ROWS]
    total = {each.row: each.outcome.cost + each.outcome.rework for each in rows}
    of_one = intervals(rows, SHEET)
    assert of_one[NEVER].low == of_one[NEVER].high == total["shipped"] / total[NEVER]
    dearer = [
        replace(each, session="dearer", outcome=replace(each.outcome, cost=2 * each.outcome.cost))
        if each.row == "shipped"
        else replace(each, session="dearer")
        for each in rows
    ]
    of_two = intervals([*rows, *dearer], SHEET)
    assert of_one[NEVER].low == of_two[NEVER].low < of_two[NEVER].high


def test_each_row_is_played_and_divided_by_never_and_by_the_recorded_session(played):
    sums = summed(played, (SHEET,), ROWS)[SHEET]
    found = cells(list(table(sums)))
    assert tuple(found) == ROWS
    for row in (AS_RECORDED, NEVER):
        assert found[row][1:3] == ["1.00", "1.00"], "a session without compactions of its client's"
        assert found[row][-2:] == ["0.0", "0"]
    assert {each.calls for each in sums.values()} == {sums[NEVER].calls}
    assert sums["keyless"].summaries == sums[NEVER].summaries == 0


def test_every_use_that_is_not_in_view_has_a_cause_and_an_age(played):
    for each in summed(played, (SHEET,), ROWS)[SHEET].values():
        assert each.lost_late.total() == each.late - each.late_in_view
        assert each.lost_recent.total() + each.lost_late.total() == each.uses - each.in_view
    assert len(list(losses(summed(played, (SHEET,), ROWS)))) == 2 + 2 * len(ROWS)


def test_a_dearer_disturbance_compacts_more_rarely_and_rewrites_less(played):
    sums = summed(played, (SHEET,), ("shipped", *RARER))
    often, seldom = sums[SHEET]["shipped x0"], sums[SHEET]["shipped x8"]
    assert often.compactions > seldom.compactions
    assert often.rewritten > seldom.rewritten
    assert [line.split("|")[2].strip() for line in list(rarer(sums))[2:-1]] == ["0", "1", "2", "4", "8"]


def test_how_much_rarer_for_a_percent_is_read_between_two_values():
    sums = {
        row: Sums(sessions=1, calls=100, cost=cost, compactions=number)
        for row, cost, number in (("shipped", 1_000, 10), ("shipped x2", 1_005, 9), ("shipped x4", 1_015, 5))
    }
    sums["shipped x8"] = Sums(sessions=1, calls=100, cost=1_100, compactions=1)
    assert rarer_for_a_percent(sums) == pytest.approx(0.3)


def test_summaries_and_recall_are_played_together_and_apart(played):
    sums = summed(played, (SHEET,), APART)[SHEET]
    assert [sums[row].summary_calls > 0 for row in APART] == [True, True, False, False]
    assert [sums[row].one_recall for row in APART[1::2]] == [0, 0]
    assert [line.split("|")[2].strip() for line in list(apart({SHEET: sums}))[2:]] == list(APART)


def test_only_sessions_that_every_row_has_are_counted(played):
    partly = [replace(each, session="two", source="other") for each in played if each.row != "full"]
    assert list(tables(partly, 1, CODE)) == ["no session has been played in every row yet"]
    first = next(iter(tables([*played, *partly], 5, CODE)))
    assert first.startswith("1 of 5 sessions, 90 calls")
    assert "commit abc1234 (" in first
    assert first.endswith(f"({played[0].source} 1); drawn at random, by the same seed every time.")


@pytest.mark.parametrize(("shipped", "near"), [(1_029, True), (1_031, False)])
def test_shipped_may_cost_three_per_cent_more_than_full(shipped, near):
    assert is_near_full([costing("shipped", shipped), costing("full", 1_000)]) == near


def test_results_of_other_code_are_shown_and_not_added_to(tmp_path, played):
    results = tmp_path / "played.jsonl"
    by, found = read_results(results, adds=True)
    assert (by.code, found) == (this_code().code, [])
    with results.open("ab") as file:
        file.write(msgspec.json.encode(played[0]) + b"\n")
    assert read_results(results, adds=True) == (by, [played[0]])
    results.write_bytes(msgspec.json.encode(CODE) + b"\n" + msgspec.json.encode(played[0]) + b"\n")
    assert read_results(results, adds=False) == (CODE, [played[0]])
    with pytest.raises(BadInput, match="other code \\(commit abc1234\\)"):
        read_results(results, adds=True)
    results.write_bytes(msgspec.json.encode(played[0]) + b"\n")
    with pytest.raises(BadInput, match="does not say which code"):
        read_results(results, adds=False)


def test_the_same_sessions_are_compared_with_those_that_other_code_played(played):
    half = [replace(each, outcome=replace(each.outcome, cost=each.outcome.cost // 2)) for each in played]
    lines = list(beside(half, [*played, replace(played[0], session="elsewhere")], CODE))
    assert [line.split("|")[2].strip() for line in lines[2:]] == list(ROWS)
    assert {line.split("|")[3].strip() for line in lines[2:]} == {"1"}
    assert lines[2].split("|")[4].strip() == "0.500"


def costing(row: str, cost: int) -> Played:
    outcome = PolicyOutcome(policy="rent-or-buy", kind="full", arm="", is_bounded=False, cost=cost)
    return Played(session="one", source="", sheet=SHEET, row=row, outcome=outcome)
