"""Anthropic usage: bytes to values."""

from typing import Any

from msgspec import Struct

from lowwater.values.usage import Usage, together
from lowwater.wire.usage import Report, Tokens, is_standard, read_usage

_OWN = frozenset({"message", "fallback_message"})
"""Iterations of the answer itself: the figures around them are their sum."""
_APART = frozenset({"compaction", "advisor_message"})
"""Iterations that are billed beside the figures around them."""
_AT_LIST_PRICE = frozenset({"message", "compaction"})
"""Iterations of the model that was asked; any other type was billed as another model is, or nobody knows how."""


class _Writes(Struct):
    ephemeral_5m_input_tokens: Tokens = None
    ephemeral_1h_input_tokens: Tokens = None


class _Figures(Struct):
    type: str = ""
    input_tokens: Tokens = None
    output_tokens: Tokens = None
    cache_read_input_tokens: Tokens = None
    cache_creation_input_tokens: Tokens = None
    cache_creation: _Writes | None = None


class _Usage(_Figures):
    iterations: list[_Figures] | None = None
    service_tier: Any = None
    speed: Any = None
    inference_geo: Any = None


def decode_report(raw: bytes) -> Report:
    """Return what a response's `usage` object says was billed, or raise BadInput; what it leaves out is zero.

    A compaction on the provider's side and an advisor's answer stand in `iterations` only. The turns of the provider's
    own tools stand there and, summed, in the figures around them: where the sum is right, each is a call of its own and
    the last gave the answer; where it is not, the figures around them are one call.
    """
    usage = read_usage(raw, _Usage)
    steps, whole = usage.iterations or [], _figures(usage)
    own = [step for step in steps if step.type in _OWN]
    last = _figures(own[-1]) if own else whole
    split = bool(own) and together(map(_figures, own)) == whole
    apart = _OWN | _APART if split else _APART
    others = [_figures(step) for step in steps if step.type in apart and not (split and step is own[-1])]
    return Report(
        usage=last if split else whole,
        others=tuple(other for other in others if other != Usage()),
        list_price=is_standard(usage.service_tier, usage.speed, usage.inference_geo)
        and all(step.type in _AT_LIST_PRICE for step in steps),
        prompt=last.prompt,
        cache_told=usage.cache_read_input_tokens is not None or usage.cache_creation_input_tokens is not None,
    )


def decode_usage(raw: bytes) -> Usage:
    """Return what the call that gave the answer was billed, or raise BadInput; what `usage` leaves out is zero."""
    return decode_report(raw).usage


def _figures(step: _Figures) -> Usage:
    writes = step.cache_creation or _Writes()
    long = writes.ephemeral_1h_input_tokens or 0
    written = step.cache_creation_input_tokens or long + (writes.ephemeral_5m_input_tokens or 0)
    return Usage(
        uncached=step.input_tokens or 0,
        cache_read=step.cache_read_input_tokens or 0,
        cache_write=max(0, written - long),
        cache_write_long=long,
        output=step.output_tokens or 0,
    )
