"""Events and turns as OpenTelemetry metrics and spans (the extra `otel`).

Names are those of the GenAI semantic conventions wherever they have one, and `lowwater.*` for the rest. The conventions are in
development and have no release: these are the names in `open-telemetry/semantic-conventions-genai` as of autumn 2026, built on
the semantic conventions 1.44. There `gen_ai.client.inference.usage.*` are counters in place of the histogram
`gen_ai.client.token.usage`, and `cache_write` is what was called `cache_creation`.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from lowwater.core.events import Compaction, Event, TurnRecord
from lowwater.core.models.registry import Registry
from lowwater.errors import BadSetting
from lowwater.observe.measures import (
    MEASURES,
    Label,
    Labels,
    Measure,
    Measured,
    measured_event,
    measured_turn,
)

if TYPE_CHECKING:
    from opentelemetry.metrics import Counter, Histogram, Meter, MeterProvider
    from opentelemetry.trace import TracerProvider

_NANO = 1_000_000_000
_MODEL, _PROVIDER, _CONVERSATION = "gen_ai.request.model", "gen_ai.provider.name", "gen_ai.conversation.id"
_KEYS: dict[Label, str] = {"model": _MODEL, "mode": "lowwater.mode", "reason": "lowwater.reason"}
_CALL_ATTRIBUTES = {"gen_ai.operation.name": "chat", "gen_ai.token.modality": "unknown"}
_PROVIDERS = {
    "bedrock": "aws.bedrock",
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "moonshot": "moonshot_ai",
    "vertex": "gcp.vertex_ai",
    "xai": "x_ai",
}
"""The conventions' names of providers that have another name here."""


class OtelSink:
    """Exports to OpenTelemetry: metrics of events and turns, and a span for each compaction; numbers and names only.

    Without providers it uses the global ones; without `registry` it leaves out which provider serves a model. If the program's
    client is instrumented itself, `calls=False` leaves the `gen_ai.*` metrics to that.
    """

    def __init__(
        self,
        *,
        meter_provider: "MeterProvider | None" = None,
        tracer_provider: "TracerProvider | None" = None,
        registry: Registry | None = None,
        calls: bool = True,
    ) -> None:
        try:
            from opentelemetry import metrics, trace  # noqa: PLC0415  # an optional package
        except ImportError:
            raise BadSetting(
                "OpenTelemetry needs the package opentelemetry-api: pip install 'lowwater[otel]'"
            ) from None
        meter = metrics.get_meter("lowwater", meter_provider=meter_provider)
        self._tracer = trace.get_tracer("lowwater", tracer_provider=tracer_provider)
        self._instruments = {
            measure.name: _instrument(measure, meter) for measure in MEASURES if calls or not measure.gen_ai
        }
        self._labels = Labels()
        self._provider_names = _provider_names(registry) if registry is not None else None

    def record(self, session: str, event: Event, /) -> None:
        """Add an event; a compaction also becomes a span, inside the current one."""
        self._add(measured_event(event))
        if isinstance(event, Compaction):
            start = round(event.at * _NANO)
            attributes = {**_attributes(event), _CONVERSATION: session, **self._provider(event.model)}
            span = self._tracer.start_span("lowwater.compaction", attributes=attributes, start_time=start)
            span.end(start + round(event.seconds * _NANO))

    def turn(self, _session: str, record: TurnRecord, /) -> None:
        """Add a turn; it gets no span, as only the client knows when it began."""
        self._add(measured_turn(record))

    def _add(self, measured: Iterable[Measured]) -> None:
        from opentelemetry.metrics import Histogram  # noqa: PLC0415  # an optional package

        for each in measured:
            instrument = self._instruments.get(each.measure.name)
            if instrument is None:
                continue
            labels = self._labels.bounded(each)
            attributes = {_KEYS[name]: value for name, value in labels.items()}
            if each.measure.gen_ai:
                attributes |= {**_CALL_ATTRIBUTES, **self._provider(labels["model"])}
            if isinstance(instrument, Histogram):
                instrument.record(each.value, attributes)
            else:
                instrument.add(each.value, attributes)

    def _provider(self, model: str) -> dict[str, str]:
        return {_PROVIDER: self._provider_names(model)} if self._provider_names else {}


def _provider_names(registry: Registry) -> Callable[[str], str]:
    """Return a cached function that returns the provider of a model, by the conventions' name."""

    @lru_cache(maxsize=1_000)
    def provider_name(model: str) -> str:
        provider = registry.find(model).provider
        return _PROVIDERS.get(provider, provider)

    return provider_name


def _instrument(measure: Measure, meter: "Meter") -> "Counter | Histogram":
    name = measure.gen_ai or f"lowwater.{measure.name}"
    unit = measure.unit if measure.unit in {"s", "1"} else f"{{{measure.unit}}}"
    if measure.bounds:
        return meter.create_histogram(
            name, unit, measure.description, explicit_bucket_boundaries_advisory=measure.bounds
        )
    return meter.create_counter(name, unit, measure.description)


def _attributes(event: Compaction) -> dict[str, str | int | float | tuple[str, ...]]:
    """Return the attributes of a compaction's span; unknown ones are left out."""
    attributes: dict[str, str | int | float | tuple[str, ...] | None] = {
        _MODEL: event.model,
        _KEYS["mode"]: event.mode,
        _KEYS["reason"]: event.because.code,
        "lowwater.mechanisms": event.mechanisms,
        "lowwater.number": event.number,
        "lowwater.tokens.before": event.before,
        "lowwater.tokens.after": event.after,
        "lowwater.tokens.disturbed": event.disturbed,
        "lowwater.items.before": event.items_before,
        "lowwater.items.after": event.items_after,
        "lowwater.first_changed": event.first_changed,
        "lowwater.summary.tokens": event.summary_tokens,
        "lowwater.summary.by": event.summarizer or None,
        "lowwater.summary.score": event.score,
        "lowwater.summaries.rejected": len(event.rejected),
        "lowwater.cost": None if event.cost is None else event.cost / _NANO,
        "lowwater.price": None if event.price is None else event.price / _NANO,
        "lowwater.payback.predicted": event.payback,
    }
    return {name: value for name, value in attributes.items() if value is not None}
