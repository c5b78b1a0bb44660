"""The log line of each request and the gateway's metrics: names and figures, never contents or keys."""

import logging
import time
import traceback

import msgspec
from msgspec import Struct
from prometheus_client import Counter, Gauge, Histogram, generate_latest

from lowwater.observe.prometheus import PrometheusSink

_log = logging.getLogger("lowwater.gateway")

METRICS_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
"""The content type of Prometheus' text format."""
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_KNOWN = ("/v1/messages", "/v1/messages/count_tokens", "/v1/chat/completions", "/v1/responses", "/v1/models")


class LogLine(Struct, kw_only=True):
    """What is logged about a request; it is filled in while the request is under way."""

    method: str
    path: str
    began: float
    status: int = 0
    model: str = ""
    session: str = ""
    tenant: str = ""
    decision: str = ""
    changed: bool = False
    """Whether something other than the client's own bytes was sent."""
    did: str = ""
    """What was done to a conversation: `unchanged`, `recall-added`, `changed`, `passed-on` (forwarded unread), `shadow`, `untouched` (as the client wished) or `counted`; empty for other requests."""
    why: str = ""
    """Why it was forwarded unread."""
    tokens: int = 0
    """The size of the prompt that was sent, as counted here."""
    streams: bool = False
    overflowed: bool = False
    outcome: str = ""
    """What went wrong; empty if nothing did."""
    request_bytes: int = 0
    response_bytes: int = 0
    prepared: float = 0.0
    """Seconds until the request was sent on."""
    first: float = 0.0
    """Seconds until the first byte of the answer."""

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Return the response headers that tell the client what was done."""
        fields = {
            "x-lowwater-request": self.did,
            "x-lowwater-why": self.why,
            "x-lowwater-session": self.session,
            "x-lowwater-decision": self.decision,
            "x-lowwater-tokens": str(self.tokens) if self.tokens else "",
        }
        return [(name.encode(), value.encode("ascii", "replace")) for name, value in fields.items() if value]

    def first_byte(self) -> None:
        """Note the time of the answer's first byte."""
        if not self.first:
            self.first = time.perf_counter() - self.began


def write_line(line: LogLine) -> None:
    """Log a finished request as one line of JSON."""
    if not _log.isEnabledFor(logging.INFO):
        return
    fields = {
        "method": line.method[:16],
        "path": line.path[:200],
        "status": line.status,
        "model": line.model[:100],
        "session": line.session,
        "tenant": line.tenant,
        "decision": line.decision,
        "changed": line.changed,
        "did": line.did,
        "why": line.why,
        "overflowed": line.overflowed,
        "outcome": line.outcome,
        "request_bytes": line.request_bytes,
        "response_bytes": line.response_bytes,
        "prepared_ms": round(1000 * line.prepared, 1),
        "first_byte_ms": round(1000 * line.first, 1),
        "ms": round(1000 * (time.perf_counter() - line.began), 1),
    }
    _log.info(msgspec.json.encode({name: value for name, value in fields.items() if value != ""}).decode())


def error_location(error: BaseException) -> str:
    """Return an error's type and place in the code, without its message, which may quote a client."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    return f"{type(error).__name__} at " + ", ".join(f"{frame.name}:{frame.lineno}" for frame in frames)


class GatewayMetrics:
    """The gateway's metrics, in one registry with those of the library."""

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

    def request(self, line: LogLine) -> None:
        """Count a finished request."""
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
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.sink.registry).decode()
