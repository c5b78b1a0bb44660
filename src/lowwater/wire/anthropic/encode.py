"""Anthropic messages: values to bytes."""

from collections.abc import Sequence

from lowwater.errors import BadInput, MalformedMessage
from lowwater.values.message import Message
from lowwater.values.parts import AnyPart, Document, Image, Opaque, Text, Thinking, ToolCall, ToolResult
from lowwater.wire.reading import fields_of, read_fields, write_array, write_json, write_object


def encode_messages(messages: Sequence[Message]) -> list[bytes]:
    """Return each message as bytes: those that came in this format and were not edited exactly as they came.

    Messages of another format are joined where Anthropic wants one: all results of a group stand in one user message.
    A foreign system message has no place in the list; the caller puts it into `system`.
    """
    encoded: list[bytes] = []
    foreign: list[Message] = []
    for index, message in enumerate(messages):
        wire = message.wire
        if wire is not None and wire.format == "anthropic":
            encoded.extend(_joined(foreign))
            foreign = []
            encoded.append(wire.raw if wire.exact else _edited(message, read_fields(wire.raw)))
            continue
        if message.role in {"system", "developer"}:
            raise MalformedMessage(
                index, f"a {message.role} message has no place in Anthropic's list: use `system`"
            )
        if foreign and _role(foreign[-1]) != _role(message):
            encoded.extend(_joined(foreign))
            foreign = []
        foreign.append(message)
    encoded.extend(_joined(foreign))
    return encoded


def _edited(message: Message, fields: dict[str, bytes]) -> bytes:
    parts = message.parts
    was_text = fields["content"].lstrip()[:1] == b'"'
    if was_text and len(parts) == 1 and isinstance(parts[0], Text):
        fields["content"] = write_json(parts[0].text)
    else:
        fields["content"] = write_array([encode_part(part) for part in parts])
    return write_object(fields)


def _joined(messages: Sequence[Message]) -> list[bytes]:
    """Return foreign messages of one role as one message, results before everything else."""
    if not messages:
        return []
    parts = [part for message in messages for part in message.parts if _has_form(part)]
    parts.sort(key=lambda part: not isinstance(part, ToolResult))
    if not parts:
        return []
    role = write_json(_role(messages[0]))
    if len(parts) == 1 and isinstance(parts[0], Text):
        return [write_object({"role": role, "content": write_json(parts[0].text)})]
    return [
        write_object(
            {"role": role, "content": write_array([encode_part(part, foreign=True) for part in parts])}
        )
    ]


def _role(message: Message) -> str:
    return "assistant" if message.role == "assistant" else "user"


def _has_form(part: AnyPart) -> bool:
    """Thinking without a signature and blocks of an unknown type cannot cross from another format."""
    match part:
        case Thinking():
            return bool(part.signature)
        case Opaque():
            return False
        case Text():
            return bool(part.text)
        case _:
            return True


def encode_part(part: AnyPart, *, foreign: bool = False) -> bytes:
    """Return one content block; the extra fields of a part that came in another format stay behind."""
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
            fields = _result(part, foreign=foreign)
        case Image():
            fields = {"type": b'"image"', "source": write_json(_source(part))}
        case Document():
            fields = {"type": b'"document"', "source": write_json(_source(part))}
            if part.title:
                fields["title"] = write_json(part.title)
        case Opaque():
            return part.body.encode()
    return write_object(fields if foreign else fields | fields_of(part.extra))


def _result(result: ToolResult, *, foreign: bool) -> dict[str, bytes]:
    fields = {"type": b'"tool_result"', "tool_use_id": write_json(result.call_id)}
    parts = [part for part in result.parts if not foreign or _has_form(part)]
    match parts:
        case []:
            pass
        case [Text(text=text, extra=b"")]:
            fields["content"] = write_json(text)
        case _:
            fields["content"] = write_array([encode_part(part, foreign=foreign) for part in parts])
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
