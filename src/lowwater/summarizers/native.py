"""Asking Anthropic to compact a conversation by itself, and reading the signed block it answers with."""

from types import MappingProxyType
from typing import Any, Literal

from msgspec import Struct

from lowwater.core.api_calls import Response, together
from lowwater.core.formats.codec import decode_response
from lowwater.core.messages import block_in, read_block
from lowwater.core.strict_json import read_json, write_json
from lowwater.core.summary.request import SummaryRequest, Written
from lowwater.errors import BadInput, SummaryFailed
from lowwater.summarizers.endpoint import Endpoint, output_limit
from lowwater.summarizers.requests import forces_a_call, instruction_for_block, thinking_tokens, with_fields

MOST_INSTRUCTIONS = 16_384
"""Characters that Anthropic takes as instructions."""
_REASONS_WITHOUT_BLOCK = MappingProxyType(
    {
        "max_tokens": "used up its length before the block was written",
        "model_context_window_exceeded": "has no room left to compact the conversation",
        "tool_use": "called a tool instead of compacting",
        "refusal": "declined to compact",
        "end_turn": "compacted into nothing",
    }
)
_DECLINED = frozenset({"refusal", "model_context_window_exceeded"})


class _Sent(Struct):
    tool_choice: Any = None
    thinking: Any = None


def native_body(request: SummaryRequest, endpoint: Endpoint) -> bytes:
    """Return the body that has the provider compact the request in `request.cached_prefix`, or raise SummaryFailed if it cannot.

    Tools, system prompt, messages and thinking stay byte for byte as the conversation is sent: the cache is read, and the
    thinking after the block stays valid. A request that forces a tool call cannot be compacted.
    """
    prefix = request.cached_prefix
    if prefix is None or prefix.format != "anthropic" or endpoint.format != "anthropic":
        raise SummaryFailed(
            f"{endpoint.model} cannot be asked for a block here: no request to compact", "refused"
        )
    sent = read_json(prefix.body, _Sent)
    if forces_a_call(sent.tool_choice):
        raise SummaryFailed(
            "a request that forces a tool call cannot be compacted by the provider", "refused"
        )
    limit = output_limit(endpoint, request.max_tokens).tokens + thinking_tokens(sent.thinking)
    asked = {"type": "summarize", "instructions": instruction_for_block(request)[:MOST_INSTRUCTIONS]}
    return with_fields(
        prefix.body,
        {
            "model": write_json(endpoint.model),
            "max_tokens": write_json(limit),
            "compaction": write_json(asked),
        },
    )


def block_written_in(raw: bytes, *, asked: str) -> Written:
    """Return the signed block in a provider's answer, with its text and its usage, or raise SummaryFailed.

    The compaction is billed separately, in `usage.iterations`. An answer without a block has the reason in `stop_reason`.
    """
    try:
        response = decode_response(raw)
    except BadInput:
        raise SummaryFailed(
            f"the answer of {asked} cannot be read: {len(raw):,} bytes of something else"
        ) from None
    spent = together(response.calls) if response.calls else None
    body = block_in(response.message)
    block = read_block(response.message.parts[0]) if body else None
    if response.stop != "compaction" or block is None or not (block.content or "").strip():
        raise SummaryFailed(_why_not(response, asked), _kind(response.stop), spent=spent)
    if not block.signature:
        raise SummaryFailed(f"{asked} answered with a block that is not signed", spent=spent)
    assert block.content is not None
    return Written(text=block.content, by=asked, usage=spent, model=response.model or asked, block=body)


def _why_not(response: Response, asked: str) -> str:
    return f"{asked} {_REASONS_WITHOUT_BLOCK.get(response.stop, 'answered without a block')}"


def _kind(stop: str) -> Literal["refused", "failed"]:
    return "refused" if stop in _DECLINED else "failed"
