"""A response that failed or was cancelled: what went wrong, and what it consumed all the same."""

from typing import Any

from msgspec import Raw, Struct

from lowwater.values.usage import Usage
from lowwater.wire.openai_responses.usage import decode_usage
from lowwater.wire.reading import read_json

_NULL = Raw(b"null")
_ENDS = frozenset({"failed", "cancelled"})


class Failed(Struct, frozen=True, kw_only=True):
    """The provider's code, a colon, and its words; and the usage, None if it told none."""

    said: str
    usage: Usage | None


class _Error(Struct):
    code: Any = None
    message: str | None = None


class _Response(Struct):
    status: Any = None
    error: _Error | None = None
    usage: Raw = _NULL


def failed_in(raw: bytes) -> Failed | None:
    """Return what became of a response without an answer; None for any other body. Raises BadInput for what is no JSON object."""
    response = read_json(raw, _Response)
    if response.status not in _ENDS:
        return None
    error, usage = response.error or _Error(), bytes(response.usage)
    return Failed(
        said=f"{error.code or 'error'}: {error.message or ''}",
        usage=None if usage == b"null" else decode_usage(usage),
    )
