"""One structured line for each request: figures and names, never contents or keys."""

import logging
import time
import traceback

import msgspec
from msgspec import Struct

_log = logging.getLogger("lowwater.gateway")


class Line(Struct, kw_only=True):
    """What is known of a request; it grows while the request is under way."""

    method: str
    path: str
    began: float
    status: int = 0
    model: str = ""
    session: str = ""
    tenant: str = ""
    decision: str = ""
    changed: bool = False
    """Whether something else than the client's own bytes was sent."""
    did: str = ""
    """What was done to a conversation: `unchanged`, `recall-added`, `changed`, `passed-on` (not taken part in) or `counted`; empty if it is none."""
    why: str = ""
    """Why it was passed on."""
    tokens: int = 0
    """The size of what was sent, as counted here."""
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
        """Return what the client is told of it: names and figures, as response headers."""
        told = {
            "x-lowwater-request": self.did,
            "x-lowwater-why": self.why,
            "x-lowwater-session": self.session,
            "x-lowwater-decision": self.decision,
            "x-lowwater-tokens": str(self.tokens) if self.tokens else "",
        }
        return [(name.encode(), value.encode("ascii", "replace")) for name, value in told.items() if value]

    def first_byte(self) -> None:
        """Note that the answer begins."""
        if not self.first:
            self.first = time.perf_counter() - self.began


def write_line(line: Line) -> None:
    """Log a request that is done."""
    if not _log.isEnabledFor(logging.INFO):
        return
    told = {
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
    _log.info(msgspec.json.encode({name: value for name, value in told.items() if value != ""}).decode())


def where(error: BaseException) -> str:
    """Return where a defect is without what it says, which may be a client's words."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    return f"{type(error).__name__} at " + ", ".join(f"{frame.name}:{frame.lineno}" for frame in frames)
