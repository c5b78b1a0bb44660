"""Reading the `usage` object of a response, whatever the format's names for its figures."""

from typing import Annotated, TypeVar

from msgspec import Meta

from lowwater.errors import BadInput, UnreadableJson
from lowwater.wire.reading import read_json

T = TypeVar("T")

Tokens = Annotated[int, Meta(ge=0)] | None
"""A figure as providers report it: absent, null, or a number that is not below zero."""


def read_usage(raw: bytes, kind: type[T]) -> T:
    """Return `raw` as `kind`, which is empty for no usage at all, or raise BadInput."""
    if raw.strip() in (b"", b"null"):
        return kind()
    try:
        return read_json(raw, kind)
    except UnreadableJson as error:
        raise UnreadableJson(f"the usage cannot be read: {error}") from None
    except BadInput as error:
        raise BadInput(f"the usage cannot be read: {error}") from None
