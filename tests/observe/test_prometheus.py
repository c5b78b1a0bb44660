"""Prometheus text, read back by the official parser."""

import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from lowwater.observe.measures import MOST_VALUES, OTHER
from lowwater.observe.prometheus import PrometheusSink
from lowwater.observe.sinks import send_event
from tests.observe.sample_events import EVENT, SECRET, SKIP, TURN, UNPRICED


def read(sink: PrometheusSink) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Return every sample by name and labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(sink.text())
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def labels(**named: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(named.items()))


OPUS = labels(model="claude-opus-5-5")


def test_events_and_turns_add_up() -> None:
    sink = PrometheusSink()
    for _ in range(2):
        sink.record("s", EVENT)
        sink.turn("s", TURN)
    sink.record("s", SKIP)
    sink.turn("other", UNPRICED)
    found = read(sink)
    both = labels(model="claude-opus-5-5", mode="summary")
    by_reason = labels(model="claude-opus-5-5", mode="summary", reason="rent-paid")
    assert found["lowwater_compactions_total", by_reason] == 2
    assert found["lowwater_compaction_reclaimed_tokens_sum", both] == 140_000
    assert found["lowwater_compaction_disturbed_tokens_total", both] == 56_000
    assert found["lowwater_compaction_duration_seconds_sum", both] == 0.5
    assert found["lowwater_compaction_duration_seconds_count", both] == 2
    assert found["lowwater_summary_tokens_total", OPUS] == 8_000
    assert found["lowwater_summary_cost_dollars_total", OPUS] == pytest.approx(0.04)
    assert found["lowwater_summary_score_ratio_sum", OPUS] == 1.5
    assert found["lowwater_summaries_rejected_total", labels(reason="references_missing")] == 3
    assert found["lowwater_skips_total", labels(reason="cooling-down")] == 1
    assert found["lowwater_turns_total", OPUS] == 2
    assert found["lowwater_input_tokens_total", OPUS] == 2_000
    assert found["lowwater_input_cache_read_tokens_total", OPUS] == 1_800
    assert found["lowwater_input_cache_write_tokens_total", OPUS] == 180
    assert found["lowwater_output_tokens_total", OPUS] == 100
    assert found["lowwater_removed_tokens_total", OPUS] == 140_000
    assert found["lowwater_cost_dollars_total", OPUS] == 3.0
    assert found["lowwater_untouched_cost_dollars_total", OPUS] == 5.0


def test_what_has_no_price_is_counted_as_such_and_has_no_cost() -> None:
    sink = PrometheusSink()
    sink.turn("s", UNPRICED)
    sink.record("s", replace(EVENT, cost=None, model="mystery-2"))
    found = read(sink)
    mystery = labels(model="mystery-2")
    assert found["lowwater_turns_unpriced_total", mystery] == 1
    assert found["lowwater_compactions_unpriced_total", mystery] == 1
    assert ("lowwater_cost_dollars_total", mystery) not in found
    assert ("lowwater_summary_cost_dollars_total", mystery) not in found


def test_cost_is_counted_only_where_there_is_something_to_compare_it_with() -> None:
    sink = PrometheusSink()
    sink.turn("s", TURN)
    sink.turn("s", replace(TURN, untouched=None))
    found = read(sink)
    assert (found["lowwater_cost_dollars_total", OPUS], found["lowwater_turns_unpriced_total", OPUS]) == (
        1.5,
        1,
    )


def test_neither_sessions_nor_contents_are_told() -> None:
    sink = PrometheusSink()
    sink.record("session-of-anna", EVENT)
    sink.record("session-of-anna", SKIP)
    sink.turn("session-of-anna", TURN)
    assert "anna" not in sink.text()
    assert SECRET not in sink.text()
    names = {name for _, named in read(sink) for name, _ in named}
    assert names <= {"model", "mode", "reason", "le"}


def test_names_without_end_do_not_make_series_without_end() -> None:
    sink = PrometheusSink()
    for at in range(MOST_VALUES + 50):
        sink.turn("s", replace(TURN, model=f"made-up-{at}"))
    sink.turn("s", replace(TURN, model="made-up-0"))
    turns = {named: value for (name, named), value in read(sink).items() if name == "lowwater_turns_total"}
    assert len(turns) == MOST_VALUES + 1
    assert turns[labels(model=OTHER)] == 50
    assert turns[labels(model="made-up-0")] == 2


def test_two_sinks_count_for_themselves() -> None:
    one, other = PrometheusSink(), PrometheusSink()
    send_event([one], "s", EVENT)
    assert any(name == "lowwater_compactions_total" for name, _ in read(one))
    assert not any(name == "lowwater_compactions_total" for name, _ in read(other))
