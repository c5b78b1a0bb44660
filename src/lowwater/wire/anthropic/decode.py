"""Anthropic messages: bytes to values."""

from collections.abc import Sequence
from typing import get_args

from msgspec import Raw, Struct

from lowwater.errors import BadInput, MalformedMessage
from lowwater.values.message import Message, Role, Wire
from lowwater.values.parts import (
    AnyPart,
    Document,
    Image,
    Opaque,
    ResultPart,
    Source,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from lowwater.wire.reading import extra_of, read_json

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}


class _Peek(Struct):
    role: str
    content: str | list[Raw]


class _Typed(Struct):
    type: str = ""


class _Text(Struct):
    text: str


class _Thinking(Struct):
    thinking: str = ""
    signature: str = ""


class _Redacted(Struct):
    data: str = ""


class _ToolUse(Struct):
    id: str
    name: str
    input: Raw = Raw(b"{}")


class _ToolResult(Struct):
    tool_use_id: str
    content: str | list[Raw] | None = None
    is_error: bool | None = None


class _Source(Struct):
    type: Source
    media_type: str = ""
    data: str = ""
    url: str = ""
    file_id: str = ""


class _Image(Struct):
    source: Raw


class _Document(Struct):
    source: Raw
    title: str | None = None


def decode_message(raw: bytes, index: int) -> Message:
    """Return the message in `raw`, the `index`-th of its list, or raise MalformedMessage."""
    try:
        return _decode(raw)
    except BadInput as error:
        raise MalformedMessage(index, str(error)) from None


def _decode(raw: bytes) -> Message:
    peek = read_json(raw, _Peek)
    role = _ROLES.get(peek.role)
    if role is None:
        raise BadInput(f"unknown role {peek.role[:40]!r}: expected user or assistant")
    parts: Sequence[AnyPart]
    if isinstance(peek.content, str):
        parts = (Text(text=peek.content),) if peek.content else ()
    else:
        parts = [_part(bytes(block)) for block in peek.content]
    for part in parts:
        if isinstance(part, ToolResult) and role != "user":
            raise BadInput(f"a tool_result cannot stand in a message of role {role}")
        if isinstance(part, ToolCall | Thinking) and role != "assistant":
            raise BadInput(f"a {part.kind} cannot stand in a message of role {role}")
    return Message(role=role, parts=tuple(parts), wire=Wire(format="anthropic", raw=raw))


def _part(raw: bytes) -> AnyPart:
    match read_json(raw, _Typed).type:
        case "thinking":
            thought = read_json(raw, _Thinking)
            return Thinking(text=thought.thinking, signature=thought.signature, extra=_extra(raw, _Thinking))
        case "redacted_thinking":
            data = read_json(raw, _Redacted).data
            return Thinking(text="", signature=data, redacted=True, extra=_extra(raw, _Redacted))
        case "tool_use":
            use = read_json(raw, _ToolUse)
            arguments = bytes(use.input).decode()
            return ToolCall(id=use.id, name=use.name, arguments=arguments, extra=_extra(raw, _ToolUse))
        case "tool_result":
            result = read_json(raw, _ToolResult)
            parts = _result_parts(result.content)
            is_error = bool(result.is_error)
            extra = _extra(raw, _ToolResult)
            return ToolResult(call_id=result.tool_use_id, parts=parts, is_error=is_error, extra=extra)
        case kind:
            return _content_part(kind, raw)


def _result_parts(content: str | list[Raw] | None) -> tuple[ResultPart, ...]:
    match content:
        case None | "":
            return ()
        case str():
            return (Text(text=content),)
        case _:
            return tuple(
                _content_part(read_json(bytes(block), _Typed).type, bytes(block)) for block in content
            )


def _content_part(kind: str, raw: bytes) -> ResultPart:
    match kind:
        case "text":
            return Text(text=read_json(raw, _Text).text, extra=_extra(raw, _Text))
        case "image":
            source = _source(read_json(raw, _Image).source)
            if source is not None:
                found, data, media_type = source.type, _data(source), source.media_type
                return Image(source=found, data=data, media_type=media_type, extra=_extra(raw, _Image))
        case "document":
            document = read_json(raw, _Document)
            source = _source(document.source)
            if source is not None:
                return Document(
                    source=source.type,
                    data=_data(source),
                    media_type=source.media_type,
                    title=document.title or "",
                    extra=_extra(raw, _Document),
                )
        case "":
            raise BadInput("a content block has no type")
    return Opaque(block=kind, body=raw.decode())


def _source(raw: Raw) -> _Source | None:
    """Return where the data of an image or document is, or None for a way this version does not know."""
    known = read_json(bytes(raw), _Typed).type in get_args(Source)
    return read_json(bytes(raw), _Source) if known else None


def _data(source: _Source) -> str:
    return source.data or source.url or source.file_id


def _extra(raw: bytes, known: type[Struct]) -> bytes:
    return extra_of(raw, {"type", *known.__struct_fields__})
