"""What a client's own compactions made the agent read or do again, from logs as Claude Code and Codex write them."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from lowwater.lab.audit.calls import ModelPrices, audited_calls
from lowwater.lab.audit.damage import FEWEST, Interval, damage_by_client, damage_says, interval_of
from lowwater.lab.audit.findings import AuditedSession, Stretch
from lowwater.lab.audit.repeats import actions_of
from lowwater.lab.audit.session import audit_session
from lowwater.lab.pages.audit import audit_page, audit_page_data
from lowwater.logs.importers import recordings
from tests.lab.audited_recordings import utc_day
from tests.lab.compacted_logs import (
    CHANGED,
    COMPACT,
    EDIT,
    ELSEWHERE,
    FILE,
    OTHER,
    READ,
    SEARCH,
    TESTS,
    USER,
    claude_log,
    codex_log,
)
from tests.lab.report_samples import audit_of
from tests.logs.claude_lines import ClaudeLines

WRITERS = pytest.mark.parametrize("write", [claude_log, codex_log], ids=["claude-code", "codex"])


def audited(path: Path, *, with_contents: bool = False) -> AuditedSession:
    (recording,) = recordings([path])
    calls = audited_calls(recording, ModelPrices())
    return audit_session(recording, calls, day_of=utc_day, with_contents=with_contents)


def after_compaction(session: AuditedSession) -> list[Stretch]:
    return [stretch for stretch in session.stretches if stretch.is_compaction]


@WRITERS
@pytest.mark.parametrize(
    ("steps", "repeating"),
    [
        ([READ, TESTS, COMPACT, READ], (0,)),
        ([READ, COMPACT, OTHER, READ], (1,)),
        ([READ, COMPACT, READ, READ], (0,)),
        ([READ, ELSEWHERE, COMPACT, READ], (0,)),
        ([TESTS, COMPACT, TESTS], (0,)),
        ([SEARCH, ("run", "git commit -m x", "done"), COMPACT, SEARCH], (0,)),
        ([ELSEWHERE, COMPACT, ELSEWHERE], (0,)),
        ([READ, COMPACT, OTHER, TESTS], ()),
        ([READ, EDIT, COMPACT, ("read", "src/a.py", CHANGED)], ()),
        ([READ, COMPACT, ("read", "src/a.py", CHANGED)], ()),
        ([READ, EDIT, ("run", "git checkout src/a.py", ""), COMPACT, READ], ()),
        ([READ, COMPACT, ("read", "src/a.py", "a new first line\n" + FILE)], ()),
        ([READ, COMPACT, ("read", "src/b.py", FILE)], ()),
        ([TESTS, EDIT, COMPACT, TESTS], ()),
        ([TESTS, COMPACT, ("run", "pytest -q tests", "2 passed, 1 failed in 0.21s")], ()),
        ([SEARCH, EDIT, COMPACT, SEARCH], ()),
        ([("run", "sleep 5; gh run list", "all three\nchecks are\nstill pending"), COMPACT] * 2, ()),
    ],
    ids=[
        "read again",
        "read again later",
        "the third time is not for the compaction",
        "another file was edited",
        "tests run again",
        "search with the same answer",
        "edit made again",
        "nothing repeated",
        "file edited in between",
        "file changed by others",
        "file restored in between",
        "a line more",
        "another file with the same lines",
        "tests after an edit",
        "tests with another answer",
        "search after an edit",
        "what changes by itself",
    ],
)
def test_only_what_is_the_same_as_before_is_a_repeat(write, steps, repeating, tmp_path):
    stretch = after_compaction(audited(write(steps, tmp_path / "log.jsonl")))[0]
    assert stretch.repeating == repeating
    assert stretch.only_repeating == repeating


@WRITERS
def test_without_a_compaction_there_is_no_damage(write, tmp_path):
    session = audited(write([READ, TESTS, READ, *[OTHER] * 10], tmp_path / "log.jsonl"))
    assert after_compaction(session) == []
    assert [(stretch.call, stretch.repeating) for stretch in session.stretches] == [(10, (0,))]
    assert damage_by_client([session]) == []


@WRITERS
def test_a_compaction_at_the_very_end_has_no_calls_to_look_at(write, tmp_path):
    session = audited(write([READ, TESTS, COMPACT], tmp_path / "log.jsonl"))
    assert session.stretches == ()


@WRITERS
def test_work_goes_on_at_the_first_call_that_changes_something(write, tmp_path):
    steps = [READ, TESTS, COMPACT, READ, OTHER, EDIT, TESTS, COMPACT, USER, TESTS]
    first, second = after_compaction(audited(write(steps, tmp_path / "log.jsonl")))
    assert (first.call, first.calls, first.works, first.begins_turn) == (2, 4, 2, False)
    assert (second.call, second.calls, second.works, second.begins_turn) == (6, 1, None, True)
    assert first.version in ("2.1.7", "0.142.4")
    assert first.prompt
    assert first.call_cost


@WRITERS
def test_paths_and_commands_are_named_only_if_asked_for(write, tmp_path):
    path = write([READ, COMPACT, READ], tmp_path / "log.jsonl")
    assert after_compaction(audited(path))[0].subjects == ()
    (subject,) = after_compaction(audited(path, with_contents=True))[0].subjects
    assert "src/a.py" in subject


def test_a_call_that_also_does_something_new_is_not_lost(tmp_path):
    lines = ClaudeLines()
    lines.user("Please fix it.")
    for name, paths in (("m1", ("a.py",)), ("m2", ("a.py", "b.py"))):
        for path in paths:
            use = {"type": "tool_use", "id": f"{name}{path}", "name": "Read", "input": {"file_path": path}}
            lines.block(name, use)
            lines.result(f"{name}{path}", FILE)
        if name == "m1":
            lines.user("The work so far.", isCompactSummary=True)
    (stretch,) = after_compaction(audited(lines.write(tmp_path / "log.jsonl")))
    assert (stretch.repeating, stretch.only_repeating) == ((0,), ())


def test_plans_and_questions_count_when_they_are_the_same(tmp_path):
    todo = {"todos": [{"content": "find it", "status": "pending", "activeForm": "finding"}]}
    question = {"questions": [{"question": "Which database?", "options": []}]}
    lines = ClaudeLines()
    lines.user("Please fix it.")
    for at, (name, arguments) in enumerate(
        [
            ("TodoWrite", todo),
            ("AskUserQuestion", question),
            ("TodoWrite", todo),
            ("AskUserQuestion", question),
        ]
    ):
        lines.block(f"m{at}", {"type": "tool_use", "id": f"t{at}", "name": name, "input": arguments})
        lines.result(f"t{at}", "done")
    (recording,) = recordings([lines.write(tmp_path / "log.jsonl")])
    indexes = [at for at, each in enumerate(recording.messages) if each.call is not None]
    found = [[repeat.kind for repeat in each.repeats] for each in actions_of(recording, indexes)]
    assert found == [[], [], ["plan"], ["question"]]


# Beside stretches without a compaction


def session_with(*stretches: Stretch, name: str = "s") -> AuditedSession:
    return AuditedSession(id=name, agent="claude-code", path="", model="m", stretches=stretches)


PLACE = Stretch(call=50, calls=30, prompt=100_000, works=2, only_repeating=(3,), repeating=(3,))
AFTER = replace(
    PLACE,
    is_compaction=True,
    version="2.1.7",
    works=6,
    only_repeating=(0, 1),
    repeating=(0, 1),
    call_cost=1_000,
)


def test_the_matched_stretch_is_subtracted_at_the_cost_of_a_call():
    whole, version = damage_by_client([session_with(AFTER, PLACE)])
    assert (whole.version, version.version) == ("", "2.1.7")
    assert (whole.compactions, whole.repeating, whole.matched) == (1, 1, 1)
    assert (whole.repeated, whole.repeated_elsewhere) == (2.0, 1.0)
    assert (whole.until_work, whole.until_work_elsewhere) == (6.0, 2.0)
    assert (whole.repeated_cost, whole.extra_cost) == (2_000, 4_000)


def test_a_matched_stretch_has_the_same_number_of_calls():
    (line, _) = damage_by_client(
        [session_with(replace(AFTER, calls=2, works=None), replace(PLACE, works=None))]
    )
    assert (line.until_work, line.until_work_elsewhere, line.repeated_elsewhere) == (2.0, 2.0, 0.0)


@pytest.mark.parametrize(
    "place",
    [
        replace(PLACE, prompt=20_000),
        replace(PLACE, call=10),
        replace(PLACE, begins_turn=True),
        replace(PLACE, calls=20),
        replace(PLACE, prompt=0),
    ],
    ids=["prompt", "position", "turn", "too short", "unknown prompt"],
)
def test_what_is_not_comparable_is_not_compared(place):
    line = damage_by_client([session_with(AFTER, place)])[0]
    assert (line.matched, line.until_work_elsewhere, line.extra_cost) == (0, None, None)
    assert "no place in the recordings is comparable" in damage_says(line)


def test_too_few_compactions_have_no_interval():
    sessions = [session_with(AFTER, PLACE, name=f"s{number}") for number in range(FEWEST)]
    few, enough = damage_by_client(sessions[1:])[0], damage_by_client(sessions)[0]
    assert few.until_work_more is None
    assert "too few" in damage_says(few)
    assert enough.until_work_more is not None
    assert (enough.until_work_more.low, enough.until_work_more.high) == (4.0, 4.0)
    assert "there are 4.0 to 4.0 more calls until work goes on" in damage_says(enough)
    uncertain = replace(enough, until_work_more=Interval(low=-0.5, high=1.0))
    assert "calls until work goes on differ by −0.5 to +1.0, which may be chance" in damage_says(uncertain)


def test_the_page_says_a_line_for_each_client_and_folds_versions_with_few_compactions():
    often = [session_with(replace(AFTER, version="2"), PLACE, name=f"s{at}") for at in range(FEWEST)]
    seldom = [session_with(replace(AFTER, version="3"), PLACE, name="once")]
    other = [replace(session_with(AFTER, PLACE, name="other"), agent="another")]
    report = replace(audit_of(1), damage=tuple(damage_by_client([*often, *seldom, *other])))
    rows = sorted(audit_page_data(report).damage, key=lambda row: row.order)
    client = often[0].agent
    assert [(row.name, row.is_telling) for row in rows][:3] == [
        (client, True),
        ("another", True),
        (f"{client} 2", True),
    ]
    assert not any(row.is_telling for row in rows[3:])
    assert "(90% intervals).\nanother: " in audit_page(report)


def test_an_interval_is_the_same_at_every_run_and_holds_the_mean():
    values = [float(number % 7) for number in range(60)]
    found = interval_of(values)
    assert found is not None
    assert found == interval_of(values)
    assert found.low < sum(values) / len(values) < found.high


def test_places_of_the_same_project_come_first_and_other_models_are_not_compared():
    elsewhere = replace(session_with(replace(PLACE, works=20), name="b"), path="/logs/other/b.jsonl")
    same = replace(session_with(PLACE, name="c"), path="/logs/one/c.jsonl")
    own = replace(session_with(AFTER, name="a"), path="/logs/one/a.jsonl")
    assert damage_by_client([own, elsewhere, same])[0].until_work_elsewhere == 2.0
    assert damage_by_client([own, elsewhere])[0].until_work_elsewhere == 20.0
    assert damage_by_client([own, replace(same, model="another")])[0].matched == 0
