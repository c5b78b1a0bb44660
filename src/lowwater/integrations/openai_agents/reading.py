"""Items of the Responses API to units: what the model put out at once is one unit, a tool's output another."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from agents import ModelResponse

from lowwater.core.api_calls import Usage
from lowwater.core.messages import Document, Format, ResultPart, Role, Text, Thinking, ToolCall, ToolResult
from lowwater.integrations.turn import Answered
from lowwater.integrations.units import Piece, Unit, picture_at, unit_of

Item: TypeAlias = Any
"""A dict that the SDK types as a union of some forty."""
Source: TypeAlias = tuple[Item, ...]

APART = 1_000
"""The position of a part: that of its item in the unit times this, and of its block within the item."""

_ROLES: dict[str, Role] = {"user": "user", "system": "system", "developer": "system"}


def units_of(items: Iterable[Item], format: Format) -> list[Unit[Source]]:
    """Return a conversation as units."""
    units: list[Unit[Source]] = []
    said: list[Item] = []
    for item in items:
        role = _role(item)
        if role == "assistant":
            said.append(item)
            continue
        if said:
            units.append(_said(said, format))
            said = []
        units.append(_heard(item, role, format))
    return [*units, _said(said, format)] if said else units


def answered(response: ModelResponse, format: Format) -> Answered:
    """Return an answer with its usage, as the ledger gets it."""
    usage = response.usage
    read = usage.input_tokens_details.cached_tokens or 0
    written = getattr(usage.input_tokens_details, "cache_write_tokens", 0) or 0
    figures = Usage(
        uncached=max(0, usage.input_tokens - read - written),
        cache_read=read,
        cache_write=written,
        output=usage.output_tokens,
    )
    message = _said(response.to_input_items(), format).message
    return Answered(message=message, usage=figures if usage.input_tokens else None)


def blocks_of(item: Item) -> list[Any]:
    """Return what an item says as blocks; a text is one."""
    content = item.get("output") if item.get("type") == "function_call_output" else item.get("content")
    if content is None:
        return []
    return list(content) if isinstance(content, list) else [content]


def _role(item: Item) -> str:
    """Return who speaks: what the SDK holds without a role are calls of the model, and outputs of its tools."""
    kind = str(item.get("type") or "message")
    if kind == "message":
        return str(item.get("role", "user"))
    return "tool" if kind.endswith("_output") else "assistant"


def _heard(item: Item, role: str, format: Format) -> Unit[Source]:
    if role == "tool" and item.get("call_id"):
        parts = tuple(_part(block) for block in blocks_of(item)) or (_part(item),)
        result = ToolResult(call_id=item["call_id"], parts=parts)
        return unit_of((item,), "tool", [Piece(part=result)], format)
    pieces = [Piece(part=_part(block), at=(at,)) for at, block in enumerate(blocks_of(item))]
    return unit_of((item,), _ROLES.get(role, "user"), pieces, format)


def _said(items: Sequence[Item], format: Format) -> Unit[Source]:
    pieces = [piece for at, item in enumerate(items) for piece in _pieces(item, at * APART)]
    return unit_of(tuple(items), "assistant", pieces, format)


def _pieces(item: Item, at: int) -> Iterator[Piece]:
    match item.get("type"):
        case "reasoning":
            yield Piece(part=Thinking(text=_thought(item)), at=(at,))
        case "function_call":
            call = ToolCall(id=item["call_id"], name=item["name"], arguments=item["arguments"])
            yield Piece(part=call, at=(at,))
        case "message" | None:
            for within, block in enumerate(blocks_of(item)):
                yield Piece(part=_part(block), at=(at + within,))
        case kind if str(kind).endswith("_call") and item.get("call_id"):
            arguments = json.dumps(item, sort_keys=True, default=str)
            yield Piece(part=ToolCall(id=item["call_id"], name=str(kind), arguments=arguments), at=(at,))
        case _:
            yield Piece(part=_part(item), at=(at,))


def _thought(item: Mapping[str, Any]) -> str:
    """Return what can be read of the reasoning; what is encrypted has no size that anybody knows."""
    blocks = [*(item.get("summary") or ()), *(item.get("content") or ())]
    return "\n".join(str(block.get("text", "")) for block in blocks if isinstance(block, dict))


def _part(block: Any) -> ResultPart:  # noqa: ANN401 - whatever the API knows
    match block:
        case str():
            return Text(text=block)
        case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
            return Text(text=text)
        case {"type": "refusal", "refusal": str(text)}:
            return Text(text=text)
        case {"type": "input_image", "image_url": str(url)}:
            return picture_at(url)
        case {"type": "input_file", "file_data": str(data)}:
            told = picture_at(data)
            return Document(source="base64", data=told.data, media_type=told.media_type or "application/pdf")
        case _:
            return Text(text=json.dumps(block, sort_keys=True, default=str))
