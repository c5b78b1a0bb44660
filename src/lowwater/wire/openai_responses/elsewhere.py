"""Whether a Responses request is all of its conversation, or goes on with what the provider keeps."""

from collections.abc import Mapping

from msgspec import Raw

from lowwater.errors import BadInput
from lowwater.wire.openai_responses.items import Peek
from lowwater.wire.reading import read_json

_GOES_ON_WITH = ("previous_response_id", "conversation")
_REFERENCE = b"item_reference"


def is_elsewhere(fields: Mapping[str, bytes]) -> bool:
    """Return whether the request with these fields leaves (part of) its history to the provider's memory.

    Nobody else can shorten such a request, for nobody else sees what it is about.
    """
    if any(fields.get(name, b"null").strip() != b"null" for name in _GOES_ON_WITH):
        return True
    listed = fields.get("input", b"")
    return _REFERENCE in listed and any(map(_is_reference, _items(listed)))


def _items(listed: bytes) -> list[Raw]:
    try:
        return read_json(listed, list[Raw])
    except BadInput:
        return []


def _is_reference(raw: Raw) -> bool:
    try:
        item = read_json(bytes(raw), Peek)
    except BadInput:
        return False
    # The API takes an item that says nothing but an id for a reference.
    return item.type == "item_reference"
