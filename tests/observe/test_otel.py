"""OpenTelemetry metrics and spans, as the SDK's exporters in memory get them."""

import sys

import pytest
from msgspec.structs import replace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, NumberDataPoint
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from lowwater.adapters.models import load_registry
from lowwater.core.models.registry import Registry
from lowwater.errors import BadSetting
from lowwater.observe.measures import MOST_VALUES
from lowwater.observe.otel import OtelSink
from tests.observe.sample_events import EVENT, SECRET, SKIP, TURN, UNPRICED

MODEL = {"gen_ai.request.model": "claude-opus-5-5"}
CALL = {**MODEL, "gen_ai.operation.name": "chat", "gen_ai.token.modality": "unknown"}
USAGE = "gen_ai.client.inference.usage"


class Told:
    """A sink with everything it tells, in memory."""

    def __init__(self, *, registry: Registry | None = None, calls: bool = True) -> None:
        self.reader, self.spans = InMemoryMetricReader(), InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.spans))
        self.sink = OtelSink(
            meter_provider=MeterProvider(metric_readers=[self.reader]),
            tracer_provider=self.tracers,
            registry=registry,
            calls=calls,
        )

    def points(self) -> dict[str, list[NumberDataPoint | HistogramDataPoint]]:
        """Return the points of every metric."""
        data = self.reader.get_metrics_data()
        if data is None:
            return {}
        metrics = [
            metric
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        ]
        return {metric.name: list(metric.data.data_points) for metric in metrics}  # type: ignore[arg-type]

    def value(self, name: str, attributes: dict[str, str]) -> float:
        """Return the one number of a metric with these attributes."""
        found = [point for point in self.points()[name] if dict(point.attributes or {}) == attributes]
        assert len(found) == 1, self.points()[name]
        return found[0].sum if isinstance(found[0], HistogramDataPoint) else found[0].value


def test_turns_are_counted_under_the_names_of_the_conventions() -> None:
    told = Told()
    told.sink.turn("s", TURN)
    told.sink.turn("s", TURN)
    assert told.value(f"{USAGE}.input_tokens", CALL) == 2_000
    assert told.value(f"{USAGE}.cache_read.input_tokens", CALL) == 1_800
    assert told.value(f"{USAGE}.cache_write.input_tokens", CALL) == 180
    assert told.value(f"{USAGE}.output_tokens", CALL) == 100
    assert told.value("lowwater.turns", MODEL) == 2
    assert told.value("lowwater.removed", MODEL) == 140_000
    assert told.value("lowwater.cost", MODEL) == 3.0
    assert told.value("lowwater.untouched.cost", MODEL) == 5.0


def test_who_serves_a_model_is_told_in_the_words_of_the_conventions() -> None:
    told = Told(registry=load_registry())
    for model, provider in (
        ("claude-opus-5-5", "anthropic"),
        ("gemini-2.5-pro", "gcp.gemini"),
        ("bedrock/claude-opus-5-5", "aws.bedrock"),
        ("grok-4.5", "x_ai"),
    ):
        told.sink.turn("s", replace(TURN, model=model))
        attributes = {**CALL, "gen_ai.request.model": model, "gen_ai.provider.name": provider}
        assert told.value(f"{USAGE}.output_tokens", attributes) == 50


def test_a_client_that_is_instrumented_keeps_its_own_count_of_calls() -> None:
    told = Told(calls=False)
    told.sink.turn("s", TURN)
    assert not [name for name in told.points() if name.startswith("gen_ai.")]
    assert told.value("lowwater.turns", MODEL) == 1


def test_events_are_counted() -> None:
    told = Told()
    told.sink.record("s", EVENT)
    told.sink.record("s", SKIP)
    by_mode = {**MODEL, "lowwater.mode": "summary"}
    assert told.value("lowwater.compactions", {**by_mode, "lowwater.reason": "rent-paid"}) == 1
    assert told.value("lowwater.compaction.reclaimed", by_mode) == 70_000
    assert told.value("lowwater.compaction.duration", by_mode) == 0.25
    assert told.value("lowwater.summary.cost", MODEL) == pytest.approx(0.02)
    assert told.value("lowwater.summary.score", MODEL) == 0.75
    assert told.value("lowwater.skips", {"lowwater.reason": "cooling-down"}) == 1
    assert told.value("lowwater.summaries.rejected", {"lowwater.reason": "references_missing"}) == 2


def test_what_has_no_price_is_counted_as_such_and_has_no_cost() -> None:
    told = Told()
    told.sink.turn("s", UNPRICED)
    assert told.value("lowwater.turns.unpriced", {"gen_ai.request.model": "mystery-2"}) == 1
    assert "lowwater.cost" not in told.points()


def test_a_compaction_is_a_span_of_the_time_it_took() -> None:
    told = Told()
    told.sink.record("refactor-auth", EVENT)
    told.sink.record("refactor-auth", SKIP)
    (span,) = told.spans.get_finished_spans()
    assert (span.name, span.kind) == ("lowwater.compaction", SpanKind.INTERNAL)
    assert (span.start_time, span.end_time) == (1_000_500_000_000, 1_000_750_000_000)
    assert span.attributes is not None
    assert span.attributes["gen_ai.conversation.id"] == "refactor-auth"
    assert span.attributes["gen_ai.request.model"] == "claude-opus-5-5"
    assert (span.attributes["lowwater.tokens.before"], span.attributes["lowwater.tokens.after"]) == (
        100_000,
        30_000,
    )
    assert (span.attributes["lowwater.cost"], span.attributes["lowwater.price"]) == (0.02, 0.03)
    assert span.attributes["lowwater.payback.predicted"] == 3.0
    assert span.attributes["lowwater.summary.score"] == 0.75


def test_a_compaction_stands_inside_the_span_that_is_under_way() -> None:
    told = Told()
    with told.tracers.get_tracer("agent").start_as_current_span("invoke_agent") as outer:
        told.sink.record("s", EVENT)
    inner = told.spans.get_finished_spans()[0]
    assert inner.parent is not None
    assert inner.parent.span_id == outer.get_span_context().span_id


def test_what_is_not_known_of_a_compaction_is_left_out() -> None:
    told = Told()
    told.sink.record("s", replace(EVENT, cost=None, price=None, score=None, summarizer=""))
    (span,) = told.spans.get_finished_spans()
    assert not {"lowwater.cost", "lowwater.price", "lowwater.summary.score", "lowwater.summary.by"} & set(
        span.attributes or {}
    )


def test_no_contents_leave_and_no_session_is_in_a_metric() -> None:
    told = Told()
    told.sink.record("session-of-anna", EVENT)
    told.sink.record("session-of-anna", SKIP)
    told.sink.turn("session-of-anna", TURN)
    (span,) = told.spans.get_finished_spans()
    assert SECRET not in span.to_json()
    metrics = told.reader.get_metrics_data()
    assert metrics is not None
    assert SECRET not in metrics.to_json()
    assert "anna" not in metrics.to_json()


def test_names_without_end_do_not_make_series_without_end() -> None:
    told = Told()
    for at in range(MOST_VALUES + 50):
        told.sink.turn("s", replace(TURN, model=f"made-up-{at}"))
    assert len(told.points()["lowwater.turns"]) == MOST_VALUES + 1


def test_without_anyone_listening_it_does_nothing() -> None:
    sink = OtelSink()
    sink.record("s", EVENT)
    sink.turn("s", TURN)


def test_without_the_package_it_says_which_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(BadSetting, match=r"pip install 'lowwater\[otel\]'"):
        OtelSink()
