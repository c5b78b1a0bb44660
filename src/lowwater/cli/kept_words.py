"""Times, money and texts of kept sessions as a person reads them on a terminal."""

import re
from datetime import UTC, datetime

from rich.cells import cell_len, set_cell_size

from lowwater.core.accounts.advice import dollars
from lowwater.errors import BadInput

UNKNOWN = "unknown"

_SECONDS = {"m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400}
_SPAN = re.compile(r"\s*([0-9]{1,6})\s*([mhdw])\s*", re.IGNORECASE)
_STEPS = ((60, 1, "s"), (3_600, 60, "min"), (2 * 86_400, 3_600, "h"), (60 * 86_400, 86_400, "days"))

_CONTROLS = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\n\t"}
_CONTROLS |= {0x7F: 0x2421, **dict.fromkeys(range(0x80, 0xA0), 0xFFFD)}
_CONTROLS |= dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0xFFFD)
"""What a terminal would obey instead of showing it, and a visible character for each."""


def printable(text: str) -> str:
    """Return a text that somebody else wrote so that a terminal shows it and obeys nothing in it."""
    return text.translate(_CONTROLS)


def on_one_line(text: str, most: int) -> str:
    """Return a text on one line of at most so many characters."""
    flat = " ".join(printable(text[: 4 * most]).split())
    return flat if len(flat) <= most and len(text) <= 4 * most else f"{flat[: max(0, most - 1)]}…"


def fitted(text: str, columns: int) -> str:
    """Return a text that takes exactly so many columns of a terminal, with dots where it was longer."""
    if cell_len(text) <= columns:
        return set_cell_size(text, columns)
    return f"{set_cell_size(text, max(0, columns - 1))}…"


def amount(nano: float | None) -> str:
    """Return nano-dollars as dollars; what is not known is said to be."""
    return UNKNOWN if nano is None else dollars(nano)


def figure(number: float | None, *, places: int = 1) -> str:
    """Return a number with thousands, or a dash where there is nothing to count."""
    return "–" if number is None else f"{number:,.{places}f}" if isinstance(number, float) else f"{number:,}"


def share(part: float | None) -> str:
    """Return a share in percent, or a dash."""
    return "–" if part is None else f"{part:.0%}"


def span(seconds: float) -> str:
    """Return a length of time in one unit: 45 s, 12 min, 7 h, 9 days."""
    seconds = max(0.0, seconds)
    for below, size, unit in _STEPS:
        if seconds < below:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds // _SECONDS['w'])} weeks"


def ago(at: float, now: float) -> str:
    """Return how long ago a moment was."""
    return "just now" if now - at < 1 else f"{span(now - at)} ago"


def moment(at: float) -> str:
    """Return a moment in the user's own time zone, to the minute."""
    return f"{_local(at):%Y-%m-%d %H:%M}"


def day(at: float) -> str:
    """Return the day of a moment in the user's own time zone."""
    return f"{_local(at):%Y-%m-%d}"


def read_since(text: str, now: float) -> float:
    """Return the moment that `30d`, `12h` or `2026-11-01` names, or raise BadInput."""
    found = _SPAN.fullmatch(text)
    if found:
        return now - int(found[1]) * _SECONDS[found[2].lower()]
    try:
        given = datetime.fromisoformat(text.strip())
    except ValueError:
        raise BadInput(
            f"{on_one_line(text, 40)!r} is no time: write 30d, 12h, 2w, or a day such as 2026-11-01"
        ) from None
    return (given if given.tzinfo else given.astimezone()).timestamp()


def _local(at: float) -> datetime:
    return datetime.fromtimestamp(at, tz=UTC).astimezone()
