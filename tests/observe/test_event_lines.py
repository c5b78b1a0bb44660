"""Events and warnings on one line, in numbers only."""

import logging

import pytest
from msgspec.structs import replace

from lowwater.core.decisions import Reason
from lowwater.core.events import Compaction, Phase, Rejected, Skip
from lowwater.core.limits import UsageWarning
from lowwater.observe.sinks import LogSink, MemorySink, line_for, send_event, send_warnings, skip_line_for
from lowwater.testing.fakes import RecordingSink

EVENT = Compaction(
    at=0.0,
    model="m",
    mode="summary",
    mechanisms=("elide", "summarize"),
    because=Reason(code="prune-falls-short", facts={"prompt": 100_000}),
    before=100_000,
    after=30_000,
    items_before=200,
    items_after=40,
    first_changed=3,
    disturbed=28_000,
    summary_tokens=4_000,
    summarizer="extractive",
    seconds=0.254,
    phases=(Phase(mechanism="elide", removed=20_000), Phase(mechanism="summarize", removed=50_000)),
    number=2,
)
SKIP = Skip(
    at=0.0,
    because=Reason(code="budget-headroom", facts={"assembled": 40_000, "pressure": "no"}),
    prompt=40_000,
)


def test_a_compaction_tells_trigger_phases_result_and_count() -> None:
    assert line_for(EVENT) == (
        "compaction 2 (prune-falls-short): 100,000 → 30,000 tokens, 200 → 40 messages "
        "(elide −20,000, summarize −50,000); summary of 4,000 tokens by extractive; 0.25 s"
    )
    assert EVENT.reclaimed == 70_000
    assert EVENT.ratio == 0.3


def test_a_skip_tells_reason_size_and_pressure() -> None:
    assert skip_line_for(SKIP) == "kept 40,000 tokens (budget-headroom: assembled 40000, pressure no)"


def test_what_a_summary_misses_is_counted_and_never_quoted() -> None:
    found = Rejected(by="haiku", code="references_missing", missing=12, first_missing=("sk-secret", "b.py"))
    said = "; not accepted as written: haiku (references_missing, 12 references missing)"
    assert line_for(replace(EVENT, rejected=(found,))) == line_for(EVENT).replace("; 0.25", f"{said}; 0.25")
    assert skip_line_for(replace(SKIP, rejected=(found,))) == skip_line_for(SKIP) + said


def test_compactions_are_information_and_skips_are_for_debugging(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "lowwater"):
        LogSink().record("s", EVENT)
        LogSink().record("s", SKIP)
    assert [record.levelname for record in caplog.records] == ["INFO", "DEBUG"]


def test_one_sink_that_fails_does_not_keep_the_others_from_hearing() -> None:
    broken, whole = RecordingSink(RuntimeError("x")), MemorySink()
    send_event([broken, whole], "s", EVENT)
    assert whole.events == [("s", EVENT)]


@pytest.mark.parametrize(
    ("level", "logged"),
    [("info", "INFO"), ("notice", "INFO"), ("warning", "WARNING"), ("critical", "CRITICAL")],
)
def test_a_warning_is_logged_at_its_level_and_handed_on(
    level: str, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    warning = UsageWarning(level=level, percent=60, tokens=60, threshold=100)  # type: ignore[arg-type]  # by id
    heard: list[UsageWarning] = []
    with caplog.at_level(logging.DEBUG, "lowwater"):
        send_warnings([warning], "s", call=heard.append, quiet=False)
        send_warnings([warning], "s", call=None, quiet=True)
    assert heard == [warning]
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        (logged, "s: The prompt has 60 of 100 tokens, 60 % of the threshold.")
    ]
