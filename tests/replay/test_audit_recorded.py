"""The audit on real recordings, where they are on this machine: the rules foresee the bill, the causes explain it."""

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles

import pytest

from bench import foreseen
from lowwater.replay.audit.audited import AuditedSession
from lowwater.replay.audit.calls import Call, calls_of
from lowwater.replay.audit.causes import misses_of, shortfall
from lowwater.replay.audit.files import audit_files
from lowwater.replay.audit.foreseen import foreseen_bill
from lowwater.replay.importing.importing import recordings
from tests.replay.audit_talk import PRICING, utc_day

TRANSCRIPTS = Path(__file__).parents[3] / "shared" / "transcripts"
CANONICAL = TRANSCRIPTS / "canonical"
INDEX = TRANSCRIPTS / "index.json"

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not CANONICAL.is_dir(), reason="no recorded sessions on this machine"),
]


class Read:
    """Every recorded session's calls, by source."""

    def __init__(self) -> None:
        self.sessions: dict[str, list[tuple[Call, ...]]] = defaultdict(list)
        for recording in recordings([CANONICAL]):
            source = Path(recording.path).parent.name
            self.sessions[source].append(calls_of(recording, PRICING))

    def every(self) -> Iterator[tuple[Call, ...]]:
        for sessions in self.sessions.values():
            yield from sessions


@pytest.fixture(scope="module")
def read() -> Read:
    return Read()


def errors(sessions: list[tuple[Call, ...]]) -> list[float]:
    bills = [bill for calls in sessions if (bill := foreseen_bill(calls)) is not None]
    return [abs(bill.error) for bill in bills]


def test_the_input_bill_is_foreseen_from_sizes_and_times(read, record_property):
    every = errors(list(read.every()))
    p90 = quantiles(every, n=10, method="inclusive")[-1]
    for source, sessions in read.sessions.items():
        if found := errors(sessions):
            record_property(source, f"{len(found)} sessions, median {median(found):.4f}")
    assert len(every) > 300
    assert median(every) <= 0.05
    assert p90 <= 0.20


def test_so_it_is_if_its_first_call_is_foreseen_too(capsys):
    status = foreseen.main()
    said = capsys.readouterr().out
    assert status == 0, said


def test_causes_agree_with_the_counters(read):
    for calls in read.every():
        usages = [call.usage for call in calls if call.usage is not None]
        missing = sum(map(shortfall, [None, *usages], usages))
        assert sum(miss.tokens for miss in misses_of(calls) if miss) == missing


def test_most_of_what_was_missed_has_a_known_cause(read):
    tokens: dict[str, int] = defaultdict(int)
    for calls in read.every():
        for miss in misses_of(calls):
            if miss is not None:
                tokens[miss.cause] += miss.tokens
    assert tokens["evicted"] < 0.1 * sum(tokens.values())


@pytest.fixture(scope="module")
def claude_code() -> dict[str, list[AuditedSession]]:
    files = audit_files([TRANSCRIPTS / "claude-code"], day_of=utc_day, pricing=PRICING)
    return {Path(file.path).name: list(file.sessions) for file in files}


def test_the_clients_own_compactions_are_found(claude_code):
    listed = {
        Path(one["file"]).name: one["compactions"]
        for one in json.loads(INDEX.read_bytes())
        if one["kind"] == "claude-code"
    }
    found = {name: sum(len(session.natives) for session in claude_code[name]) for name in listed}
    assert found == listed


def test_estimates_rest_on_a_model_that_is_near_the_bill(claude_code):
    sessions = [session for found in claude_code.values() for session in found if session.saving]
    cost = sum(row.figures.cost or 0 for session in sessions for row in session.rows)
    modelled = sum(session.saving.modelled for session in sessions if session.saving)
    assert modelled == pytest.approx(cost, rel=0.1)
