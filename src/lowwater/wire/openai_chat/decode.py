"""OpenAI chat messages: bytes to values."""

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


class _Peek(Struct):
    role: str
    content: str | list[Raw] | None = None
    name: str | None = None
    tool_calls: list[Raw] | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[Raw] | None = None
    refusal: str | None = None
    is_error: bool | None = None


class _Function(Struct):
    name: str
    arguments: str = ""


class _Custom(Struct):
    name: str
    input: str = ""


class _Call(Struct):
    id: str
    type: str = "function"
    function: _Function | None = None
    custom: _Custom | None = None


class _Typed(Struct):
    type: str = ""


class _Text(Struct):
    text: str


class _ImageUrl(Struct):
    url: str
    detail: str | None = None


class _ImagePart(Struct):
    image_url: _ImageUrl


class _File(Struct):
    file_data: str | None = None
    file_id: str | None = None
    filename: str | None = None


class _FilePart(Struct):
    file: _File


def decode_message(raw: bytes, index: int) -> Message:
    """Return the message in `raw`, the `index`-th of its list, or raise MalformedMessage."""
    try:
        return _decode(raw)
    except BadInput as error:
        raise MalformedMessage(index, str(error)) from None


def _decode(raw: bytes) -> Message:
    peek = read_json(raw, _Peek)
    role = _role(peek.role)
    content = _parts(peek.content)
    wire = Wire(format="openai_chat", raw=raw)
    if role == "tool":
        if peek.tool_call_id is None:
            raise BadInput("a tool message needs a tool_call_id")
        result = ToolResult(call_id=peek.tool_call_id, parts=tuple(content), is_error=bool(peek.is_error))
        return Message(role=role, parts=(result,), name=peek.name or "", wire=wire)
    parts: list[AnyPart] = []
    thought = peek.reasoning_content or peek.reasoning or ""
    if thought or peek.reasoning_details:
        parts.append(Thinking(text=thought))
    parts.extend(content)
    if peek.refusal:
        parts.append(Text(text=peek.refusal, extra=b'{"type":"refusal"}'))
    if peek.tool_calls:
        if role != "assistant":
            raise BadInput(f"a {role} message cannot hold tool_calls")
        parts.extend(_call(bytes(call)) for call in peek.tool_calls)
    return Message(role=role, parts=tuple(parts), name=peek.name or "", wire=wire)


def _role(role: str) -> Role:
    if role == "function":
        raise BadInput("role 'function' is no longer accepted: use role 'tool' with a tool_call_id")
    if role not in get_args(Role):
        raise BadInput(f"unknown role {role[:40]!r}: expected one of {', '.join(get_args(Role))}")
    return role  # type: ignore[return-value]  # checked against the members just now


def _parts(content: str | list[Raw] | None) -> list[ResultPart]:
    match content:
        case None | "":
            return []
        case str():
            return [Text(text=content)]
        case _:
            return [_part(bytes(block)) for block in content]


def _part(raw: bytes) -> ResultPart:
    match read_json(raw, _Typed).type:
        case "text":
            return Text(text=read_json(raw, _Text).text, extra=_extra(raw, _Text))
        case "image_url":
            image = read_json(raw, _ImagePart).image_url
            media_type, data = _data_url(image.url)
            source: Source = "base64" if data else "url"
            return Image(
                source=source,
                data=data or image.url,
                media_type=media_type,
                detail=image.detail or "",
                extra=_extra(raw, _ImagePart),
            )
        case "file":
            file = read_json(raw, _FilePart).file
            media_type, data = _data_url(file.file_data or "")
            return Document(
                source="file" if file.file_id else "base64",
                data=file.file_id or data or file.file_data or "",
                media_type=media_type,
                title=file.filename or "",
                extra=_extra(raw, _FilePart),
            )
        case "":
            raise BadInput("a content part has no type")
        case kind:
            return Opaque(block=kind, body=raw.decode())


def _data_url(url: str) -> tuple[str, str]:
    """Return media type and data of a base64 data URL, or two empty strings for any other."""
    head, comma, data = url.partition(";base64,")
    return (head.removeprefix("data:"), data) if comma and head.startswith("data:") else ("", "")


def _call(raw: bytes) -> ToolCall:
    call = read_json(raw, _Call)
    known = {"id", "function", "custom", "type"} if call.type == "function" else {"id", "function", "custom"}
    extra = extra_of(raw, known)
    if call.function is not None:
        return ToolCall(id=call.id, name=call.function.name, arguments=call.function.arguments, extra=extra)
    if call.custom is not None:
        return ToolCall(id=call.id, name=call.custom.name, arguments=call.custom.input, extra=extra)
    raise BadInput(f"tool call {call.id!r} has neither a function nor a custom tool")


def _extra(raw: bytes, known: type[Struct]) -> bytes:
    return extra_of(raw, {"type", *known.__struct_fields__})
