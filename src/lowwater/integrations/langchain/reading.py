"""LangChain's messages to units: one message, one unit; positions are those of content blocks."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from lowwater.core.api_calls import Usage
from lowwater.core.messages import (
    Document,
    Format,
    Image,
    ResultPart,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from lowwater.errors import BadInput
from lowwater.integrations.turn import Answered
from lowwater.integrations.units import Piece, Unit, picture_at, unit_of

OUTSIDE = -1
"""The position of reasoning that stands beside the content, in `additional_kwargs`."""

CALLS = frozenset({"tool_use", "tool_call", "tool_call_chunk", "function_call", "invalid_tool_call"})
"""The kinds of blocks that repeat a call of the message in its provider's form."""
_ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}


def units_of(messages: Sequence[AnyMessage], format: Format) -> list[Unit[BaseMessage]]:
    """Return a conversation as units."""
    return [_unit(message, format) for message in messages]


def answered(message: AIMessage, format: Format) -> Answered:
    """Return an answer with its usage, as the ledger gets it."""
    told = message.response_metadata
    usage = message.usage_metadata
    details: Mapping[str, Any] = {} if usage is None else dict(usage.get("input_token_details") or {})
    return Answered(
        message=_unit(message, format).message,
        usage=None if usage is None else _usage(usage, details),
        cache_told=any(name.endswith("cache_read") for name in details),
        model=str(told.get("model_name") or told.get("model") or ""),
        stop=str(told.get("finish_reason") or told.get("stop_reason") or ""),
    )


def _unit(message: BaseMessage, format: Format) -> Unit[BaseMessage]:
    match message:
        case AIMessage():
            return unit_of(message, "assistant", _of_assistant(message), format)
        case ToolMessage():
            result = ToolResult(
                call_id=message.tool_call_id,
                parts=tuple(_part(block) for block in blocks_of(message)),
                is_error=message.status == "error",
            )
            return unit_of(message, "tool", [Piece(part=result)], format)
        case HumanMessage():
            return unit_of(message, "user", _pieces(message), format)
        case SystemMessage():
            return unit_of(message, "system", _pieces(message), format)
        case ChatMessage(role=role) if role in _ROLES:
            return unit_of(message, _ROLES[role], _pieces(message), format)
    raise BadInput(
        f"a {type(message).__name__} is no message that a model is sent: leave it out of the state"
    )


def blocks_of(message: BaseMessage) -> list[Any]:
    """Return the content of a message as blocks; a text is one."""
    content = message.content
    return [content] if isinstance(content, str) else list(content)


def _pieces(message: BaseMessage) -> Iterator[Piece]:
    for at, block in enumerate(blocks_of(message)):
        yield Piece(part=_part(block), at=(at,))


def _of_assistant(message: AIMessage) -> Iterator[Piece]:
    beside = message.additional_kwargs.get("reasoning_content")
    if isinstance(beside, str) and beside:
        yield Piece(part=Thinking(text=beside), at=(OUTSIDE,))
    for at, block in enumerate(blocks_of(message)):
        kind = block.get("type") if isinstance(block, dict) else ""
        if kind in CALLS:
            continue
        thought = _thought(block, str(kind)) if kind else None
        yield Piece(part=_part(block) if thought is None else thought, at=(at,))
    for call in message.tool_calls:
        arguments = json.dumps(call["args"])
        yield Piece(part=ToolCall(id=call["id"] or "", name=call["name"], arguments=arguments))
    for broken in message.invalid_tool_calls:
        said = ToolCall(id=broken["id"] or "", name=broken["name"] or "", arguments=broken["args"] or "")
        yield Piece(part=said)


def _thought(block: Mapping[str, Any], kind: str) -> Thinking | None:
    """Return a block of thinking, in a provider's form or in LangChain's own."""
    match kind:
        case "thinking":
            return Thinking(text=str(block.get("thinking", "")), signature=str(block.get("signature") or ""))
        case "redacted_thinking":
            return Thinking(text="", signature=str(block.get("data", "")), redacted=True)
        case "reasoning" | "reasoning_content":
            extras = block.get("extras") or {}
            said = block.get("reasoning") or block.get("summary") or block.get("reasoning_content") or ""
            text = said if isinstance(said, str) else json.dumps(said)
            return Thinking(text=text, signature=str(extras.get("signature") or ""))
    return None


def _part(block: Any) -> ResultPart:  # noqa: ANN401 - whatever a provider's package puts there
    """Return a block that is no thinking and no call; one of another kind counts as its JSON."""
    match block:
        case str():
            return Text(text=block)
        case {"type": "text", "text": str(text)}:
            return Text(text=text)
        case {"type": "image_url", "image_url": {"url": str(url)} | str(url)}:
            return picture_at(url)
        case {"type": "image", "base64": str(data)} | {"type": "image", "source": {"data": str(data)}}:
            return Image(source="base64", data=data, media_type=_media_type(block))
        case {"type": "image", "url": str(url)} | {"type": "image", "source": {"url": str(url)}}:
            return picture_at(url)
        case {"type": "file", "base64": str(data)} | {"type": "document", "source": {"data": str(data)}}:
            return Document(source="base64", data=data, media_type=_media_type(block))
        case _:
            return Text(text=json.dumps(block, sort_keys=True, default=str))


def _media_type(block: Mapping[Any, Any]) -> str:
    source = block.get("source")
    told = source.get("media_type") if isinstance(source, dict) else block.get("mime_type")
    return str(told or "image/png")


def _usage(usage: Mapping[str, Any], details: Mapping[str, Any]) -> Usage:
    """Return LangChain's figures, whose input counts what was read and written too, taken apart."""
    tokens = {name: value or 0 for name, value in details.items()}
    read = next((value for name, value in tokens.items() if name.endswith("cache_read")), 0)
    long = tokens.get("ephemeral_1h_input_tokens", 0)
    written = next((value for name, value in tokens.items() if name.endswith("cache_creation")), 0)
    written += tokens.get("ephemeral_5m_input_tokens", 0)
    return Usage(
        uncached=max(0, usage["input_tokens"] - read - written - long),
        cache_read=read,
        cache_write=written,
        cache_write_long=long,
        output=usage["output_tokens"],
    )
