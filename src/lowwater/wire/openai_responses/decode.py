"""Responses items: bytes to values."""

from collections.abc import Sequence
from typing import get_args

from msgspec import Raw, Struct

from lowwater.errors import BadInput, MalformedMessage
from lowwater.values.message import Message, Role, Wire
from lowwater.values.parts import AnyPart, Opaque, ResultPart, Text, Thinking, ToolCall, ToolResult
from lowwater.wire.openai_responses.content import decode_content
from lowwater.wire.openai_responses.items import CALL, Peek, answered_call, is_of_model, is_output, items_in
from lowwater.wire.reading import extra_of, read_fields, read_json, write_object

COMPACTION = frozenset({"compaction", "compaction_summary"})
WINDOW = "compaction_window"
"""A compaction that no answer goes on from ends a window that the client had compacted: none of that may be left out."""
_AROUND = frozenset({"type", "id", "call_id", "status", "name", "namespace", "caller", "created_by"})


class _Said(Struct):
    content: str | list[Raw] | None = None


class _Function(Struct):
    name: str
    arguments: str = ""


class _Custom(Struct):
    name: str
    input: str = ""


class _Piece(Struct):
    text: str = ""


class _Reasoning(Struct):
    summary: list[_Piece] | None = None
    content: list[_Piece] | None = None
    encrypted_content: str | None = None


class _Output(Struct):
    output: Raw = Raw(b"null")


class _Ran(Struct):
    stdout: str = ""
    stderr: str = ""


def decode_message(raw: bytes, index: int) -> Message:
    """Return the message in `raw`, an item or a list of those of one answer, or raise MalformedMessage."""
    try:
        return _decode(raw)
    except BadInput as error:
        raise MalformedMessage(index, str(error)) from None


def _decode(raw: bytes) -> Message:
    wire = Wire(format="openai_responses", raw=raw)
    if raw.lstrip()[:1] == b"[":
        parts = [part for own in answer_parts(items_in(raw)) for part in own]
        return Message(role="assistant", parts=tuple(parts), wire=wire)
    item = read_json(raw, Peek)
    return Message(role=_role(item), parts=tuple(_parts_of(raw, item)), wire=wire)


def answer_parts(items: Sequence[bytes]) -> list[Sequence[AnyPart]]:
    """Return the parts of each item of one answer.

    A call that the provider ran itself stands there with its output: nobody else answers it, and neither is touched.
    """
    peeks = [read_json(item, Peek) for item in items]
    if any(peek.type == "message" and peek.role != "assistant" for peek in peeks):
        raise BadInput("a list of items that are not one answer of the model")
    ran = {answered_call(peek) for peek in peeks if is_output(peek)}
    return [
        [Opaque(block=peek.type, body=raw.decode())]
        if is_output(peek) or (peek.call_id and peek.call_id in ran)
        else _parts_of(raw, peek, alone=len(items) == 1)
        for raw, peek in zip(items, peeks, strict=True)
    ]


def _parts_of(raw: bytes, item: Peek, *, alone: bool = True) -> Sequence[AnyPart]:
    """Return the parts of one item, which stands `alone` or with others of an answer."""
    if item.type == "message":
        return _said(raw, item)
    if item.type == "reasoning":
        return [thought_in(raw)]
    if is_output(item):
        return [_result(raw, item)]
    if item.type.endswith(CALL) and item.call_id:
        return [_call(raw, item, item.call_id)]
    if not item.type:
        raise BadInput("an item has an empty type")
    is_window = alone and item.type in COMPACTION
    block = WINDOW if is_window else "compaction" if item.type in COMPACTION else item.type
    return [Opaque(block=block, body=raw.decode())]


def _role(item: Peek) -> Role:
    if item.type == "message":
        if item.role is None:
            raise BadInput("an item has neither a type nor a role")
        if item.role not in get_args(Role) or item.role == "tool":
            raise BadInput(
                f"unknown role {item.role[:40]!r}: expected one of user, assistant, system, developer"
            )
        return item.role  # type: ignore[return-value]  # checked against the members just now
    if is_output(item):
        return "tool"
    return "assistant" if is_of_model(item) else "user"


def _said(raw: bytes, item: Peek) -> list[ResultPart]:
    content = read_json(raw, _Said).content
    if content is None:
        raise BadInput("a message has no content")
    if isinstance(content, str):
        return [Text(text=content)] if content else []
    own = "output_text" if item.role == "assistant" else "input_text"
    return [decode_content(bytes(part), own) for part in content]


def thought_in(raw: bytes) -> Thinking:
    """Return the reasoning in an item."""
    thought = read_json(raw, _Reasoning)
    pieces = [*(thought.summary or []), *(thought.content or [])]
    text = "\n".join(piece.text for piece in pieces)
    return Thinking(
        text=text,
        signature=thought.encrypted_content or "",
        redacted=not text,
        extra=extra_of(raw, {"type", "encrypted_content"}),
    )


def _call(raw: bytes, item: Peek, call_id: str) -> ToolCall:
    match item.type:
        case "function_call":
            call = read_json(raw, _Function)
            extra = extra_of(raw, {"type", "call_id", "name", "arguments"})
            return ToolCall(id=call_id, name=call.name, arguments=call.arguments, extra=extra)
        case "custom_tool_call":
            custom = read_json(raw, _Custom)
            extra = extra_of(raw, {"call_id", "name", "input"})
            return ToolCall(id=call_id, name=custom.name, arguments=custom.input, extra=extra)
        case _:
            fields = read_fields(raw)
            asked = {name: value for name, value in fields.items() if name not in _AROUND}
            around = {name: value for name, value in fields.items() if name in _AROUND - {"call_id"}}
            name = item.type.removesuffix(CALL)
            arguments = write_object(asked).decode()
            return ToolCall(id=call_id, name=name, arguments=arguments, extra=write_object(around))


def _result(raw: bytes, item: Peek) -> ToolResult:
    output = bytes(read_json(raw, _Output).output)
    known = {"call_id", "output"} | ({"type"} if item.type == "function_call_output" else set())
    return ToolResult(
        call_id=answered_call(item), parts=_output_parts(output, item.type), extra=extra_of(raw, known)
    )


def _output_parts(output: bytes, kind: str) -> tuple[ResultPart, ...]:
    match output.lstrip()[:1]:
        case b'"':
            text = read_json(output, str)
            return (Text(text=text),) if text else ()
        case b"[" if kind == "shell_call_output":
            return tuple(_ran(bytes(run)) for run in read_json(output, list[Raw]))
        case b"[":
            return tuple(decode_content(bytes(part), "input_text") for part in read_json(output, list[Raw]))
        case b"{":
            return (Opaque(block=kind, body=output.decode()),)
        case _:
            return ()


def _ran(raw: bytes) -> Text:
    """Return what one command of a shell wrote."""
    ran = read_json(raw, _Ran)
    text = "\n".join(said for said in (ran.stdout, ran.stderr) if said)
    return Text(text=text, extra=extra_of(raw, {"stdout", "stderr"}))
