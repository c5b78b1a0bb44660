"""Times as recordings spell them, in seconds since the epoch."""

import re
from datetime import UTC, datetime
from math import isfinite

_EARLIEST, _LATEST = 946_684_800.0, 4_102_444_800.0
"""The years 2000 and 2100: what lies outside is no time at which an agent ran."""
_UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_UNITS = (1.0, 1e3, 1e6, 1e9)


def seconds(told: object) -> float | None:
    """Return a time that is told in seconds or a finer unit, or as ISO 8601; None for anything else."""
    if isinstance(told, bool):
        return None
    if isinstance(told, int | float):
        return _from_number(told)
    return _from_text(told) if isinstance(told, str) else None


def time_in(id: str) -> float | None:
    """Return when an id was given, if it is a UUID of version 7, which begins with the time in milliseconds."""
    return _from_number(int(id[:8] + id[9:13], 16)) if _UUID7.fullmatch(id) else None


def _from_number(told: float) -> float | None:
    # A digit too many for a float is no time either.
    if abs(told) > _LATEST * _UNITS[-1] or not isfinite(told):
        return None
    return next((told / unit for unit in _UNITS if _EARLIEST <= told / unit < _LATEST), None)


def _from_text(told: str) -> float | None:
    try:
        read = datetime.fromisoformat(told)
        return _from_number((read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return None
