"""The OpenAI Responses format, in which one answer consists of several items: decoding, encoding and failed responses."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from msgspec import Raw, Struct

from lowwater.core.api_calls import Usage
from lowwater.core.formats.convert import as_portable, split_data_url
from lowwater.core.formats.usage import decode_openai_usage
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

_OUTPUT = "_output"
_CALL = "_call"
_NULL = Raw(b"null")


# Items: what they are, and which belong to one answer

_CLIENT_TYPES = frozenset(
    {"mcp_approval_response", "compaction_trigger", "additional_tools", "configuration_update"}
)
"""Types of items that a client sends and that are neither a message nor a tool's output."""
_OTHER_TYPES = frozenset({"message", "reasoning", "item_reference", "compaction", "compaction_summary"})


class ItemPeek(Struct, frozen=True, kw_only=True):
    """The fields that tell what an item is."""

    type: str = "message"
    role: str | None = None
    call_id: str | None = None
    id: str | None = None


def is_item_type(kind: str) -> bool:
    """Return whether this is a known type of item."""
    return kind in _OTHER_TYPES or kind in _CLIENT_TYPES or kind.endswith((_CALL, _CALL + _OUTPUT))


def group_items(raws: Sequence[bytes]) -> list[bytes]:
    """Return one piece of JSON for each message: consecutive items of the model become one array, its answer.

    An answer of one item becomes an array too, so that grouping a result again never merges two answers.
    """
    grouped: list[bytes] = []
    answer: list[bytes] = []
    for raw in raws:
        if raw.lstrip()[:1] == b"{" and _raw_is_from_model(raw):
            answer.append(raw)
            continue
        grouped.extend(_as_answer(answer))
        answer = []
        grouped.append(raw)
    return [*grouped, *_as_answer(answer)]


def _as_answer(items: Sequence[bytes]) -> Iterator[bytes]:
    if items:
        yield write_array(list(items))


def _raw_is_from_model(raw: bytes) -> bool:
    try:
        return _is_from_model(read_json(raw, ItemPeek))
    except BadInput:
        return False  # decoding reports what is wrong, with the item's index


def items_in(raw: bytes) -> list[bytes]:
    """Return the items of one message as the bytes they were written in."""
    return [bytes(item) for item in read_json(raw, list[Raw])] if raw.lstrip()[:1] == b"[" else [raw]


def _is_from_model(item: ItemPeek) -> bool:
    """Return whether the model produced the item: its messages, reasoning, calls, and every item of an unknown type."""
    if item.type == "message":
        return item.role == "assistant"
    return item.type not in _CLIENT_TYPES and not _is_output(item)


def _is_output(item: ItemPeek) -> bool:
    """Return whether the item is the output of a tool that the client ran."""
    return item.type.endswith(_OUTPUT) and bool(_answered_call(item))


def _answered_call(item: ItemPeek) -> str:
    """Return the id of the call that an output answers; a local shell's output may have it as `id`."""
    return item.call_id or (item.id if item.type == "local_shell_call_output" else "") or ""


# Decoding

_COMPACTION_TYPES = frozenset({"compaction", "compaction_summary"})
_WINDOW_BLOCK = "compaction_window"
"""Block name of a compaction item outside an answer: it closes a window that the compaction endpoint returned, and OpenAI
wants such a window back whole."""
# Fields of a call that are not its arguments.
_CALL_METADATA = frozenset({"type", "id", "call_id", "status", "name", "namespace", "caller", "created_by"})
_TEXTS = frozenset({"input_text", "output_text", "text"})


class _Typed(Struct):
    type: str = ""


class _Text(Struct):
    text: str


class _Image(Struct):
    image_url: str | None = None
    file_id: str | None = None
    detail: str | None = None


class _File(Struct):
    file_data: str | None = None
    file_id: str | None = None
    file_url: str | None = None
    filename: str | None = None


class _Message(Struct):
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


class _ShellRun(Struct):
    stdout: str = ""
    stderr: str = ""


def decode_message(raw: bytes, index: int) -> Message:
    """Return the message in `raw`, one item or the array of an answer's items, or raise MalformedMessage."""
    try:
        return _decode(raw)
    except BadInput as error:
        raise MalformedMessage(index, str(error)) from None


def _decode(raw: bytes) -> Message:
    wire = Wire(format="openai_responses", raw=raw)
    if raw.lstrip()[:1] == b"[":
        parts = [part for own in _answer_parts(items_in(raw)) for part in own]
        return Message(role="assistant", parts=tuple(parts), wire=wire)
    item = read_json(raw, ItemPeek)
    return Message(role=_role(item), parts=tuple(_parts_of(raw, item)), wire=wire)


def _role(item: ItemPeek) -> Role:
    if item.type == "message":
        if item.role is None:
            raise BadInput("an item has neither a type nor a role")
        if item.role not in get_args(Role) or item.role == "tool":
            raise BadInput(
                f"unknown role {item.role[:40]!r}: expected one of user, assistant, system, developer"
            )
        return item.role  # type: ignore[return-value]  # a member of Role, as checked above
    if _is_output(item):
        return "tool"
    return "assistant" if _is_from_model(item) else "user"


def _answer_parts(items: Sequence[bytes]) -> list[Sequence[AnyPart]]:
    """Return the parts of each item of one answer.

    A call that the provider ran itself is in the answer together with its output; both stay opaque and are never edited.
    """
    peeks = [read_json(item, ItemPeek) for item in items]
    if any(peek.type == "message" and peek.role != "assistant" for peek in peeks):
        raise BadInput("a list of items that are not one answer of the model")
    answered = {_answered_call(peek) for peek in peeks if _is_output(peek)}
    return [
        [Opaque(block=peek.type, body=raw.decode())]
        if _is_output(peek) or (peek.call_id and peek.call_id in answered)
        else _parts_of(raw, peek, alone=len(items) == 1)
        for raw, peek in zip(items, peeks, strict=True)
    ]


def _parts_of(raw: bytes, item: ItemPeek, *, alone: bool = True) -> Sequence[AnyPart]:
    """Return the parts of one item; `alone` if it is not one of several in an answer."""
    if item.type == "message":
        return _message_parts(raw, item)
    if item.type == "reasoning":
        return [_decode_reasoning(raw)]
    if _is_output(item):
        return [_decode_result(raw, item)]
    if item.type.endswith(_CALL) and item.call_id:
        return [_decode_call(raw, item, item.call_id)]
    if not item.type:
        raise BadInput("an item has an empty type")
    is_window = alone and item.type in _COMPACTION_TYPES
    block = _WINDOW_BLOCK if is_window else "compaction" if item.type in _COMPACTION_TYPES else item.type
    return [Opaque(block=block, body=raw.decode())]


def _message_parts(raw: bytes, item: ItemPeek) -> list[ResultPart]:
    content = read_json(raw, _Message).content
    if content is None:
        raise BadInput("a message has no content")
    if isinstance(content, str):
        return [Text(text=content)] if content else []
    own = "output_text" if item.role == "assistant" else "input_text"
    return [_decode_content(bytes(part), own) for part in content]


def _decode_reasoning(raw: bytes) -> Thinking:
    """Return the reasoning in an item; encrypted reasoning is kept as the signature."""
    reasoning = read_json(raw, _Reasoning)
    pieces = [*(reasoning.summary or []), *(reasoning.content or [])]
    text = "\n".join(piece.text for piece in pieces)
    return Thinking(
        text=text,
        signature=reasoning.encrypted_content or "",
        redacted=not text,
        extra=extra_of(raw, {"type", "encrypted_content"}),
    )


def _decode_call(raw: bytes, item: ItemPeek, call_id: str) -> ToolCall:
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
            own = {name: value for name, value in fields.items() if name not in _CALL_METADATA}
            metadata = {name: value for name, value in fields.items() if name in _CALL_METADATA - {"call_id"}}
            name = item.type.removesuffix(_CALL)
            arguments = write_object(own).decode()
            return ToolCall(id=call_id, name=name, arguments=arguments, extra=write_object(metadata))


def _decode_result(raw: bytes, item: ItemPeek) -> ToolResult:
    output = bytes(read_json(raw, _Output).output)
    known = {"call_id", "output"} | ({"type"} if item.type == "function_call_output" else set())
    return ToolResult(
        call_id=_answered_call(item), parts=_output_parts(output, item.type), extra=extra_of(raw, known)
    )


def _output_parts(output: bytes, kind: str) -> tuple[ResultPart, ...]:
    match output.lstrip()[:1]:
        case b'"':
            text = read_json(output, str)
            return (Text(text=text),) if text else ()
        case b"[" if kind == "shell_call_output":
            return tuple(_shell_text(bytes(run)) for run in read_json(output, list[Raw]))
        case b"[":
            return tuple(_decode_content(bytes(part), "input_text") for part in read_json(output, list[Raw]))
        case b"{":
            return (Opaque(block=kind, body=output.decode()),)
        case _:
            return ()


def _shell_text(raw: bytes) -> Text:
    """Return what one shell command wrote."""
    run = read_json(raw, _ShellRun)
    text = "\n".join(stream for stream in (run.stdout, run.stderr) if stream)
    return Text(text=text, extra=extra_of(raw, {"stdout", "stderr"}))


def _decode_content(raw: bytes, own: str) -> ResultPart:
    """Return one content part; `own` is the type of text in this place, `input_text` or `output_text`."""
    match read_json(raw, _Typed).type:
        case kind if kind in _TEXTS:
            known = {"text"} | ({"type"} if kind == own else set())
            return Text(text=read_json(raw, _Text).text, extra=extra_of(raw, known))
        case "input_image":
            return _image(raw)
        case "input_file":
            return _file(raw)
        case "":
            raise BadInput("a content part has no type")
        case kind:
            return Opaque(block=kind, body=raw.decode())


def _image(raw: bytes) -> Image:
    image = read_json(raw, _Image)
    media_type, data = split_data_url(image.image_url or "")
    source: Source = "file" if image.file_id else "base64" if data else "url"
    return Image(
        source=source,
        data=image.file_id or data or image.image_url or "",
        media_type=media_type,
        detail=image.detail or "",
        extra=_extra(raw, _Image),
    )


def _file(raw: bytes) -> Document:
    file = read_json(raw, _File)
    media_type, data = split_data_url(file.file_data or "")
    source: Source = "file" if file.file_id else "url" if file.file_url else "base64"
    return Document(
        source=source,
        data=file.file_id or file.file_url or data or file.file_data or "",
        media_type=media_type,
        title=file.filename or "",
        extra=_extra(raw, _File),
    )


def _extra(raw: bytes, known: type[Struct]) -> bytes:
    return extra_of(raw, {"type", *known.__struct_fields__})


# Encoding: what arrived in this format, edited or not

_BOUND_TYPES = frozenset({"message", "function_call", "custom_tool_call", "local_shell_call"})
"""Types of items whose `id` OpenAI ties to the reasoning before them: it refuses one whose reasoning is missing."""
_CONTENT_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})
"""Outputs that are text or a content array."""
_TEXT_OUTPUTS = frozenset({"local_shell_call_output", "apply_patch_call_output"})
"""Outputs that are text only."""
_EXITED = b'{"type":"exit","exit_code":0}'


def encode_messages(messages: Sequence[Message]) -> list[bytes]:
    """Return the items of all messages; those that arrived in this format and were not edited leave exactly as they arrived.

    So do the unchanged items of an edited answer. The type of an output item follows from that of its call.
    """
    encoded: list[bytes] = []
    kinds: dict[str, str] = {}
    for message in messages:
        for call in message.calls:
            kinds[call.id] = _call_type(call)
        wire = message.wire
        if wire is None or wire.format != "openai_responses":
            encoded.extend(_converted(message, kinds))
        elif wire.exact:
            encoded.extend(items_in(wire.raw))
        else:
            encoded.extend(_edited(message, wire.raw, kinds))
    return encoded


def _call_type(call: ToolCall) -> str:
    """Return the type of the item that makes a call."""
    written = fields_of(call.extra).get("type", b'""')
    kind = read_json(written, str) if written[:1] == b'"' else ""
    return kind if kind.endswith(_CALL) else "function" + _CALL


def _edited(message: Message, raw: bytes, kinds: dict[str, str]) -> list[bytes]:
    if message.role == "assistant":
        return _edited_answer(message.parts, items_in(raw))
    if message.results:
        kind = read_json(raw, ItemPeek).type
        first = _edited_result(message.results[0], raw, kind)
        return [first, *(_encode_output(result, kinds) for result in message.results[1:])]
    fields = read_fields(raw)
    was_text = fields.get("content", b"").lstrip()[:1] == b'"'
    match message.parts:
        case (Opaque(body=body),) if "content" not in fields:
            return [body.encode()]
        case (Text(text=text, extra=b""),) if was_text:
            return [write_object(fields | {"content": write_json(text)})]
        case parts:
            return [write_object(fields | {"content": _encode_content(parts, "input_text")})]


def _edited_answer(parts: Sequence[AnyPart], items: Sequence[bytes]) -> list[bytes]:
    """Return the items of an answer whose parts were edited.

    An item that still has all its parts leaves as it arrived; one that has lost all of them is removed. Items after
    removed reasoning lose their `id`, because OpenAI would refuse them without that reasoning.
    """
    encoded: list[bytes] = []
    is_unbound = False
    original = _answer_parts(items)
    if not any(original):
        return [*items, *map(_encode_item, parts)]
    for item, before, kept in zip(items, original, _assign_parts(parts, original), strict=True):
        peek = read_json(item, ItemPeek)
        if before and not kept:
            is_unbound = is_unbound or peek.type == "reasoning"
            continue
        rebuilt = [item] if _are_same(kept, before) else _rebuild_item(item, peek, kept)
        encoded.extend(map(_without_id, rebuilt) if is_unbound else rebuilt)
    return encoded


def _assign_parts(parts: Sequence[AnyPart], original: Sequence[Sequence[AnyPart]]) -> list[list[AnyPart]]:
    """Return the parts that each original item has now: its own, or those that replace them.

    A new part goes to the next item that had a part of the same type.
    """
    before = [(at, part) for at, own in enumerate(original) for part in own]
    assigned: list[list[AnyPart]] = [[] for _ in original]
    start = 0
    for part in parts:
        place = next((i for i in range(start, len(before)) if _is_same(before[i][1], part)), None)
        if place is None:
            alike = (i for i in range(start, len(before)) if type(before[i][1]) is type(part))
            place = next(alike, min(start, len(before) - 1))
        assigned[before[place][0]].append(part)
        start = place + 1
    return assigned


def _rebuild_item(item: bytes, peek: ItemPeek, parts: Sequence[AnyPart]) -> list[bytes]:
    if peek.type == "message" and not any(isinstance(part, ToolCall | Thinking) for part in parts):
        fields = read_fields(item)
        if fields["content"].lstrip()[:1] == b'"' and _is_single_text(parts):
            return [write_object(fields | {"content": write_json(parts[0].text)})]  # type: ignore[union-attr]
        return [write_object(fields | {"content": _encode_content(parts, "output_text")})]
    return [_renamed_item(part) if _is_renamed(part, peek) else _encode_item(part) for part in parts]


def _is_renamed(part: AnyPart, peek: ItemPeek) -> bool:
    return isinstance(part, ToolCall) and part.id != peek.call_id


def _renamed_item(part: AnyPart) -> bytes:
    """Return an item that makes a call under a new id. It has no item `id`: OpenAI refuses two items with one."""
    fields = read_fields(_encode_item(part))
    return write_object({name: value for name, value in fields.items() if name != "id"})


def _encode_item(part: AnyPart) -> bytes:
    match part:
        case Thinking():
            return _encode_reasoning(part)
        case ToolCall():
            return _encode_call(part)
        case Opaque():
            return part.body.encode()
        case _:
            content = _encode_content([part], "output_text")
            return write_object({"type": b'"message"', "role": b'"assistant"', "content": content})


def _encode_reasoning(reasoning: Thinking) -> bytes:
    fields = {"type": b'"reasoning"', "summary": b"[]"} | fields_of(reasoning.extra)
    if reasoning.signature:
        fields["encrypted_content"] = write_json(reasoning.signature)
    if _decode_reasoning(write_object(fields)).text != reasoning.text:
        fields.pop("content", None)
        fields["summary"] = write_json([{"type": "summary_text", "text": reasoning.text}])
    return write_object(fields)


def _encode_call(call: ToolCall) -> bytes:
    extra = fields_of(call.extra)
    kind = extra.get("type", b'"function_call"')
    fields = {"type": kind, "call_id": write_json(call.id)}
    if kind == b'"function_call"':
        fields |= {"name": write_json(call.name), "arguments": write_json(call.arguments)}
    elif kind == b'"custom_tool_call"':
        fields |= {"name": write_json(call.name), "input": write_json(call.arguments)}
    else:
        fields |= read_fields(call.arguments.encode())
    return write_object(fields | extra)


def _without_id(item: bytes) -> bytes:
    if read_json(item, ItemPeek).type not in _BOUND_TYPES:
        return item
    fields = read_fields(item)
    bare = {name: value for name, value in fields.items() if name != "id"}
    return item if bare == fields else write_object(bare)


def _are_same(ours: Sequence[AnyPart], theirs: Sequence[AnyPart]) -> bool:
    return len(ours) == len(theirs) and all(map(_is_same, ours, theirs))


def _is_same(ours: AnyPart, theirs: AnyPart) -> bool:
    return ours == theirs and ours.extra == theirs.extra


def _is_single_text(parts: Sequence[AnyPart]) -> bool:
    return len(parts) == 1 and isinstance(parts[0], Text) and not parts[0].extra


def _edited_result(result: ToolResult, raw: bytes, kind: str) -> bytes:
    """Return an output item of type `kind` with the result's parts and call; an output that is not text stays as it arrived."""
    fields = read_fields(raw)
    peek = read_json(raw, ItemPeek)
    if _answered_call(peek) != result.call_id:
        fields["call_id" if peek.call_id else "id"] = write_json(result.call_id)
        raw = write_object(fields)
    match kind:
        case _ if kind in _CONTENT_OUTPUTS:
            output = _result_output(result)
        case _ if kind in _TEXT_OUTPUTS:
            output = write_json(result.text)
        case "shell_call_output":
            output = write_array([_encode_shell_run(part) for part in result.parts])
        case _:
            return raw
    return write_object(fields | {"output": output})


def _result_output(result: ToolResult) -> bytes:
    match result.parts:
        case ():
            return b'""'
        case (Text(text=text, extra=b""),):
            return write_json(text)
        case parts:
            return _encode_content(parts, "input_text")


def _encode_shell_run(part: AnyPart) -> bytes:
    text = part.text if isinstance(part, Text) else ""
    run = {"stdout": write_json(text), "stderr": b'""', "outcome": _EXITED}
    return write_object(run | fields_of(part.extra))


# Encoding: messages of other formats, and content


def _converted(message: Message, kinds: dict[str, str]) -> list[bytes]:
    """Return the items of a message of another format, without its thinking: OpenAI accepts only reasoning it signed."""
    parts = [as_portable(part) for part in message.parts if not isinstance(part, Thinking)]
    encoded = [_encode_output(part, kinds) for part in parts if isinstance(part, ToolResult)]
    content: list[AnyPart] = []
    for part in parts:
        if isinstance(part, ToolCall):
            encoded.extend(_encode_message(message.role, content))
            content = []
            encoded.append(_encode_function_call(part))
        elif not isinstance(part, ToolResult) and not (isinstance(part, Text) and not part.text):
            content.append(part)
    return [*encoded, *_encode_message(message.role, content)]


def _encode_message(role: str, parts: Sequence[AnyPart]) -> list[bytes]:
    if not parts:
        return []
    role = "user" if role == "tool" else role
    own = "output_text" if role == "assistant" else "input_text"
    content = _encode_content(parts, own)
    return [write_object({"type": b'"message"', "role": write_json(role), "content": content})]


def _encode_function_call(call: ToolCall) -> bytes:
    return write_object(
        {
            "type": b'"function_call"',
            "call_id": write_json(call.id),
            "name": write_json(call.name),
            "arguments": write_json(call.arguments),
        }
    )


def _encode_output(result: ToolResult, kinds: dict[str, str]) -> bytes:
    kind = kinds.get(result.call_id, "function" + _CALL) + _OUTPUT
    bare = {"type": write_json(kind), "call_id": write_json(result.call_id)}
    return _edited_result(result, write_object(bare), kind)


def _encode_content(parts: Sequence[AnyPart], own: str) -> bytes:
    """Return parts as a content array."""
    return write_array([_encode_content_part(part, own) for part in parts])


def _encode_content_part(part: AnyPart, own: str) -> bytes:
    fields: dict[str, bytes]
    match part:
        case Text():
            fields = {"type": write_json(own), "text": write_json(part.text)}
        case Image():
            fields = {"type": b'"input_image"'} | _image_source(part)
            if part.detail:
                fields["detail"] = write_json(part.detail)
        case Document(source="text"):
            fields = {"type": write_json(own), "text": write_json(part.data)}
        case Document():
            fields = {"type": b'"input_file"'} | _file_source(part)
        case Opaque():
            return part.body.encode()
        case _:
            raise AssertionError(f"a {part.kind} is not a content part")
    return write_object(fields | fields_of(part.extra))


def _image_source(image: Image) -> dict[str, bytes]:
    if image.source == "file":
        return {"file_id": write_json(image.data)}
    is_data = image.source == "base64"
    url = f"data:{image.media_type};base64,{image.data}" if is_data else image.data
    return {"image_url": write_json(url)}


def _file_source(document: Document) -> dict[str, bytes]:
    match document.source:
        case "file":
            source = {"file_id": document.data}
        case "url":
            source = {"file_url": document.data}
        case _:
            head = f"data:{document.media_type};base64," if document.media_type else ""
            source = {"file_data": head + document.data}
    if document.title:
        source["filename"] = document.title
    return {name: write_json(value) for name, value in source.items()}


# Failed responses, and requests whose history is at the provider

_FAILED_STATUSES = frozenset({"failed", "cancelled"})
# Fields of a request that refer to history at the provider.
_STATE_FIELDS = ("previous_response_id", "conversation")
_REFERENCE = b"item_reference"


class FailedResponse(Struct, frozen=True, kw_only=True):
    """A response that ended without an answer."""

    said: str
    """The provider's error code, a colon and its message."""
    usage: Usage | None
    """None if the provider reported none."""


class _Error(Struct):
    code: Any = None
    message: str | None = None


class _Response(Struct):
    status: Any = None
    error: _Error | None = None
    usage: Raw = _NULL


def failed_in(raw: bytes) -> FailedResponse | None:
    """Return the failure if the body is a failed or cancelled response, else None; raise BadInput if it is not a JSON object."""
    response = read_json(raw, _Response)
    if response.status not in _FAILED_STATUSES:
        return None
    error, usage = response.error or _Error(), bytes(response.usage)
    return FailedResponse(
        said=f"{error.code or 'error'}: {error.message or ''}",
        usage=None if usage == b"null" else decode_openai_usage(usage),
    )


def is_elsewhere(fields: Mapping[str, bytes]) -> bool:
    """Return whether a request with these fields refers to history that only the provider stores.

    Such a request cannot be compacted, because part of the conversation is not in it.
    """
    if any(fields.get(name, b"null").strip() != b"null" for name in _STATE_FIELDS):
        return True
    listed = fields.get("input", b"")
    return _REFERENCE in listed and any(map(_is_reference, _raw_items(listed)))


def _raw_items(listed: bytes) -> list[Raw]:
    try:
        return read_json(listed, list[Raw])
    except BadInput:
        return []


def _is_reference(raw: Raw) -> bool:
    try:
        item = read_json(bytes(raw), ItemPeek)
    except BadInput:
        return False
    return item.type == "item_reference"
