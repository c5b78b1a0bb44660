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
"""Characters that the provider takes as instructions."""
_WITHOUT = MappingProxyType(
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
    """Return the body that has the provider compact what `riding` holds, or raise SummaryFailed if it cannot be asked to.

    Tools, system prompt, messages and thinking stay byte for byte what the conversation is sent with: the cache is read, and
    thinking behind the block stays good. A request that forces a tool call cannot be compacted.
    """
    riding = request.riding
    if riding is None or riding.format != "anthropic" or endpoint.format != "anthropic":
        raise SummaryFailed(
            f"{endpoint.model} cannot be asked for a block here: no request to compact", "refused"
        )
    sent = read_json(riding.body, _Sent)
    if forces_a_call(sent.tool_choice):
        raise SummaryFailed(
            "a request that forces a tool call cannot be compacted by the provider", "refused"
        )
    limit = output_limit(endpoint, request.max_tokens).tokens + thinking_tokens(sent.thinking)
    asked = {"type": "summarize", "instructions": instruction_for_block(request)[:MOST_INSTRUCTIONS]}
    return with_fields(
        riding.body,
        {
            "model": write_json(endpoint.model),
            "max_tokens": write_json(limit),
            "compaction": write_json(asked),
        },
    )


def block_written_in(raw: bytes, *, asked: str) -> Written:
    """Return the block in a provider's answer with what it says and what it cost, or raise SummaryFailed.

    The call is billed apart, in `usage.iterations`. An answer without a block says why in its stop reason.
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
    return f"{asked} {_WITHOUT.get(response.stop, 'answered without a block')}"


def _kind(stop: str) -> Literal["refused", "failed"]:
    return "refused" if stop in _DECLINED else "failed"
