"""Turns go to the sinks that take them."""

import logging

import pytest

from lowwater.core.events import Event, TurnRecord
from lowwater.observe.prometheus import PrometheusSink
from lowwater.observe.sinks import MemorySink, send_turn
from tests.observe.sample_events import SECRET, TURN


class Failing:
    def record(self, session: str, event: Event, /) -> None: ...

    def turn(self, session: str, record: TurnRecord, /) -> None:
        raise OSError(SECRET)


def test_a_sink_for_events_only_is_left_alone_and_one_that_fails_stops_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    events_only, last = MemorySink(), PrometheusSink()
    with caplog.at_level(logging.WARNING, logger="lowwater"):
        send_turn([events_only, Failing(), last], "s", TURN)
    assert events_only.events == []
    assert 'lowwater_turns_total{model="claude-opus-5-5"} 1.0' in last.text()
    assert [record.getMessage() for record in caplog.records] == ["a sink failed: OSError"]
