"""Anthropic usage: bytes to values."""

from msgspec import Struct

from lowwater.values.usage import Usage
from lowwater.wire.usage import Tokens, read_usage


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


def decode_usage(raw: bytes) -> Usage:
    """Return what a response's `usage` object says was billed, or raise BadInput; what it leaves out is zero.

    A compaction on the provider's side is billed too, but stands in `iterations` only: it is added. All other iterations
    are parts of the figures around them.
    """
    usage = read_usage(raw, _Usage)
    billed = [usage, *(step for step in usage.iterations or () if step.type == "compaction")]
    each = [_figures(step) for step in billed]
    return Usage(
        uncached=sum(figures.uncached for figures in each),
        cache_read=sum(figures.cache_read for figures in each),
        cache_write=sum(figures.cache_write for figures in each),
        cache_write_long=sum(figures.cache_write_long for figures in each),
        output=sum(figures.output for figures in each),
    )


def decode_prompt(raw: bytes) -> int:
    """Return the size of the prompt that gave the answer, or raise BadInput.

    It differs from what was billed where the provider went through several iterations: the last one counts that is no
    compaction.
    """
    usage = read_usage(raw, _Usage)
    steps = [step for step in usage.iterations or () if step.type in ("message", "fallback_message")]
    return _figures(steps[-1] if steps else usage).prompt


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
