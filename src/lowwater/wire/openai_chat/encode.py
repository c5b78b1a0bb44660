"""OpenAI chat messages: values to bytes."""

from collections.abc import Sequence

from lowwater.values.message import Message
from lowwater.values.parts import AnyPart, Document, Image, Opaque, Text, Thinking, ToolCall, ToolResult
from lowwater.wire.crossing import crossed
from lowwater.wire.reading import fields_of, read_fields, write_array, write_json, write_object

_EMPTY = frozenset({b"null", b'""', b"[]"})
_THOUGHT_FIELDS = ("reasoning_content", "reasoning", "reasoning_details")


def encode_messages(messages: Sequence[Message]) -> list[bytes]:
    """Return each message as bytes: those that came in this format and were not edited exactly as they came.

    A message of another format that mixes tool results with other parts becomes several.
    """
    encoded: list[bytes] = []
    for message in messages:
        wire = message.wire
        if wire is not None and wire.format == "openai_chat":
            encoded.append(wire.raw if wire.exact else _edited(message, read_fields(wire.raw)))
        else:
            encoded.extend(_foreign(message))
    return encoded


def _edited(message: Message, fields: dict[str, bytes]) -> bytes:
    if message.results:
        fields["content"] = _content(message.results[0].parts, empty=fields.get("content", b'""'))
        return write_object(fields)
    own = [
        part for part in message.parts if not isinstance(part, ToolCall | Thinking) and not _is_refusal(part)
    ]
    if own or "content" in fields:
        fields["content"] = _content(own, empty=fields.get("content", b"null"))
    if "tool_calls" in fields:
        fields["tool_calls"] = write_array([_call(call) for call in message.calls])
        if not message.calls:
            del fields["tool_calls"]
    if not message.thinking:
        for name in _THOUGHT_FIELDS:
            if fields.get(name, b"null") not in _EMPTY:
                fields.pop(name, None)
    elif message.thinking[0].text:
        kept = next((name for name in _THOUGHT_FIELDS[:2] if name in fields), _THOUGHT_FIELDS[0])
        fields[kept] = write_json("\n".join(thought.text for thought in message.thinking))
    return write_object(fields)


def _foreign(message: Message) -> list[bytes]:
    parts = [crossed(part) for part in message.parts]
    encoded = [_tool_message(part) for part in parts if isinstance(part, ToolResult)]
    own = [part for part in parts if not isinstance(part, ToolCall | Thinking | ToolResult)]
    calls = [part for part in parts if isinstance(part, ToolCall)]
    thought = "\n".join(part.text for part in message.thinking if part.text)
    if encoded and not (own or calls or thought):
        return encoded
    fields = {"role": write_json(message.role), "content": _content(own)}
    if message.name:
        fields["name"] = write_json(message.name)
    if thought:
        fields["reasoning_content"] = write_json(thought)
    if calls:
        fields["tool_calls"] = write_array([_call(call) for call in calls])
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
            return write_array([_part(part) for part in parts])


def _part(part: AnyPart) -> bytes:
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


def _call(call: ToolCall) -> bytes:
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
    return isinstance(part, Text) and part.extra == b'{"type":"refusal"}'
