"""A run over many sessions: the same to the byte however many work on it, and resumed where it was left."""

import msgspec
import pytest

from lowwater.errors import BadSetting, UnreadableFile
from lowwater.lab.replay.course_replay import SessionResult
from lowwater.lab.replay.report import ReportBuilder, report_json
from lowwater.lab.replay.run import LocalEngine, RunFolder, replay_recordings
from lowwater.lab.replay.script import ARMS, NEUTRAL
from lowwater.lab.replay.session import ReplayOptions, ReplayTask
from tests.lab.replay_recordings import recording

OPTIONS = ReplayOptions(
    policies=("rent-or-buy", "never", "claude-code", "optimum"), full=("rent-or-buy",), arms=ARMS
)
QUICK = ReplayOptions(policies=("never", "optimum"), full=(), arms=(NEUTRAL,))


def corpus(count: int = 4):
    return (recording(seed, turns=8 + 4 * seed) for seed in range(1, count + 1))


def as_bytes(results) -> bytes:
    """Return everything that is told of results, and every series of them."""
    gathering, every = ReportBuilder(), sorted(results, key=lambda each: each.place)
    for each in every:
        gathering.add(each)
    return msgspec.json.encode(report_json(gathering.report(OPTIONS.policies))) + msgspec.msgpack.encode(
        every
    )


def test_the_results_are_the_same_to_the_byte_with_any_number_of_workers():
    alone = as_bytes(replay_recordings(corpus(), OPTIONS, engine=LocalEngine(1)))
    assert as_bytes(replay_recordings(corpus(), OPTIONS, engine=LocalEngine(2))) == alone


def test_the_report_does_not_depend_on_the_order_of_the_results():
    results = list(replay_recordings(corpus(), QUICK, engine=LocalEngine(1)))
    reports = []
    for each in (results, results[::-1]):
        gathering = ReportBuilder()
        for result in each:
            gathering.add(result)
        reports.append(gathering.report(QUICK.policies))
    assert reports[0] == reports[1]
    assert reports[0].shown is not None
    assert reports[0].shown.outcomes[0].series is not None
    assert all(outcome.series is None for each in reports[0].sessions for outcome in each.outcomes)


def test_tasks_are_read_only_as_they_are_needed():
    taken = []

    def watched():
        for each in corpus(12):
            taken.append(each.id)
            yield each

    results = replay_recordings(watched(), QUICK, engine=LocalEngine(1))
    next(results)
    assert len(taken) == 1


class Counting:
    """An engine that counts what it is given."""

    def __init__(self) -> None:
        self.tasks: list[ReplayTask] = []

    def map(self, work, tasks, /):
        for task in tasks:
            self.tasks.append(task)
            yield work(task)


def test_a_run_is_resumed_where_it_was_left(tmp_path):
    first = Counting()
    interrupted = replay_recordings(corpus(), QUICK, engine=first, folder=RunFolder(tmp_path / "run"))
    done = [next(interrupted), next(interrupted)]
    second = Counting()
    results = list(replay_recordings(corpus(), QUICK, engine=second, folder=RunFolder(tmp_path / "run")))
    assert len(second.tasks) == 2
    assert {each.key for each in results} >= {each.key for each in done}
    assert as_bytes(results) == as_bytes(replay_recordings(corpus(), QUICK, engine=LocalEngine(1)))


def test_other_options_are_another_run_in_the_same_folder(tmp_path):
    folder = RunFolder(tmp_path)
    list(replay_recordings(corpus(2), QUICK, engine=LocalEngine(1), folder=folder))
    again = Counting()
    list(
        replay_recordings(
            corpus(2), msgspec.structs.replace(QUICK, model="deepseek"), engine=again, folder=folder
        )
    )
    assert len(again.tasks) == 2


def test_a_result_that_cannot_be_read_is_made_again(tmp_path):
    folder = RunFolder(tmp_path)
    list(replay_recordings(corpus(1), QUICK, engine=LocalEngine(1), folder=folder))
    next(tmp_path.glob("*.result")).write_bytes(b"cut short")
    again = Counting()
    assert len(list(replay_recordings(corpus(1), QUICK, engine=again, folder=folder))) == 1
    assert len(again.tasks) == 1


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UnreadableFile, match="no results can be kept"):
        RunFolder(tmp_path / "file" / "run")


def test_no_workers_are_refused():
    with pytest.raises(BadSetting, match="at least one"):
        LocalEngine(0)


def test_the_key_of_a_task_does_not_depend_on_who_looked_at_its_messages():
    fresh, seen = recording(1, turns=3), recording(1, turns=3)
    hash(seen.messages[0].message)
    assert ReplayTask(recording=fresh, options=QUICK).key == ReplayTask(recording=seen, options=QUICK).key
    assert ReplayTask(recording=fresh, options=QUICK).key != ReplayTask(recording=fresh, options=OPTIONS).key


def test_a_skipped_session_is_told_and_counts_nowhere():
    gathering = ReportBuilder()
    gathering.add(SessionResult(id="x", agent="a", path="p", skipped="no times"))
    said = report_json(gathering.report(QUICK.policies))
    assert said["policies"] == {}
    assert said["sessions"][0]["skipped"] == "no times"
