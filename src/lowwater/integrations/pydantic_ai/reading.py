"""pydantic-ai's messages to units: a response is one unit, and so is each part of a request that a model sees."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    CachePoint,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage

from lowwater.core.api_calls import Usage
from lowwater.core.messages import (
    AnyPart,
    Document,
    Format,
    Image,
    ResultPart,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from lowwater.integrations.turn import Answered
from lowwater.integrations.units import Piece, Unit, picture_at, unit_of

_SPOKEN = frozenset({"system-prompt", "user-prompt", "retry-prompt", "retry-feedback"})


@dataclass(frozen=True, kw_only=True, eq=False)
class Source:
    """A response, or one part of a request."""

    message: ModelMessage
    at: int = -1
    """Which part of the request; -1 for a response."""


def units_of(messages: Sequence[ModelMessage], format: Format) -> list[Unit[Source]]:
    """Return a conversation as units; parts that no model sees (deltas of tools and settings) are none."""
    return [unit for message in messages for unit in _units(message, format)]


def answered(response: ModelResponse, format: Format) -> Answered:
    """Return an answer with its usage, as the ledger gets it."""
    return Answered(
        message=_answer(response, format).message,
        usage=_usage(response.usage) if response.usage.input_tokens else None,
        model=response.model_name or "",
        stop=response.finish_reason or "",
    )


def is_seen(part: ModelRequestPart) -> bool:
    """Return whether a part of a request is said to the model."""
    return _is_result(part) or part.part_kind in _SPOKEN


def items_of(part: Any) -> list[Any]:  # noqa: ANN401 - the parts of a request have no common base
    """Return what a part of a request holds, one by one: texts, pictures, files."""
    if isinstance(part, ToolReturnPart):
        return list(part.content_items(mode="str", wrap_if_error=False))
    content = part.content
    if isinstance(content, str):
        return [content]
    return list(content) if isinstance(part, UserPromptPart) else [_told(content)]


def _units(message: ModelMessage, format: Format) -> Iterator[Unit[Source]]:
    if isinstance(message, ModelResponse):
        yield _answer(message, format)
        return
    for at, part in enumerate(message.parts):
        source = Source(message=message, at=at)
        if _is_result(part):
            yield unit_of(source, "tool", [Piece(part=_result(part))], format)
        elif is_seen(part):
            pieces = [
                Piece(part=_part(item), at=(within,))
                for within, item in enumerate(items_of(part))
                if not isinstance(item, CachePoint)
            ]
            yield unit_of(source, "system" if isinstance(part, SystemPromptPart) else "user", pieces, format)


def _answer(response: ModelResponse, format: Format) -> Unit[Source]:
    pieces = [Piece(part=_said(part), at=(at,)) for at, part in enumerate(response.parts)]
    return unit_of(Source(message=response), "assistant", pieces, format)


def _is_result(part: Any) -> bool:  # noqa: ANN401 - likewise
    """Return whether a part answers a call; one that asks to try again may do that too."""
    return isinstance(part, ToolReturnPart) or (
        part.part_kind == "retry-prompt" and part.tool_name is not None
    )


def _result(part: Any) -> ToolResult:  # noqa: ANN401 - likewise
    failed = getattr(part, "outcome", "retried") in {"failed", "retried"}
    return ToolResult(
        call_id=part.tool_call_id, parts=tuple(_part(item) for item in items_of(part)), is_error=failed
    )


def _said(part: Any) -> AnyPart:  # noqa: ANN401 - the parts of a response have no common base
    match part:
        case TextPart():
            return Text(text=part.content)
        case ThinkingPart():
            redacted = part.id == "redacted_thinking"
            return Thinking(text=part.content, signature=part.signature or "", redacted=redacted)
        case ToolCallPart():
            return ToolCall(id=part.tool_call_id, name=part.tool_name, arguments=part.args_as_json_str())
        case _:
            return Text(text=_told(part))


def _part(item: Any) -> ResultPart:  # noqa: ANN401 - whatever may stand in a prompt
    match item:
        case str():
            return Text(text=item)
        case TextContent():
            return Text(text=item.content)
        case ImageUrl():
            return picture_at(item.url)
        case BinaryContent() if item.is_image:
            return Image(source="base64", data=item.base64, media_type=item.media_type)
        case BinaryContent():
            return Document(source="base64", data=item.base64, media_type=item.media_type)
        case _:
            return Text(text=_told(item))


def _told(value: object) -> str:
    """Return anything else as it is written down."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=repr)


def _usage(usage: RequestUsage) -> Usage:
    """Return the figures taken apart: the input counts what was read from the cache and written to it too."""
    read, written = usage.cache_read_tokens, usage.cache_write_tokens
    return Usage(
        uncached=max(0, usage.input_tokens - read - written),
        cache_read=read,
        cache_write=written,
        output=usage.output_tokens,
    )


def riders_of(message: ModelRequest) -> list[ModelRequestPart]:
    """Return the parts of a request that no model sees, and that have to come along all the same."""
    return [part for part in message.parts if not is_seen(part)]
