"""Why a provider's cache was missed, where the request asked it to say so."""

from typing import TypeVar

from msgspec import Struct

from lowwater.errors import BadInput
from lowwater.wire.reading import read_json

_NO_REASON = frozenset({"previous_message_not_found", "unavailable"})
"""Types of a reason that say there is none to be had."""

T = TypeVar("T")


class _Reason(Struct):
    type: str = ""


class _Diagnostics(Struct):
    cache_miss_reason: _Reason | None = None


class _Comparison(Struct):
    type: str = ""
    reason: str | None = None


def anthropic_reason(diagnostics: bytes) -> str:
    """Return the type of `diagnostics.cache_miss_reason`; empty if none was found, or not yet."""
    told = _read(diagnostics, _Diagnostics)
    kind = told.cache_miss_reason.type if told and told.cache_miss_reason else ""
    return "" if kind in _NO_REASON else kind


def openai_reason(diagnostics: bytes) -> str:
    """Return the reason in `prompt_cache_diagnostics`; empty for a hit, or if there was nothing to compare with."""
    told = _read(diagnostics, _Comparison)
    return told.reason or "" if told and told.type == "cache_miss" else ""


def _read(raw: bytes, kind: type[T]) -> T | None:
    """Return what was diagnosed; an answer is worth keeping even if that cannot be read."""
    try:
        return read_json(raw, kind)
    except BadInput:
        return None
