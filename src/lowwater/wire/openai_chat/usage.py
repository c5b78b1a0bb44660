"""OpenAI usage, and that of those who speak its format: bytes to values."""

from msgspec import Struct

from lowwater.values.usage import Usage
from lowwater.wire.usage import Report, Tokens, is_standard, read_usage


class _Writes(Struct):
    ttl_12h_tokens: Tokens = None


class _Details(Struct):
    cached_tokens: Tokens = None
    cache_write_tokens: Tokens = None
    cache_creation_input_tokens: Tokens = None  # Qwen's name for it
    cache_write_tokens_details: _Writes | None = None


class _Usage(Struct):
    prompt_tokens: Tokens = None
    completion_tokens: Tokens = None
    prompt_tokens_details: _Details | None = None
    # The responses format, which Codex speaks, and how Codex writes it down.
    input_tokens: Tokens = None
    output_tokens: Tokens = None
    input_tokens_details: _Details | None = None
    cached_input_tokens: Tokens = None
    # DeepSeek and Kimi.
    prompt_cache_hit_tokens: Tokens = None
    prompt_cache_miss_tokens: Tokens = None
    cached_tokens: Tokens = None


def decode_report(raw: bytes, *, tier: object = None) -> Report:
    """Return what one request was billed at a service tier, or raise BadInput; it is always a single call."""
    usage = decode_usage(raw)
    return Report(
        usage=usage,
        list_price=is_standard(tier),
        prompt=usage.prompt,
        cache_told=_tells_of_cache(read_usage(raw, _Usage)),
    )


def decode_usage(raw: bytes) -> Usage:
    """Return what a response's `usage` object says was billed, or raise BadInput; what it leaves out is zero.

    The reported prompt includes what was read from the cache and written to it; here they are taken apart.
    """
    usage = read_usage(raw, _Usage)
    details = usage.prompt_tokens_details or usage.input_tokens_details or _Details()
    hit, miss = usage.prompt_cache_hit_tokens or 0, usage.prompt_cache_miss_tokens or 0
    prompt = usage.prompt_tokens or usage.input_tokens or hit + miss
    read = details.cached_tokens or hit or usage.cached_input_tokens or usage.cached_tokens or 0
    read = min(read, prompt)
    written = details.cache_write_tokens or details.cache_creation_input_tokens or 0
    written = min(written, prompt - read)
    long = min(_long_writes(details), written)
    return Usage(
        uncached=prompt - read - written,
        cache_read=read,
        cache_write=written - long,
        cache_write_long=long,
        output=usage.completion_tokens or usage.output_tokens or 0,
    )


def _tells_of_cache(usage: _Usage) -> bool:
    details = usage.prompt_tokens_details or usage.input_tokens_details or _Details()
    figures = (
        details.cached_tokens,
        usage.prompt_cache_hit_tokens,
        usage.prompt_cache_miss_tokens,
        usage.cached_input_tokens,
        usage.cached_tokens,
    )
    return any(figure is not None for figure in figures)


def _long_writes(details: _Details) -> int:
    split = details.cache_write_tokens_details
    return (split.ttl_12h_tokens or 0) if split else 0
