"""Anthropic messages: values to bytes."""

from collections.abc import Sequence

from lowwater.errors import BadInput
from lowwater.values.message import Message
from lowwater.values.parts import AnyPart, Document, Image, Opaque, Text, Thinking, ToolCall, ToolResult
from lowwater.wire.crossing import crossed
from lowwater.wire.reading import fields_of, read_fields, write_array, write_json, write_object


def encode_messages(messages: Sequence[Message]) -> list[bytes]:
    """Return each message as bytes: those that came in this format and were not edited exactly as they came.

    Messages of another format are joined where Anthropic wants one: all results of a group stand in one user message.
    A foreign system or developer message becomes a system message in the list: what is sent has it in `system` instead, where
    the caller puts it (`PreparedRequest.as_anthropic`).
    """
    encoded: list[bytes] = []
    waiting: list[AnyPart] = []
    role = ""
    for message in messages:
        wire = message.wire
        if wire is not None and wire.format == "anthropic":
            encoded.extend(_joined(role, waiting))
            waiting = []
            encoded.append(wire.raw if wire.exact else _edited(message, read_fields(wire.raw)))
            continue
        parts = [crossed(part) for part in message.parts if _has_form(part)]
        if not parts:
            continue
        if waiting and role != _role(message):
            encoded.extend(_joined(role, waiting))
            waiting = []
        role = _role(message)
        waiting.extend(parts)
    encoded.extend(_joined(role, waiting))
    return encoded


def _edited(message: Message, fields: dict[str, bytes]) -> bytes:
    parts = message.parts
    was_text = fields["content"].lstrip()[:1] == b'"'
    if was_text and len(parts) == 1 and isinstance(parts[0], Text):
        fields["content"] = write_json(parts[0].text)
    else:
        fields["content"] = write_array([encode_part(part) for part in parts])
    return write_object(fields)


def _joined(role: str, parts: Sequence[AnyPart]) -> list[bytes]:
    """Return foreign parts of one role as one message, results before everything else; nothing for none."""
    match parts:
        case []:
            return []
        case [Text(text=text)]:
            content = write_json(text)
        case _:
            ordered = sorted(parts, key=lambda part: not isinstance(part, ToolResult))
            content = write_array([encode_part(part) for part in ordered])
    return [write_object({"role": write_json(role), "content": content})]


def _role(message: Message) -> str:
    if message.role in {"system", "developer"}:
        return "system"
    return "assistant" if message.role == "assistant" else "user"


def _has_form(part: AnyPart) -> bool:
    """Thinking without a signature and empty text cannot be said here."""
    match part:
        case Thinking():
            return bool(part.signature)
        case Text():
            return bool(part.text)
        case _:
            return True


def encode_part(part: AnyPart) -> bytes:
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
            fields = {"type": b'"image"', "source": write_json(_source(part))}
        case Document():
            fields = {"type": b'"document"', "source": write_json(_source(part))}
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
            fields["content"] = write_array([encode_part(part) for part in result.parts])
    if result.is_error:
        fields["is_error"] = b"true"
    return fields


def _source(part: Image | Document) -> dict[str, str]:
    match part.source:
        case "url":
            return {"type": "url", "url": part.data}
        case "file":
            return {"type": "file", "file_id": part.data}
        case _:
            return {"type": part.source, "media_type": part.media_type, "data": part.data}


def _input(arguments: str) -> bytes:
    """Anthropic wants an object; arguments that are none (a custom tool's text) are wrapped."""
    try:
        read_fields(arguments.encode())
    except BadInput:
        return write_json({"input": arguments}) if arguments.strip() else b"{}"
    return arguments.encode()
