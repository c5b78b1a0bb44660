"""What a provider says when a prompt is too long, and why its cache was missed."""

import re
from typing import TypeVar

from msgspec import Struct

from lowwater.core.strict_json import read_json
from lowwater.errors import BadInput

_NUMBER = r"([\d,]+)"
_SAYINGS = (
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
_WORDS = re.compile(
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
_IMAGES = re.compile(
    r"many-image requests"  # Anthropic: more than twenty images, of which one is above 2000 pixels
    r"|(?:too many|maximum (?:number )?of|at most|exceeds? .{0,30}limit of) (?:[\d,]+ )?images?\b"
    r"|image.{0,40}(?:count|number).{0,20}exceeds?"
    r"|image dimensions? exceeds?",
    re.IGNORECASE,
)
_PER_MINUTE = re.compile(r"per[ -](?:minute|day|hour)|\b[TR]P[MD]\b|rate[ _]limit", re.IGNORECASE)
_NOT_THE_PROMPT = frozenset({401, 402, 403, 404, 408, 429})
_LOOKED_AT = 8_000


def context_length_in(text: str) -> int | None:
    """Return the context length that an error names, or None if it names none."""
    for saying in _SAYINGS:
        found = saying.search(text)
        if found:
            return int(found["limit"].replace(",", "")) or None
    return None


def is_overflow(status: int, body: bytes) -> bool:
    """Return whether an answer with this status refuses the prompt because it is too long for the model.

    What a limit per minute refuses is no such thing, although it speaks of tokens too: waiting helps there.
    """
    if status < 400 or status in _NOT_THE_PROMPT:
        return False
    said = body[:_LOOKED_AT].decode(errors="replace")
    if _PER_MINUTE.search(said):
        return False
    return bool(_CODES.search(said) or _WORDS.search(said) or context_length_in(said) is not None)


def refuses_images(said: str) -> bool:
    """Return whether an error refuses a request for the number or the size of its images."""
    return bool(_IMAGES.search(said[:_LOOKED_AT])) and not _PER_MINUTE.search(said[:_LOOKED_AT])


def is_image_refusal(status: int, body: bytes) -> bool:
    """Return whether an answer with this status refuses the request for the number or the size of its images."""
    if status < 400 or status in _NOT_THE_PROMPT:
        return False
    return refuses_images(body[:_LOOKED_AT].decode(errors="replace"))


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
