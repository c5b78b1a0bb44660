"""Half characters in JSON text: agents written in JavaScript cut strings between the two halves of one."""

import re

_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL
)
_HALF = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


def without_lone_surrogates(data: bytes) -> bytes:
    r"""Return JSON text with each half character that stands alone replaced by `\ufffd`."""
    return _ESCAPE.sub(lambda found: rb"\ufffd" if _HALF.fullmatch(found[0]) else found[0], data)
