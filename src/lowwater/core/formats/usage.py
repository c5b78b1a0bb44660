"""Reading the usage that a provider reports, in every format."""

from typing import Annotated, Any, TypeVar

from msgspec import Meta, Struct

from lowwater.core.api_calls import Usage, together
from lowwater.core.strict_json import read_json
from lowwater.errors import BadInput, UnreadableJson

T = TypeVar("T")

LARGEST = 10**12
"""No call has this many tokens; whatever says so is broken."""
Tokens = Annotated[int, Meta(ge=0, le=LARGEST)] | None
"""A figure as providers report it: absent, null, or a whole number that a call can have."""

_STANDARD = (None, "", "standard", "default", "auto", "on_demand", "global", "not_available")
"""Words for the tier, the speed and the region that a price list is for."""


class Report(Struct, frozen=True, kw_only=True):
    """What one request consumed: the call that gave the answer, and those the provider made beside it."""

    usage: Usage
    others: tuple[Usage, ...] = ()
    list_price: bool = True
    """Whether all of it was billed at the prices of the model that was asked."""
    prompt: int = 0
    """The size of the prompt that gave the answer."""
    cache_told: bool = True
    """Whether it says how much was read from the cache, be it nothing."""


def is_standard(*words: object) -> bool:
    """Return whether a tier, speed or region, as the provider calls it, is billed as the price list says."""
    return all(word in _STANDARD for word in words)


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


def decode_anthropic_report(raw: bytes) -> Report:
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


def decode_anthropic_usage(raw: bytes) -> Usage:
    """Return what the call that gave the answer was billed, or raise BadInput; what `usage` leaves out is zero."""
    return decode_anthropic_report(raw).usage


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


class _OpenAIWrites(Struct):
    ttl_12h_tokens: Tokens = None


class _Details(Struct):
    cached_tokens: Tokens = None
    cache_write_tokens: Tokens = None
    cache_creation_input_tokens: Tokens = None  # Qwen's name for it
    cache_write_tokens_details: _OpenAIWrites | None = None


class _OpenAIUsage(Struct):
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


def decode_openai_report(raw: bytes, *, tier: object = None) -> Report:
    """Return what one request was billed at a service tier, or raise BadInput; it is always a single call."""
    usage = decode_openai_usage(raw)
    return Report(
        usage=usage,
        list_price=is_standard(tier),
        prompt=usage.prompt,
        cache_told=_tells_of_cache(read_usage(raw, _OpenAIUsage)),
    )


def decode_openai_usage(raw: bytes) -> Usage:
    """Return what a response's `usage` object says was billed, or raise BadInput; what it leaves out is zero.

    The reported prompt includes what was read from the cache and written to it; here they are taken apart.
    """
    usage = read_usage(raw, _OpenAIUsage)
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


def _tells_of_cache(usage: _OpenAIUsage) -> bool:
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
