"""Reading providers' errors about prompts that are too long or have too many images, and their reasons for cache misses."""

import re
from typing import TypeVar

from msgspec import Struct

from lowwater.core.strict_json import read_json
from lowwater.errors import BadInput

T = TypeVar("T")


# Prompts that are too long, and too many images

_NUMBER = r"([\d,]+)"
_LIMITS = (
    re.compile(rf"prompt is too long: {_NUMBER} tokens > (?P<limit>[\d,]+) maximum"),  # Anthropic, Bedrock
    re.compile(rf"exceed context limit: {_NUMBER} \+ {_NUMBER} > (?P<limit>[\d,]+)"),  # Anthropic
    re.compile(
        r"maximum (?:context|model|prompt) length (?:is|of) (?P<limit>[\d,]+)"
    ),  # OpenAI, vLLM, OpenRouter, xAI
    re.compile(r"maximum number of tokens allowed \((?P<limit>[\d,]+)\)"),  # Gemini
    re.compile(r"available context size \((?P<limit>[\d,]+)"),  # llama.cpp
    re.compile(r"with (?P<limit>[\d,]+) maximum context length"),  # Mistral
    re.compile(r"exceeded model token limit: (?P<limit>[\d,]+)"),  # Kimi
    re.compile(r"[Rr]ange of input length should be \[\d+, ?(?P<limit>[\d,]+)\]"),  # Qwen
    re.compile(r"prompt token count of [\d,]+ exceeds the limit of (?P<limit>[\d,]+)"),  # Copilot
    re.compile(r"tokens \+ .{0,20}must be <= (?P<limit>[\d,]+)"),  # text-generation-inference, Together
    re.compile(r"context length of only (?P<limit>[\d,]+)"),  # LM Studio
    re.compile(r'"n_ctx": ?(?P<limit>[\d,]+)'),  # llama.cpp
)
_CODES = re.compile(
    r'"(?:context_length_exceeded|exceed_context_size_error|request_too_large|model_max_prompt_tokens_exceeded'
    r'|context_window_exceeded)"'
)
_PHRASES = re.compile(
    r"exceeds? (?:the |your |this )?(?:model'?s? )?(?:context (?:window|length|size|limit)|available context)"
    r"|input is too long for (?:the )?requested model"  # Bedrock
    r"|prompt is too long"
    r"|input token count .{0,40}exceeds the maximum"
    r"|longer than the (?:maximum )?(?:model|context) length"
    r"|too large for model with [\d,]+ maximum context"
    r"|prompt exceeds max length"  # GLM
    r"|context[ _]window[ _]exceeded|ContextWindowExceeded"
    r"|(?:reduce|shorten) the length of the (?:messages|prompt|input)"
    r"|tokens? (?:limit|count) exceeded the context"
    r"|tokens \+ .{0,20}must be <="  # text-generation-inference, Together
    r"|context length of only",  # LM Studio
    re.IGNORECASE,
)
_IMAGE_LIMIT = re.compile(
    r"many-image requests"  # Anthropic: more than twenty images, of which one is above 2000 pixels
    r"|(?:too many|maximum (?:number )?of|at most|exceeds? .{0,30}limit of) (?:[\d,]+ )?images?\b"
    r"|image.{0,40}(?:count|number).{0,20}exceeds?"
    r"|image dimensions? exceeds?",
    re.IGNORECASE,
)
_RATE_LIMIT = re.compile(r"per[ -](?:minute|day|hour)|\b[TR]P[MD]\b|rate[ _]limit", re.IGNORECASE)
# Statuses with another meaning: authentication, payment, not found, timeout, rate limit.
_OTHER_STATUSES = frozenset({401, 402, 403, 404, 408, 429})
_READ_BYTES = 8_000


def context_length_in(text: str) -> int | None:
    """Return the context length that an error names, or None if it names none."""
    for pattern in _LIMITS:
        found = pattern.search(text)
        if found:
            return int(found["limit"].replace(",", "")) or None
    return None


def is_overflow(status: int, body: bytes) -> bool:
    """Return whether a response with this status refuses the prompt because it is too long for the model.

    Rate limits mention tokens too but do not count: there, waiting helps.
    """
    if status < 400 or status in _OTHER_STATUSES:
        return False
    text = body[:_READ_BYTES].decode(errors="replace")
    if _RATE_LIMIT.search(text):
        return False
    return bool(_CODES.search(text) or _PHRASES.search(text) or context_length_in(text) is not None)


def refuses_images(text: str) -> bool:
    """Return whether an error refuses a request because of the number or size of its images."""
    return bool(_IMAGE_LIMIT.search(text[:_READ_BYTES])) and not _RATE_LIMIT.search(text[:_READ_BYTES])


def is_image_refusal(status: int, body: bytes) -> bool:
    """Return whether a response with this status refuses the request because of the number or size of its images."""
    if status < 400 or status in _OTHER_STATUSES:
        return False
    return refuses_images(body[:_READ_BYTES].decode(errors="replace"))


# Reasons for cache misses

_NO_REASON = frozenset({"previous_message_not_found", "unavailable"})
"""Values of `cache_miss_reason.type` that give no reason."""


class _Reason(Struct):
    type: str = ""


class _Diagnostics(Struct):
    cache_miss_reason: _Reason | None = None


class _Comparison(Struct):
    type: str = ""
    reason: str | None = None


def anthropic_miss_reason(diagnostics: bytes) -> str:
    """Return the type of `diagnostics.cache_miss_reason`; empty if the API has found none, or none yet."""
    found = _read_or_none(diagnostics, _Diagnostics)
    kind = found.cache_miss_reason.type if found and found.cache_miss_reason else ""
    return "" if kind in _NO_REASON else kind


def openai_miss_reason(diagnostics: bytes) -> str:
    """Return the reason in `prompt_cache_diagnostics`; empty for a hit, or if the API had nothing to compare with."""
    found = _read_or_none(diagnostics, _Comparison)
    return found.reason or "" if found and found.type == "cache_miss" else ""


def _read_or_none(raw: bytes, kind: type[T]) -> T | None:
    """Return the diagnostics, None if they cannot be read: that must not lose an answer."""
    try:
        return read_json(raw, kind)
    except BadInput:
        return None
