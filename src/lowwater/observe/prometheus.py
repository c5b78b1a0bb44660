"""Events and turns as metrics in Prometheus' text format."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lowwater.core.events import Event, TurnRecord
from lowwater.observe.measures import MEASURES, Labels, Measure, Measured, measured_event, measured_turn

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Counter, Histogram

_UNITS = {"token": "_tokens", "USD": "_dollars", "s": "_seconds", "1": "_ratio"}
"""Suffixes of metric names by unit; plain counts have none."""


class PrometheusSink:
    """Counts events and turns in a registry of its own; numbers and names only, never contents or sessions."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry  # noqa: PLC0415 - takes a while to load

        self.registry = CollectorRegistry()
        """Public, so that a program can add metrics of its own."""
        self._labels = Labels()
        self._metrics = {measure.name: _metric(measure, self.registry) for measure in MEASURES}

    def record(self, _session: str, event: Event, /) -> None:
        """Add an event."""
        self._add(measured_event(event))

    def turn(self, _session: str, record: TurnRecord, /) -> None:
        """Add a turn."""
        self._add(measured_turn(record))

    def text(self) -> str:
        """Return all metrics in Prometheus' text format."""
        from prometheus_client import generate_latest  # noqa: PLC0415  # an optional package

        return generate_latest(self.registry).decode()

    def _add(self, measured: Iterable[Measured]) -> None:
        from prometheus_client import Histogram  # noqa: PLC0415  # an optional package

        for each in measured:
            series = self._metrics[each.measure.name].labels(**self._labels.bounded(each))
            if isinstance(series, Histogram):
                series.observe(each.value)
            else:
                series.inc(each.value)


def _metric(measure: Measure, registry: "CollectorRegistry") -> "Counter | Histogram":
    from prometheus_client import Counter, Histogram  # noqa: PLC0415  # an optional package

    name = f"lowwater_{measure.name.replace('.', '_')}{_UNITS.get(measure.unit, '')}"
    if measure.bounds:
        return Histogram(name, measure.description, measure.labels, registry=registry, buckets=measure.bounds)
    return Counter(name, measure.description, measure.labels, registry=registry)
