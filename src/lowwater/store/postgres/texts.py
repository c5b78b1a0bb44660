"""Any text as one that PostgreSQL takes, which has no zero character, and back; what else is in it stays readable in SQL."""

import re

from lowwater.store.packing import digest

_ESCAPED = re.compile(r"\\([\\0])")


def stored(text: str) -> str:
    r"""Return the text with `\0` for a zero and two backslashes for one."""
    return text.replace("\\", "\\\\").replace("\x00", "\\0")


def told(text: object) -> str:
    """Return the text that was stored."""
    return _ESCAPED.sub(lambda found: "\x00" if found[1] == "0" else "\\", str(text))


def key_of(name: str) -> bytes:
    """Return what a session is found by, whatever its name, or raise UnicodeEncodeError; names may be too long for an index."""
    return digest(name.encode())
