"""Responses items: values to bytes."""

from collections.abc import Sequence

from lowwater.values.message import Message
from lowwater.values.parts import AnyPart, Opaque, Text, Thinking, ToolCall, ToolResult
from lowwater.wire.crossing import crossed
from lowwater.wire.openai_responses.answered import edited_answer, edited_result
from lowwater.wire.openai_responses.content import encode_content
from lowwater.wire.openai_responses.items import CALL, OUTPUT, Peek, items_in
from lowwater.wire.reading import fields_of, read_fields, read_json, write_json, write_object


def encode_messages(messages: Sequence[Message]) -> list[bytes]:
    """Return the items of all messages: those that came in this format and were not edited exactly as they came.

    Of an edited answer the items whose parts are the same leave as they came, too. A result says what its call was.
    """
    encoded: list[bytes] = []
    kinds: dict[str, str] = {}
    for message in messages:
        for call in message.calls:
            kinds[call.id] = _kind(call)
        wire = message.wire
        if wire is None or wire.format != "openai_responses":
            encoded.extend(_foreign(message, kinds))
        elif wire.exact:
            encoded.extend(items_in(wire.raw))
        else:
            encoded.extend(_edited(message, wire.raw, kinds))
    return encoded


def _edited(message: Message, raw: bytes, kinds: dict[str, str]) -> list[bytes]:
    if message.role == "assistant":
        return edited_answer(message.parts, items_in(raw))
    if message.results:
        kind = read_json(raw, Peek).type
        first = edited_result(message.results[0], raw, kind)
        return [first, *(_output(result, kinds) for result in message.results[1:])]
    fields = read_fields(raw)
    was_text = fields.get("content", b"").lstrip()[:1] == b'"'
    match message.parts:
        case (Opaque(body=body),) if "content" not in fields:
            return [body.encode()]
        case (Text(text=text, extra=b""),) if was_text:
            return [write_object(fields | {"content": write_json(text)})]
        case parts:
            return [write_object(fields | {"content": encode_content(parts, "input_text")})]


def _foreign(message: Message, kinds: dict[str, str]) -> list[bytes]:
    """Return a message that came in no form or in another: nobody else's thinking can be proven here."""
    parts = [crossed(part) for part in message.parts if not isinstance(part, Thinking)]
    encoded = [_output(part, kinds) for part in parts if isinstance(part, ToolResult)]
    said: list[AnyPart] = []
    for part in parts:
        if isinstance(part, ToolCall):
            encoded.extend(_message(message.role, said))
            said = []
            encoded.append(_function_call(part))
        elif not isinstance(part, ToolResult) and not (isinstance(part, Text) and not part.text):
            said.append(part)
    return [*encoded, *_message(message.role, said)]


def _message(role: str, parts: Sequence[AnyPart]) -> list[bytes]:
    if not parts:
        return []
    role = "user" if role == "tool" else role
    own = "output_text" if role == "assistant" else "input_text"
    content = encode_content(parts, own)
    return [write_object({"type": b'"message"', "role": write_json(role), "content": content})]


def _function_call(call: ToolCall) -> bytes:
    return write_object(
        {
            "type": b'"function_call"',
            "call_id": write_json(call.id),
            "name": write_json(call.name),
            "arguments": write_json(call.arguments),
        }
    )


def _output(result: ToolResult, kinds: dict[str, str]) -> bytes:
    kind = kinds.get(result.call_id, "function" + CALL) + OUTPUT
    bare = {"type": write_json(kind), "call_id": write_json(result.call_id)}
    return edited_result(result, write_object(bare), kind)


def _kind(call: ToolCall) -> str:
    """Return the type of the item that makes a call."""
    said = fields_of(call.extra).get("type", b'""')
    kind = read_json(said, str) if said[:1] == b'"' else ""
    return kind if kind.endswith(CALL) else "function" + CALL
