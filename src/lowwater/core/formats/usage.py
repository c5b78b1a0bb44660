"""The token usage that a provider reports with an answer: decoding it, and writing it as Anthropic does."""

from typing import Annotated, Any, TypeVar

from msgspec import Meta, Raw, Struct

from lowwater.core.api_calls import Usage, together
from lowwater.core.strict_json import read_json
from lowwater.errors import BadInput, UnreadableJson

T = TypeVar("T")
_MOST_TOKENS = 10**12
"""A larger figure is an error in the report."""
Tokens = Annotated[int, Meta(ge=0, le=_MOST_TOKENS)] | None
"""A reported figure: absent, null, or a plausible number of tokens."""
_NULL = Raw(b"null")
_STANDARD_VALUES = ("", "standard", "default", "auto", "on_demand", "global", "not_available")
"""Values of the service tier, speed and region that are billed at list price."""
_ANSWERING = frozenset({"message", "fallback_message"})
"""Types of iterations that produced the answer; the top-level figures are their sum."""
_BILLED_BESIDE = frozenset({"compaction", "advisor_message"})
"""Types of iterations that are billed in addition to the top-level figures."""
_AT_LIST_PRICE = frozenset({"message", "compaction"})
"""Types of iterations by the requested model; others are billed at another model's prices, or at unknown ones."""


class UsageReport(Struct, frozen=True, kw_only=True):
    """What one request consumed: the call that gave the answer, and other calls that the provider made for it."""

    usage: Usage
    others: tuple[Usage, ...] = ()
    list_price: bool = True
    """Whether everything was billed at the list price of the requested model."""
    prompt: int = 0
    """The size of the prompt in tokens, of the call that gave the answer."""
    reports_cache: bool = True
    """Whether the report says how much was read from the cache, even if that is 0."""
    splits_writes: bool = True
    """Whether it says for which lifetime each part was written."""
    unread: tuple[str, ...] = ()
    """The service tier, speed or region, if it is no text; then nobody knows whether the call was billed at list price."""


class _AnthropicWrites(Struct):
    ephemeral_5m_input_tokens: Tokens = None
    ephemeral_1h_input_tokens: Tokens = None


class _StepUsage(Struct):
    type: str = ""
    input_tokens: Tokens = None
    output_tokens: Tokens = None
    cache_read_input_tokens: Tokens = None
    cache_creation_input_tokens: Tokens = None
    cache_creation: _AnthropicWrites | None = None


class _AnthropicUsage(_StepUsage):
    iterations: list[_StepUsage] | None = None
    service_tier: Raw = _NULL
    speed: Raw = _NULL
    inference_geo: Raw = _NULL


class _OpenAIWrites(Struct):
    ttl_12h_tokens: Tokens = None


class _Details(Struct):
    cached_tokens: Tokens = None
    cache_write_tokens: Tokens = None
    cache_creation_input_tokens: Tokens = None  # Qwen
    cache_write_tokens_details: _OpenAIWrites | None = None


class _OpenAIUsage(Struct):
    prompt_tokens: Tokens = None
    completion_tokens: Tokens = None
    prompt_tokens_details: _Details | None = None
    # The Responses format; `cached_input_tokens` is how Codex records it.
    input_tokens: Tokens = None
    output_tokens: Tokens = None
    input_tokens_details: _Details | None = None
    cached_input_tokens: Tokens = None
    # DeepSeek and Kimi.
    prompt_cache_hit_tokens: Tokens = None
    prompt_cache_miss_tokens: Tokens = None
    cached_tokens: Tokens = None


def decode_anthropic_report(raw: bytes) -> UsageReport:
    """Return what an answer's `usage` object says was billed, or raise BadInput; missing figures are 0.

    A server-side compaction and an advisor's answer are in `iterations` only. The iterations of server-side tools are
    there too, and the top-level figures are their sum: if the sum is right, each iteration is a call and the last one
    gave the answer; if not, the top-level figures count as one call.
    """
    usage = _read_usage(raw, _AnthropicUsage)
    steps, whole = usage.iterations or [], _step_usage(usage)
    own = [step for step in steps if step.type in _ANSWERING]
    last = _step_usage(own[-1]) if own else whole
    split = bool(own) and together(map(_step_usage, own)) == whole
    apart = _ANSWERING | _BILLED_BESIDE if split else _BILLED_BESIDE
    others = [_step_usage(step) for step in steps if step.type in apart and not (split and step is own[-1])]
    billing = {name: bytes(getattr(usage, name)) for name in ("service_tier", "speed", "inference_geo")}
    return UsageReport(
        usage=last if split else whole,
        others=tuple(other for other in others if other != Usage()),
        list_price=all(map(_is_standard, billing.values()))
        and all(step.type in _AT_LIST_PRICE for step in steps),
        prompt=last.prompt,
        reports_cache=usage.cache_read_input_tokens is not None
        or usage.cache_creation_input_tokens is not None,
        splits_writes=usage.cache_creation is not None,
        unread=tuple(name for name, raw in billing.items() if not _is_text(raw)),
    )


def decode_anthropic_usage(raw: bytes) -> Usage:
    """Return the usage of the call that gave the answer, or raise BadInput; missing figures are 0."""
    return decode_anthropic_report(raw).usage


def _step_usage(step: _StepUsage) -> Usage:
    writes = step.cache_creation or _AnthropicWrites()
    long = writes.ephemeral_1h_input_tokens or 0
    written = step.cache_creation_input_tokens or long + (writes.ephemeral_5m_input_tokens or 0)
    return Usage(
        uncached=step.input_tokens or 0,
        cache_read=step.cache_read_input_tokens or 0,
        cache_write=max(0, written - long),
        cache_write_long=long,
        output=step.output_tokens or 0,
    )


def decode_openai_report(raw: bytes, *, tier: bytes = b"null") -> UsageReport:
    """Return what one request was billed at a service tier, given as JSON, or raise BadInput; it is always one call."""
    usage = decode_openai_usage(raw)
    return UsageReport(
        usage=usage,
        list_price=_is_standard(tier),
        prompt=usage.prompt,
        reports_cache=_reports_cache(_read_usage(raw, _OpenAIUsage)),
        splits_writes=_splits_writes(_read_usage(raw, _OpenAIUsage)),
        unread=() if _is_text(tier) else ("service_tier",),
    )


def decode_openai_usage(raw: bytes) -> Usage:
    """Return what an answer's `usage` object says was billed, or raise BadInput; missing figures are 0.

    OpenAI's prompt tokens include cache reads and writes; `Usage.uncached` does not.
    """
    usage = _read_usage(raw, _OpenAIUsage)
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


def _reports_cache(usage: _OpenAIUsage) -> bool:
    details = usage.prompt_tokens_details or usage.input_tokens_details or _Details()
    figures = (
        details.cached_tokens,
        usage.prompt_cache_hit_tokens,
        usage.prompt_cache_miss_tokens,
        usage.cached_input_tokens,
        usage.cached_tokens,
    )
    return any(figure is not None for figure in figures)


def _splits_writes(usage: _OpenAIUsage) -> bool:
    details = usage.prompt_tokens_details or usage.input_tokens_details or _Details()
    return details.cache_write_tokens_details is not None


def _long_writes(details: _Details) -> int:
    split = details.cache_write_tokens_details
    return (split.ttl_12h_tokens or 0) if split else 0


def _is_standard(raw: bytes) -> bool:
    """Return whether this tier, speed or region is billed at list price; one that is no text may not be."""
    return raw == b"null" or (_is_text(raw) and read_json(raw, str) in _STANDARD_VALUES)


def _is_text(raw: bytes) -> bool:
    return raw == b"null" or raw[:1] == b'"'


def _read_usage(raw: bytes, kind: type[T]) -> T:
    """Return `raw` as `kind`, or raise BadInput; no usage at all gives an empty `kind`."""
    if raw.strip() in (b"", b"null"):
        return kind()
    try:
        return read_json(raw, kind)
    except UnreadableJson as error:
        raise UnreadableJson(f"the usage cannot be read: {error}") from None
    except BadInput as error:
        raise BadInput(f"the usage cannot be read: {error}") from None


def anthropic_usage_fields(usage: Usage) -> dict[str, Any]:
    """Return a usage in the form of the Messages API."""
    return {
        "input_tokens": usage.uncached,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write + usage.cache_write_long,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write,
            "ephemeral_1h_input_tokens": usage.cache_write_long,
        },
        "output_tokens": usage.output,
    }
