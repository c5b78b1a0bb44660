"""How long a provider asks to be left alone."""

import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime


def asked_to_wait(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the headers of a refusal name, or None if they name none that make sense."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1_000
    said = headers.get("retry-after", "")
    seconds = _number(said)
    return seconds if seconds is not None else _until(said)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _until(date: str) -> float | None:
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
    except (ValueError, OverflowError, OSError):
        return None
