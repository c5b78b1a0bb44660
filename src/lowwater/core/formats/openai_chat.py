"""The OpenAI chat-completions format, which most compatible servers use: decoding and encoding."""

from collections.abc import Sequence
from typing import get_args

from msgspec import Raw, Struct

from lowwater.core.formats.convert import as_portable, split_data_url
from lowwater.core.messages import (
    AnyPart,
    Document,
    Image,
    Message,
    Opaque,
    ResultPart,
    Role,
    Source,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Wire,
)
from lowwater.core.strict_json import (
    extra_of,
    fields_of,
    read_fields,
    read_json,
    write_array,
    write_json,
    write_object,
)
from lowwater.errors import BadInput, MalformedMessage

_REFUSAL = b'{"type":"refusal"}'
_EMPTY = frozenset({b"null", b'""', b"[]"})
# DeepSeek and Kimi send `reasoning_content`; OpenRouter sends `reasoning` and `reasoning_details`.
_REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details")


class _Message(Struct):
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
    """Return the message in `raw`, or raise MalformedMessage; `index` is its place in the client's list."""
    try:
        return _decode(raw)
    except BadInput as error:
        raise MalformedMessage(index, str(error)) from None


def _decode(raw: bytes) -> Message:
    peek = read_json(raw, _Message)
    role = _role(peek.role)
    content = _parts(peek.content)
    wire = Wire(format="openai_chat", raw=raw)
    if role == "tool":
        if peek.tool_call_id is None:
            raise BadInput("a tool message needs a tool_call_id")
        result = ToolResult(call_id=peek.tool_call_id, parts=tuple(content), is_error=bool(peek.is_error))
        return Message(role=role, parts=(result,), name=peek.name or "", wire=wire)
    parts: list[AnyPart] = []
    reasoning = peek.reasoning_content or peek.reasoning or ""
    if reasoning or peek.reasoning_details:
        parts.append(Thinking(text=reasoning))
    parts.extend(content)
    if peek.refusal:
        parts.append(Text(text=peek.refusal, extra=_REFUSAL))
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
    return role  # type: ignore[return-value]  # a member of Role, as checked above


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
            media_type, data = split_data_url(image.url)
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
            media_type, data = split_data_url(file.file_data or "")
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


def encode_messages(messages: Sequence[Message]) -> list[bytes]:
    """Return the messages as bytes; those that arrived in this format and were not edited leave exactly as they arrived.

    A message of another format that mixes tool results with other parts becomes several.
    """
    encoded: list[bytes] = []
    for message in messages:
        wire = message.wire
        if wire is None or wire.format != "openai_chat":
            encoded.extend(_converted(message))
        elif wire.exact:
            encoded.append(wire.raw)
        elif message.results and message.role != "tool":
            encoded.extend(_converted(message))  # results were put before what the user said
        else:
            encoded.append(_edited(message, read_fields(wire.raw)))
    return encoded


def _edited(message: Message, fields: dict[str, bytes]) -> bytes:
    if message.results:
        result = message.results[0]
        fields["content"] = _content(result.parts, empty=fields.get("content", b'""'))
        if read_json(fields["tool_call_id"], str) != result.call_id:
            fields["tool_call_id"] = write_json(result.call_id)
        return write_object(fields)
    own = [
        part for part in message.parts if not isinstance(part, ToolCall | Thinking) and not _is_refusal(part)
    ]
    if own or "content" in fields:
        fields["content"] = _content(own, empty=fields.get("content", b"null"))
    if "tool_calls" in fields:
        fields["tool_calls"] = write_array([_encode_call(call) for call in message.calls])
        if not message.calls:
            del fields["tool_calls"]
    if not message.thinking:
        for name in _REASONING_FIELDS:
            if fields.get(name, b"null") not in _EMPTY:
                fields.pop(name, None)
    elif message.thinking[0].text:
        kept = next((name for name in _REASONING_FIELDS[:2] if name in fields), _REASONING_FIELDS[0])
        fields[kept] = write_json("\n".join(reasoning.text for reasoning in message.thinking))
    return write_object(fields)


def _converted(message: Message) -> list[bytes]:
    parts = [as_portable(part) for part in message.parts]
    encoded = [_tool_message(part) for part in parts if isinstance(part, ToolResult)]
    own = [part for part in parts if not isinstance(part, ToolCall | Thinking | ToolResult)]
    calls = [part for part in parts if isinstance(part, ToolCall)]
    reasoning = "\n".join(part.text for part in message.thinking if part.text)
    if encoded and not (own or calls or reasoning):
        return encoded
    fields = {"role": write_json(message.role), "content": _content(own)}
    if message.name:
        fields["name"] = write_json(message.name)
    if reasoning:
        fields["reasoning_content"] = write_json(reasoning)
    if calls:
        fields["tool_calls"] = write_array([_encode_call(call) for call in calls])
    return [*encoded, write_object(fields)]


def _tool_message(result: ToolResult) -> bytes:
    fields = {
        "role": b'"tool"',
        "tool_call_id": write_json(result.call_id),
        "content": _content(result.parts, empty=b'""'),
    }
    return write_object(fields)


def _content(parts: Sequence[AnyPart], *, empty: bytes = b"null") -> bytes:
    match parts:
        case []:
            return empty if empty in _EMPTY else b"null"
        case [Text(text=text, extra=b"")]:
            return write_json(text)
        case _:
            return write_array([_encode_part(part) for part in parts])


def _encode_part(part: AnyPart) -> bytes:
    fields: dict[str, bytes]
    match part:
        case Text():
            fields = {"type": b'"text"', "text": write_json(part.text)}
        case Image():
            url = part.data if part.source != "base64" else f"data:{part.media_type};base64,{part.data}"
            image = {"url": url, "detail": part.detail} if part.detail else {"url": url}
            fields = {"type": b'"image_url"', "image_url": write_json(image)}
        case Document(source="text"):
            fields = {"type": b'"text"', "text": write_json(part.data)}
        case Document():
            file = {"file_id": part.data} if part.source == "file" else _file_data(part)
            if part.title:
                file["filename"] = part.title
            fields = {"type": b'"file"', "file": write_json(file)}
        case Opaque():
            return part.body.encode()
        case _:
            raise AssertionError(f"a {part.kind} is not a content part")
    return write_object(fields | fields_of(part.extra))


def _file_data(document: Document) -> dict[str, str]:
    if document.source == "url":
        return {"file_data": document.data}
    return {"file_data": f"data:{document.media_type};base64,{document.data}"}


def _encode_call(call: ToolCall) -> bytes:
    rest = fields_of(call.extra)
    if rest.get("type") == b'"custom"':
        custom = {"name": call.name, "input": call.arguments}
        return write_object(
            {"id": write_json(call.id), "type": b'"custom"', "custom": write_json(custom)} | rest
        )
    function = {"name": call.name, "arguments": call.arguments}
    fields = {"id": write_json(call.id), "type": b'"function"', "function": write_json(function)}
    return write_object(fields | rest)


def _is_refusal(part: AnyPart) -> bool:
    return isinstance(part, Text) and part.extra == _REFUSAL
