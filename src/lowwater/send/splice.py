"""Changing a few fields of a JSON body while every other byte stays where it is."""

import re
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from lowwater.errors import BadInput

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},:]', re.DOTALL)
_BLANK = b" \t\r\n"


class Span(Struct, frozen=True, kw_only=True):
    """Where a value stands in a body."""

    start: int
    end: int


def spans_of(body: bytes) -> dict[str, Span]:
    """Return where the value of each field of a JSON object stands; the body must be JSON."""
    found: dict[str, Span] = {}
    depth, key, start = 0, "", -1
    for token in _TOKEN.finditer(body):
        sign = body[token.start()]
        if sign in b"{[":
            depth += 1
        elif sign in b"}]":
            depth -= 1
        if start < 0 and depth == 1 and sign in b'"':
            key = msgspec.json.decode(token.group(), type=str)
        elif depth == 1 and sign in b":":
            start = token.end()
        elif start >= 0 and (depth == 0 or (depth == 1 and sign in b",")):
            found[key] = _trimmed(body, start, token.start())
            start = -1
    return found


def with_fields(body: bytes, fields: Mapping[str, bytes]) -> bytes:
    """Return the body with other values for these fields; those it lacks come last."""
    spans = spans_of(body)
    edits = [(spans[name], value) for name, value in fields.items() if name in spans]
    changed = body
    for span, value in sorted(edits, key=lambda edit: -edit[0].start):
        changed = changed[: span.start] + value + changed[span.end :]
    new = [msgspec.json.encode(name) + b":" + value for name, value in fields.items() if name not in spans]
    if not new:
        return changed
    end = changed.rindex(b"}")
    return (
        changed[:end] + b"".join((b"," if spans or at else b"") + each for at, each in enumerate(new)) + b"}"
    )


def with_items(body: bytes, name: str, items: Sequence[bytes]) -> bytes:
    """Return the body with items added to the end of an array that is not empty."""
    span = spans_of(body).get(name)
    if span is None or body[span.start : span.start + 1] != b"[":
        raise BadInput(f"the body has no array `{name}`")
    return body[: span.end - 1] + b"".join(b"," + item for item in items) + body[span.end - 1 :]


def _trimmed(body: bytes, start: int, end: int) -> Span:
    value = body[start:end]
    return Span(start=end - len(value.lstrip(_BLANK)), end=start + len(value.rstrip(_BLANK)))
