"""Text without its secrets: each stands there as `[redacted: KIND]`."""

from collections.abc import Iterable, Iterator

from lowwater.values.secrets.assignments import assignments_in
from lowwater.values.secrets.blocks import blocks_in
from lowwater.values.secrets.commands import commands_in, cookies_in, encoded_in
from lowwater.values.secrets.found import Found
from lowwater.values.secrets.headers import addresses_in, headers_in, key_headers_in
from lowwater.values.secrets.keys import keys_in

_MARK = "[redacted: "
_LONGER = "\u0130"
"""The only character whose lower case is two characters."""


def conceal(text: str) -> str:
    """Return `text` with its secrets replaced, in time that grows with its length; the same text if it has none.

    What was concealed once stays as it is.
    """
    while found := secrets_in(text):
        text = "".join(_pieces(text, found))
    return text


def has_concealed(text: str) -> bool:
    """Tell whether a secret was concealed in a text."""
    return _MARK in text


def marker(kind: str) -> str:
    """Return what stands for a secret of a kind."""
    return f"{_MARK}{kind}]"


def secrets_in(text: str) -> list[Found]:
    """Return where the secrets of a text stand, in order; those that overlap are one."""
    lowered = text.replace(_LONGER, "i").lower()
    every = [
        *blocks_in(text),
        *keys_in(text),
        *addresses_in(text),
        *headers_in(text, lowered),
        *key_headers_in(text, lowered),
        *commands_in(text, lowered),
        *cookies_in(text, lowered),
        *encoded_in(text, lowered),
        *assignments_in(text, lowered),
    ]
    return list(_joined(every)) if every else []


def _joined(every: Iterable[Found]) -> Iterator[Found]:
    """Yield what was found, in order; of overlapping ones the first names the kind."""
    current: Found | None = None
    for found in sorted(every, key=lambda each: (each.start, -each.end)):
        if current is not None and found.start < current.end:
            current = Found(current.start, max(current.end, found.end), current.kind)
            continue
        if current is not None:
            yield current
        current = found
    if current is not None:
        yield current


def _pieces(text: str, found: Iterable[Found]) -> Iterator[str]:
    at = 0
    for secret in found:
        yield text[at : secret.start]
        yield marker(secret.kind)
        at = secret.end
    yield text[at:]
