"""The gateway's own metrics beside those of its sessions, as Prometheus text."""

import time

from prometheus_client import Counter, Gauge, Histogram, generate_latest

from lowwater.gateway.logs import Line
from lowwater.observe.prometheus import PrometheusSink

METRICS = b"text/plain; version=0.0.4; charset=utf-8"
"""What the text is, as HTTP says it."""
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_KNOWN = ("/v1/messages", "/v1/messages/count_tokens", "/v1/chat/completions", "/v1/responses", "/v1/models")


class Metrics:
    """Counts requests; names and figures only."""

    def __init__(self) -> None:
        self.sink = PrometheusSink()
        registry = self.sink.registry
        self._requests = Counter(
            "lowwater_gateway_requests", "Requests answered.", ("path", "status"), registry=registry
        )
        self._changed = Counter(
            "lowwater_gateway_changed", "Requests that did not leave as they came.", registry=registry
        )
        self._did = Counter(
            "lowwater_gateway_conversations",
            "Conversation requests by what was done to them and why.",
            ("did", "decision"),
            registry=registry,
        )
        self.bills = Counter(
            "lowwater_gateway_bills",
            "Answers that the store did not take at once: `late` came later, `lost` never.",
            ("became",),
            registry=registry,
        )
        self.bills_waiting = Gauge(
            "lowwater_gateway_bills_waiting", "Answers that wait for the store.", registry=registry
        )
        self.held_bytes = Gauge(
            "lowwater_gateway_held_bytes", "Memory that bodies under way take.", registry=registry
        )
        self._overflows = Counter(
            "lowwater_gateway_overflows", "Prompts that a provider found too long.", registry=registry
        )
        self._troubles = Counter(
            "lowwater_gateway_troubles",
            "Requests that something went wrong with.",
            ("kind",),
            registry=registry,
        )
        self._prepared = Histogram(
            "lowwater_gateway_prepared_seconds",
            "Time until a request was sent on.",
            registry=registry,
            buckets=_SECONDS,
        )
        self._first = Histogram(
            "lowwater_gateway_first_byte_seconds",
            "Time until the first byte of an answer.",
            registry=registry,
            buckets=_SECONDS,
        )
        self._whole = Histogram(
            "lowwater_gateway_seconds",
            "Time until an answer was complete.",
            registry=registry,
            buckets=_SECONDS,
        )
        self.under_way = Gauge("lowwater_gateway_under_way", "Requests under way.", registry=registry)

    def request(self, line: Line) -> None:
        """Add a request that is done."""
        path = line.path if line.path in _KNOWN else "other"
        self._requests.labels(path=path, status=str(line.status)).inc()
        if line.changed:
            self._changed.inc()
        if line.did:
            self._did.labels(did=line.did, decision=line.decision).inc()
        if line.overflowed:
            self._overflows.inc()
        if line.outcome:
            self._troubles.labels(kind=line.outcome.partition(":")[0]).inc()
        if line.prepared:
            self._prepared.observe(line.prepared)
        if line.first:
            self._first.observe(line.first)
        self._whole.observe(time.perf_counter() - line.began)

    def text(self) -> str:
        """Return everything as Prometheus reads it."""
        return generate_latest(self.sink.registry).decode()
