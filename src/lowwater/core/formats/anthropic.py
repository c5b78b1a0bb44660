"""Anthropic's Messages format: decoding, encoding, and the API's rules about thinking and beta headers."""

from collections.abc import Iterator, Sequence
from typing import Any, get_args

from msgspec import Raw, Struct

from lowwater.core.formats.convert import as_portable
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

# Decoding

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}


class _RawMessage(Struct):
    role: str
    content: str | list[Raw]


class _Typed(Struct):
    type: str = ""


class _Text(Struct):
    text: str


class _ThinkingBlock(Struct):
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
    """Return the message in `raw`, or raise MalformedMessage; `index` is its place in the client's list."""
    try:
        return _decode(raw)
    except BadInput as error:
        raise MalformedMessage(index, str(error)) from None


def _decode(raw: bytes) -> Message:
    peek = read_json(raw, _RawMessage)
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
            raise BadInput(f"a tool_result cannot be in a message of role {role}")
        if isinstance(part, ToolCall | Thinking) and role != "assistant":
            raise BadInput(f"a {part.kind} cannot be in a message of role {role}")
    return Message(role=role, parts=tuple(parts), wire=Wire(format="anthropic", raw=raw))


def _part(raw: bytes) -> AnyPart:
    match read_json(raw, _Typed).type:
        case "thinking":
            thought = read_json(raw, _ThinkingBlock)
            return Thinking(
                text=thought.thinking, signature=thought.signature, extra=_extra(raw, _ThinkingBlock)
            )
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
    """Return the source of an image or document, or None for a source type that is not known."""
    known = read_json(bytes(raw), _Typed).type in get_args(Source)
    return read_json(bytes(raw), _Source) if known else None


def _data(source: _Source) -> str:
    return source.data or source.url or source.file_id


def _extra(raw: bytes, known: type[Struct]) -> bytes:
    return extra_of(raw, {"type", *known.__struct_fields__})


# Encoding


def encode_messages(messages: Sequence[Message]) -> list[bytes]:
    """Return the messages as bytes; those that arrived in this format and were not edited leave exactly as they arrived.

    Consecutive messages of another format with the same role are merged, because Anthropic requires all results of a
    group of calls in one user message. A system or developer message of another format becomes a system message in the
    list; the caller moves it to the request's `system` (`PreparedRequest.as_anthropic`).
    """
    encoded: list[bytes] = []
    pending: list[AnyPart] = []
    role = ""
    for message in messages:
        wire = message.wire
        if wire is not None and wire.format == "anthropic":
            encoded.extend(_merged(role, pending))
            pending = []
            encoded.append(wire.raw if wire.exact else _edited(message, read_fields(wire.raw)))
            continue
        parts = [as_portable(part) for part in message.parts if _is_encodable(part)]
        if not parts:
            continue
        if pending and role != _role(message):
            encoded.extend(_merged(role, pending))
            pending = []
        role = _role(message)
        pending.extend(parts)
    encoded.extend(_merged(role, pending))
    return encoded


def _edited(message: Message, fields: dict[str, bytes]) -> bytes:
    parts = message.parts
    was_text = fields["content"].lstrip()[:1] == b'"'
    if was_text and len(parts) == 1 and isinstance(parts[0], Text):
        fields["content"] = write_json(parts[0].text)
    else:
        fields["content"] = write_array([_encode_part(part) for part in parts])
    return write_object(fields)


def _merged(role: str, parts: Sequence[AnyPart]) -> list[bytes]:
    """Return the parts as one message, or nothing for no parts. Anthropic requires tool results to come first."""
    match parts:
        case []:
            return []
        case [Text(text=text)]:
            content = write_json(text)
        case _:
            ordered = sorted(parts, key=lambda part: not isinstance(part, ToolResult))
            content = write_array([_encode_part(part) for part in ordered])
    return [write_object({"role": write_json(role), "content": content})]


def _role(message: Message) -> str:
    if message.role in {"system", "developer"}:
        return "system"
    return "assistant" if message.role == "assistant" else "user"


def _is_encodable(part: AnyPart) -> bool:
    """Return whether Anthropic accepts the part: it refuses unsigned thinking and empty text blocks."""
    match part:
        case Thinking():
            return bool(part.signature)
        case Text():
            return bool(part.text)
        case _:
            return True


def _encode_part(part: AnyPart) -> bytes:
    """Return one content block."""
    fields: dict[str, bytes]
    match part:
        case Text():
            fields = {"type": b'"text"', "text": write_json(part.text)}
        case Thinking(redacted=True):
            fields = {"type": b'"redacted_thinking"', "data": write_json(part.signature)}
        case Thinking():
            fields = {
                "type": b'"thinking"',
                "thinking": write_json(part.text),
                "signature": write_json(part.signature),
            }
        case ToolCall():
            fields = {
                "type": b'"tool_use"',
                "id": write_json(part.id),
                "name": write_json(part.name),
                "input": _input(part.arguments),
            }
        case ToolResult():
            fields = _result(part)
        case Image():
            fields = {"type": b'"image"', "source": write_json(_encode_source(part))}
        case Document():
            fields = {"type": b'"document"', "source": write_json(_encode_source(part))}
            if part.title:
                fields["title"] = write_json(part.title)
        case Opaque():
            return part.body.encode()
    return write_object(fields | fields_of(part.extra))


def _result(result: ToolResult) -> dict[str, bytes]:
    fields = {"type": b'"tool_result"', "tool_use_id": write_json(result.call_id)}
    match result.parts:
        case ():
            pass
        case (Text(text=text, extra=b""),):
            fields["content"] = write_json(text)
        case _:
            fields["content"] = write_array([_encode_part(part) for part in result.parts])
    if result.is_error:
        fields["is_error"] = b"true"
    return fields


def _encode_source(part: Image | Document) -> dict[str, str]:
    match part.source:
        case "url":
            return {"type": "url", "url": part.data}
        case "file":
            return {"type": "file", "file_id": part.data}
        case _:
            return {"type": part.source, "media_type": part.media_type, "data": part.data}


def _input(arguments: str) -> bytes:
    """Return arguments as the object that Anthropic requires; a custom tool's plain text is wrapped in one."""
    try:
        read_fields(arguments.encode())
    except BadInput:
        return write_json({"input": arguments}) if arguments.strip() else b"{}"
    return arguments.encode()


# Rules about thinking

_DISABLED = b'{"type":"disabled"}'
_THINKING_BLOCKS = frozenset({"thinking", "redacted_thinking"})


class _TypedMessage(Struct):
    role: str
    content: str | list[_Typed]


class _ThinkingConfig(Struct):
    type: str = ""
    block_binding: Any = None


def thinking_for(config: bytes, messages: Sequence[bytes]) -> bytes:
    """Return the request's `thinking` as it may be sent with these messages.

    With a thinking budget (`enabled`) the API requires the assistant turn that called tools to begin with thinking. Where
    a compaction removed that thinking, the request would be refused; thinking is then disabled for the rest of the tool
    loop, until the user's next message. Adaptive thinking has no such rule and stays as it is.
    """
    if read_json(config, _Typed).type != "enabled" or _loop_begins_with_thinking(messages):
        return config
    return _DISABLED


def _loop_begins_with_thinking(messages: Sequence[bytes]) -> bool:
    """Return whether the tool loop under way began with thinking; True if no loop is under way."""
    opening: tuple[str, ...] = ()
    in_loop = has_ask = False
    for role, kinds in _turns(messages):
        is_result = "tool_result" in kinds
        if role == "user" and not is_result:
            opening, has_ask = (), True
        elif role == "assistant" and has_ask and not opening:
            opening = kinds
        in_loop = role == "user" and is_result
    return not in_loop or not opening or opening[0] in _THINKING_BLOCKS


def _turns(messages: Sequence[bytes]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield role and block types of each turn; consecutive messages of one role are one turn."""
    role = ""
    kinds: tuple[str, ...] = ()
    for raw in messages:
        peek = read_json(raw, _TypedMessage)
        own = ("text",) if isinstance(peek.content, str) else tuple(block.type for block in peek.content)
        if peek.role == "system":
            continue
        if peek.role == role:
            kinds += own
            continue
        if role:
            yield role, kinds
        role, kinds = peek.role, own
    if role:
        yield role, kinds


def dropping(thinking: bytes) -> bytes:
    """Return the request's `thinking`, asking the API to drop thinking blocks that no longer match their prefix.

    Only adaptive thinking has this option. A choice that the client made itself is left as it is.
    """
    if not thinking:
        return thinking
    config = read_json(thinking, _ThinkingConfig)
    if config.type != "adaptive" or config.block_binding is not None:
        return thinking
    return write_object(
        read_fields(thinking) | {"block_binding": b'{"prefix_mismatch_behavior":"drop_block"}'}
    )


# Beta headers

_ON_DEMAND_BETA = "compact-2026-09-04"
"""Beta for requesting a signed compaction block and for sending one back."""
_THRESHOLD_BETA = "compact-2026-01-12"
"""Beta for sending back an unsigned compaction block, which the API put into an answer by itself."""
_BINDING_BETA = "thinking-binding-controls-2026-08-01"
"""Beta for `thinking.block_binding`: what the API does with thinking that follows an edited message."""
_COMPACTION = b'"compaction"'


class _CompactionBlock(Struct):
    type: str = ""
    signature: str | None = None


class _BlockMessage(Struct):
    content: str | list[_CompactionBlock] = ""


class _Body(Struct):
    messages: list[Raw] = []
    thinking: Raw = Raw(b"")


def betas_for(messages: Sequence[bytes], thinking: bytes = b"") -> tuple[str, ...]:
    """Return the betas that a request with these messages and this `thinking` needs."""
    found = {
        _ON_DEMAND_BETA if block.signature else _THRESHOLD_BETA
        for raw in messages
        if _COMPACTION in raw
        for block in _blocks(raw)
        if block.type == "compaction"
    }
    if thinking and read_json(thinking, _ThinkingConfig).block_binding is not None:
        found.add(_BINDING_BETA)
    return tuple(sorted(found))


def betas_of_body(body: bytes, *, compacting: bool = False) -> tuple[str, ...]:
    """Return the betas that a request body needs; `compacting` if it asks for a compaction block. Other formats need none."""
    if not compacting and _COMPACTION not in body and b'"block_binding"' not in body:
        return ()
    try:
        sent = read_json(body, _Body)
    except BadInput:
        return ()
    found = betas_for([bytes(raw) for raw in sent.messages], bytes(sent.thinking))
    return tuple(sorted({*found, _ON_DEMAND_BETA})) if compacting else found


def _blocks(raw: bytes) -> list[_CompactionBlock]:
    try:
        content = read_json(raw, _BlockMessage).content
    except BadInput:
        return []
    return content if isinstance(content, list) else []
