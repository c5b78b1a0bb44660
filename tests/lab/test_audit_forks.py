"""Codex forks repeat the calls of the session they come from: each is billed once, and the report says how many were not."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lowwater.cli.app import app
from lowwater.lab.audit.files import audit_files
from lowwater.lab.audit.report import AuditReport, report_line, report_of
from tests.lab.audited_recordings import utc_day
from tests.logs.codex_lines import call, count, line, output, said

Fields = dict[str, Any]
PARENT, FORK, OTHER = (f"019d7d0{n}-46c9-7f73-affe-4e6ca9852d5{n}" for n in (8, 9, "a"))
TRANSCRIPTS = Path(__file__).parents[3] / "shared" / "transcripts" / "codex"


def began(id: str) -> datetime:
    """Return when a session or turn with this id began."""
    return datetime.fromtimestamp(int(id[:8] + id[9:13], 16) / 1_000, tz=UTC)


def turn(id: str) -> list[Fields]:
    context = {"model": "gpt-5.5", "turn_id": id}
    return [line("event_msg", {"type": "task_started", "turn_id": id}), line("turn_context", context)]


def work(turn_id: str, calls: range) -> list[Fields]:
    """Return a turn of calls, each with a prompt of its own size and the total so far."""
    lines = [*turn(turn_id), said("user", f"Go on with {turn_id[:8]}.")]
    for number in calls:
        total = (10_000 * number, 0, 100 * number)
        lines += [call(f"call_{turn_id[7]}_{number}"), output(f"call_{turn_id[7]}_{number}")]
        lines.append(count((10_000, 0, 100), total))
    return lines


def written(file: Path, lines: list[Fields], at: datetime) -> Path:
    """Write lines down with the time of the file, as a fork does with what it copies."""
    stamped = (each | {"timestamp": at.isoformat().replace("+00:00", "Z")} for each in lines)
    file.write_text("".join(json.dumps(each) + "\n" for each in stamped))
    return file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a parent of six calls and two forks, after four of its calls and after all, with two and one of their own."""
    early, late = work(PARENT, range(1, 5)), work("019d7d08-9000-7000-8000-000000000001", range(5, 7))
    parent = [line("session_meta", {"id": PARENT})]
    written(tmp_path / "1-parent.jsonl", [*parent, *early, *late], began(PARENT))
    for name, id, copied, own in ((2, FORK, early, range(5, 7)), (3, OTHER, [*early, *late], range(7, 8))):
        meta = line("session_meta", {"id": id, "forked_from_id": PARENT})
        own_turn = id[:-1] + "f"
        lines = [meta, *parent, *copied, *work(own_turn, own)]
        written(tmp_path / f"{name}-fork.jsonl", lines, began(id))
    return tmp_path


def audited(*paths: Path) -> AuditReport:
    return report_of(list(audit_files(paths, day_of=utc_day)))


def calls_of(report: AuditReport) -> dict[str, int]:
    return {session.id: report_line(session).figures.calls for session in report.sessions}


def test_each_call_is_billed_once_and_with_the_session_that_made_it(folder):
    report = audited(folder)
    assert calls_of(report) == {PARENT: 6, FORK: 2, OTHER: 1}
    assert report.total.figures.calls == 9
    assert report.copied == 10


def test_the_order_of_the_files_makes_no_difference(folder):
    (folder / "1-parent.jsonl").rename(folder / "9-parent.jsonl")
    assert calls_of(audited(folder)) == {PARENT: 6, FORK: 2, OTHER: 1}


def test_without_the_parents_file_its_calls_are_told_once_under_its_name(folder):
    (folder / "1-parent.jsonl").unlink()
    report = audited(folder)
    assert calls_of(report) == {PARENT: 6, FORK: 2, OTHER: 1}
    assert {session.id: session.relation for session in report.sessions} == {
        PARENT: "repeated",
        FORK: "fork",
        OTHER: "fork",
    }


def test_the_report_says_how_many_calls_were_left_out(folder):
    run = CliRunner(env={"COLUMNS": "120", "NO_COLOR": "1"}).invoke
    page = run(app, ["audit", "--no-cache", str(folder)])
    assert "10 calls that forks and resumed sessions repeat are counted once." in page.output
    told = json.loads(run(app, ["audit", "--no-cache", "--json", str(folder)]).stdout)
    assert told["copied_calls"] == 10


@pytest.mark.skipif(not TRANSCRIPTS.is_dir(), reason="no recorded sessions on this machine")
def test_a_recorded_fork_costs_what_it_did_itself():
    report = audited(TRANSCRIPTS / "git-sync-019d7e2f.jsonl")
    cost = {session.id[:8]: (report_line(session).figures.cost or 0) / 1e9 for session in report.sessions}
    assert cost["019d7e2f"] == pytest.approx(0.40, abs=0.005)
    assert cost["019d7d08"] == pytest.approx(3.28, abs=0.005)
