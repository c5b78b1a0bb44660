"""Auditing files one after the other: what is kept, what is read again, what is counted once."""

import os
import shutil
from pathlib import Path

import pytest

import lowwater
from lowwater.lab.audit import files as kept
from lowwater.lab.audit.files import AuditCache, AuditedFile, audit_files
from lowwater.lab.audit.report import by_day, by_model, dearest, report_line, report_of
from lowwater.logs.importers import Progress, Skipped
from lowwater.logs.recording import BrokenLine
from tests.lab.audited_recordings import NOON, Talk, growing, utc_day


class Shelf:
    """Files whose contents are told by name; reading them is noted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.read: list[str] = []
        self.interrupts_at = ""
        self._talks: dict[str, Talk] = {}

    def put(self, name: str, talk: Talk | None = None) -> None:
        (self.folder / name).write_text(name)
        if talk is not None:
            self._talks[name] = talk

    def __call__(self, paths, *, on_progress=None, on_skipped=None):
        for path in paths:
            self.read.append(path.name)
            if path.name == self.interrupts_at:
                raise KeyboardInterrupt
            if path.name in self._talks:
                yield self._talks[path.name].recording(id=path.name, path=str(path))
            elif on_skipped:
                broken = (BrokenLine(place=f"{path.name}:1", why="cut off"),)
                on_skipped(Skipped(path=str(path), why="no recording", broken=broken))

    def audit(self, kept: AuditCache | None = None) -> list[AuditedFile]:
        return list(audit_files([self.folder], day_of=utc_day, kept=kept, read=self))


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    folder = tmp_path / "logs"
    folder.mkdir()
    found = Shelf(folder)
    found.put("a", growing(Talk(), 3))
    found.put("b", growing(Talk(at=NOON + 86_400), 5))
    return found


def test_files_that_did_not_change_are_not_read_again(shelf, tmp_path):
    first = shelf.audit(AuditCache(tmp_path / "kept"))
    second = shelf.audit(AuditCache(tmp_path / "kept"))
    assert shelf.read == ["a", "b"]
    assert [file.sessions for file in second] == [file.sessions for file in first]
    assert all(file.from_cache for file in second)


def test_a_file_that_changed_is_read_again(shelf, tmp_path):
    shelf.audit(AuditCache(tmp_path / "kept"))
    shelf.put("b", growing(Talk(), 6))
    (shelf.folder / "b").write_text("longer than before")
    shelf.audit(AuditCache(tmp_path / "kept"))
    assert shelf.read == ["a", "b", "b"]


def test_a_database_that_is_being_written_is_read_again(shelf, tmp_path):
    shelf.audit(AuditCache(tmp_path / "kept"))
    log = shelf.folder / "b-wal"
    log.write_text("what is not in the database yet")
    shelf.audit(AuditCache(tmp_path / "kept"))
    assert [name for name in shelf.read if name != "b-wal"] == ["a", "b", "b"]


def test_what_is_read_with_files_beside_it_is_not_kept(shelf, tmp_path):
    (shelf.folder / "b").write_text('{"custom_id": "1", "response": {}}')
    (shelf.folder / "message" / "a").mkdir(parents=True)
    for _ in range(2):
        shelf.audit(AuditCache(tmp_path / "kept"))
    assert shelf.read == ["a", "b", "a", "b"]


@pytest.mark.parametrize(
    "part",
    [
        "core/mechanisms/reuse.py",
        "adapters/models.py",
        "lab/schedules.py",
        "data/models.json",
        "core/tools.py",
    ],
)
def test_what_is_kept_holds_for_this_code_only(tmp_path, monkeypatch, part):
    copy = tmp_path / "lowwater"
    shutil.copytree(Path(lowwater.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(lowwater, "__file__", str(copy / "__init__.py"))
    before = kept.reader_version.__wrapped__()
    with (copy / part).open("a") as file:
        file.write("\n")
    assert kept.reader_version.__wrapped__() != before


def test_code_that_cannot_be_found_keeps_nothing_rather_than_anything(tmp_path, monkeypatch):
    monkeypatch.setattr(lowwater, "__file__", str(tmp_path / "away" / "__init__.py"))
    with pytest.raises(RuntimeError, match="no source of lowwater"):
        kept.reader_version.__wrapped__()


def test_without_a_place_to_keep_everything_is_read(shelf):
    shelf.audit()
    shelf.audit()
    assert shelf.read == ["a", "b", "a", "b"]


def test_what_is_kept_and_cannot_be_read_is_made_again(shelf, tmp_path):
    shelf.audit(AuditCache(tmp_path / "kept"))
    for path in (tmp_path / "kept").rglob("*"):
        if path.is_file():
            path.write_bytes(b"\x93")
    assert len(shelf.audit(AuditCache(tmp_path / "kept"))[0].sessions) == 1
    assert shelf.read == ["a", "b", "a", "b"]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_place_that_cannot_be_written_keeps_nothing(shelf, tmp_path):
    (tmp_path / "kept").mkdir(mode=0o500)
    assert len(shelf.audit(AuditCache(tmp_path / "kept"))) == 2


def test_a_place_that_is_a_file_keeps_nothing(shelf, tmp_path):
    (tmp_path / "kept").write_text("")
    assert len(shelf.audit(AuditCache(tmp_path / "kept"))) == 2


def test_an_interrupted_run_goes_on_where_it_stopped(shelf, tmp_path):
    shelf.interrupts_at = "b"
    files = audit_files([shelf.folder], day_of=utc_day, kept=AuditCache(tmp_path / "kept"), read=shelf)
    assert next(files).path.endswith("a")
    with pytest.raises(KeyboardInterrupt):
        next(files)
    shelf.interrupts_at = ""
    assert [len(file.sessions) for file in shelf.audit(AuditCache(tmp_path / "kept"))] == [1, 1]
    assert shelf.read == ["a", "b", "b"]


def test_a_call_that_two_files_hold_is_counted_with_the_first(shelf, tmp_path):
    shelf.put("c", growing(Talk(), 7))
    for _ in range(2):
        report = report_of(shelf.audit(AuditCache(tmp_path / "kept")))
        assert report.copied == 3
        assert report.total.figures.calls == 3 + 5 + 4
    assert shelf.read == ["a", "b", "c"]


def test_a_file_that_holds_nothing_new_gives_no_session(shelf):
    shelf.put("c", growing(Talk(), 3))
    report = report_of(shelf.audit())
    assert [session.id for session in report.sessions] == ["a", "b"]
    assert report.copied == 3


def test_copies_count_once_the_file_that_told_them_is_gone(shelf, tmp_path):
    shelf.put("c", growing(Talk(), 7))
    shelf.audit(AuditCache(tmp_path / "kept"))
    (shelf.folder / "a").unlink()
    report = report_of(shelf.audit(AuditCache(tmp_path / "kept")))
    assert report.copied == 0
    assert report.total.figures.calls == 5 + 7


def test_files_without_a_session_and_broken_lines_are_told(shelf):
    shelf.put("notes.txt")
    report = report_of(shelf.audit())
    assert [one.why for one in report.unread] == ["no recording"]
    assert report.broken == 1
    assert report.files == 3


def test_progress_is_told_in_bytes_up_to_the_end(shelf):
    told: list[Progress] = []
    list(audit_files([shelf.folder], day_of=utc_day, on_progress=told.append, read=shelf))
    assert [progress.read for progress in told] == [0, 1, 2]
    assert {progress.of for progress in told} == {2}


def test_sums_by_session_model_and_day_are_the_same(shelf):
    report = report_of(shelf.audit())
    cost = report.total.figures.cost
    assert cost == sum(report_line(session).figures.cost or 0 for session in report.sessions)
    assert cost == sum(line.figures.cost or 0 for line in by_model(report.sessions))
    assert cost == sum(line.figures.cost or 0 for line in by_day(report.sessions))
    assert [line.name for line in by_day(report.sessions)] == ["2026-02-09", "2026-02-10"]
    assert [session.id for session in dearest(report.sessions)] == ["b", "a"]
    assert by_model(report.sessions)[0].sessions == 2


def test_since_leaves_days_and_sessions_out(shelf):
    files = shelf.audit()
    assert [session.id for session in report_of(files, since="2026-02-10").sessions] == ["b"]
    assert report_of(files, since="2027-01-01").sessions == ()
    shelf.put("long", growing(Talk(at=NOON + 86_400 - 12 * 3_600 - 25), 4))
    report = report_of(shelf.audit(), since="2026-02-10")
    over_midnight = next(session for session in report.sessions if session.id == "long")
    assert {row.day for row in over_midnight.rows} == {"2026-02-10"}
    assert over_midnight.saving is None, "an estimate is of a whole session"


def test_what_misses_cost_leaves_first_calls_out(shelf):
    total = report_of(shelf.audit()).total
    assert total.missed["first"].misses == 2
    assert total.lost is None or total.lost < (total.missed["first"].cost or 0)
