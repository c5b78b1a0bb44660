"""The table of configurations, on a generated recording."""

from bench.configurations import ROWS, Job, Sums, play, table
from lowwater.lab.replay.as_recorded import AS_RECORDED
from tests.lab.replay_recordings import recording


def test_each_row_is_played_and_divided_by_never_and_by_the_recorded_session():
    found = play(Job(recording=recording(turns=30), sheet="deepseek", rows=ROWS))
    sums = {row: Sums() for row in ROWS}
    for row, outcome in found.items():
        sums[row].add(outcome)
    head, _, *lines = table(sums)
    assert head.startswith("| | cost | ÷ never | ÷ as recorded |")
    assert [line.split(" | ")[0] for line in lines] == [f"| {row}" for row in ROWS]
    by_row = dict(zip(ROWS, lines, strict=True))
    for row in (AS_RECORDED, "never"):
        assert " | 1.00 | 1.00 | " in by_row[row], "a session without compactions of its client's"
    assert {each.calls for each in sums.values()} == {sums["never"].calls}
    assert sums["keyless"].summaries == sums["never"].summaries == 0
