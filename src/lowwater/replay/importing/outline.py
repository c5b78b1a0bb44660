"""The outline of a JSON value that may be cut short: its fields, or its items, each as the bytes it was written in."""

import re
from collections.abc import Iterator

from msgspec import Raw

from lowwater.core.strict_json import read_fields, read_json
from lowwater.errors import BadInput

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|["{}\[\],]', re.DOTALL)
_FIELD = re.compile(rb'\s*("(?:[^"\\]++|\\.)*+")\s*:', re.DOTALL)


def fields_in(data: bytes) -> dict[str, bytes]:
    """Return the fields of an object as far as they go; the value of the last one may be cut short."""
    if data.lstrip()[:1] != b"{":
        return {}
    try:
        return read_fields(data)
    except BadInput:
        return _first_fields(data)


def items_in(data: bytes) -> Iterator[bytes]:
    """Yield the items of an array as far as they go; the last one may be cut short."""
    if data.lstrip()[:1] != b"[":
        return
    try:
        whole = read_json(data, list[Raw])
    except BadInput:
        yield from _pieces(data)
    else:
        yield from map(bytes, whole)


def _first_fields(data: bytes) -> dict[str, bytes]:
    fields: dict[str, bytes] = {}
    for piece in _pieces(data):
        name = _FIELD.match(piece)
        if name is None:
            continue
        try:
            fields[read_json(name[1], str)] = piece[name.end() :].strip()
        except BadInput:
            continue
    return fields


def _pieces(data: bytes) -> Iterator[bytes]:
    depth, start = 0, len(data)
    for found in _TOKEN.finditer(data):
        token = found.group()
        if token == b'"':
            break  # a text without an end
        if token in b"{[":
            depth += 1
            start = found.end() if depth == 1 else start
        elif token in b"}]":
            depth -= 1
        if (token == b"," and depth == 1) or depth == 0:
            yield from _piece(data[start : found.start()])
            start = found.end()
        if depth == 0:
            return
    yield from _piece(data[start:])


def _piece(data: bytes) -> Iterator[bytes]:
    if piece := data.strip():
        yield piece
