"""The OpenAI Responses format, in which one answer is several items."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from msgspec import Raw, Struct

from lowwater.core.api_calls import Usage
from lowwater.core.formats.convert import crossed
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

OUTPUT = "_output"
CALL = "_call"

_CLIENTS = frozenset(
    {"mcp_approval_response", "compaction_trigger", "additional_tools", "configuration_update"}
)
"""Items of the client that are neither a message nor a tool's output."""


_OTHERS = frozenset({"message", "reasoning", "item_reference", "compaction", "compaction_summary"})


class Peek(Struct, frozen=True, kw_only=True):
    """What tells an item from others."""

    type: str = "message"
    role: str | None = None
    call_id: str | None = None
    id: str | None = None


def is_known(kind: str) -> bool:
    """Return whether items have this type, as far as is known."""
    return kind in _OTHERS or kind in _CLIENTS or kind.endswith((CALL, CALL + OUTPUT))


def is_output(item: Peek) -> bool:
    """Return whether it is what a tool of the client answered."""
    return item.type.endswith(OUTPUT) and bool(answered_call(item))


def answered_call(item: Peek) -> str:
    """Return the id of the call that an output answers; that of a local shell may stand under another name."""
    return item.call_id or (item.id if item.type == "local_shell_call_output" else "") or ""


def is_of_model(item: Peek) -> bool:
    """Return whether the model said it: its messages, reasoning and calls, and whatever is of an unknown type."""
    if item.type == "message":
        return item.role == "assistant"
    return item.type not in _CLIENTS and not is_output(item)


def joined(raws: Sequence[bytes]) -> list[bytes]:
    """Return one piece of JSON for each message: an item, or the list of those that are one answer.

    An answer of one item is a list, too, so that pieces stay apart whatever is joined with them later.
    """
    found: list[bytes] = []
    run: list[bytes] = []
    for raw in raws:
        if raw.lstrip()[:1] == b"{" and _is_of_model(raw):
            run.append(raw)
            continue
        found.extend(_together(run))
        run = []
        found.append(raw)
    return [*found, *_together(run)]


def items_in(raw: bytes) -> list[bytes]:
    """Return the items of one message, each in the bytes it was written in."""
    return [bytes(item) for item in read_json(raw, list[Raw])] if raw.lstrip()[:1] == b"[" else [raw]


def _together(run: Sequence[bytes]) -> Iterator[bytes]:
    if run:
        yield write_array(list(run))


def _is_of_model(raw: bytes) -> bool:
    try:
        return is_of_model(read_json(raw, Peek))
    except BadInput:
        return False  # whatever is wrong with it, decoding it will say so with its index


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


def decode_content(raw: bytes, own: str) -> ResultPart:
    """Return one content part; `own` is the type that text has where it stands."""
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


def encode_content(parts: Sequence[AnyPart], own: str) -> bytes:
    """Return parts as a list of content."""
    return write_array([_encoded(part, own) for part in parts])


def _image(raw: bytes) -> Image:
    image = read_json(raw, _Image)
    media_type, data = _data_url(image.image_url or "")
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
    media_type, data = _data_url(file.file_data or "")
    source: Source = "file" if file.file_id else "url" if file.file_url else "base64"
    return Document(
        source=source,
        data=file.file_id or file.file_url or data or file.file_data or "",
        media_type=media_type,
        title=file.filename or "",
        extra=_extra(raw, _File),
    )


def _encoded(part: AnyPart, own: str) -> bytes:
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
            said = {"file_id": document.data}
        case "url":
            said = {"file_url": document.data}
        case _:
            head = f"data:{document.media_type};base64," if document.media_type else ""
            said = {"file_data": head + document.data}
    if document.title:
        said["filename"] = document.title
    return {name: write_json(value) for name, value in said.items()}


def _data_url(url: str) -> tuple[str, str]:
    """Return media type and data of a base64 data URL, or two empty strings for any other."""
    head, comma, data = url.partition(";base64,")
    return (head.removeprefix("data:"), data) if comma and head.startswith("data:") else ("", "")


def _extra(raw: bytes, known: type[Struct]) -> bytes:
    return extra_of(raw, {"type", *known.__struct_fields__})


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


_WORDY = frozenset({"function_call_output", "custom_tool_call_output"})
"""Outputs that are a text or a list of content."""
_PLAIN = frozenset({"local_shell_call_output", "apply_patch_call_output"})
"""Outputs that are a text."""
_RAN = b'{"type":"exit","exit_code":0}'
_BOUND = frozenset({"message", "function_call", "custom_tool_call", "local_shell_call"})
"""Items that a provider looks for the reasoning of, by their id."""


def edited_answer(parts: Sequence[AnyPart], items: Sequence[bytes]) -> list[bytes]:
    """Return the items of an answer with other parts than it came with.

    An item whose parts are all there leaves as it came, one without any is gone. Behind reasoning that is gone, items lose
    the id by which their provider would ask for it.
    """
    encoded: list[bytes] = []
    is_unbound = False
    came = answer_parts(items)
    if not any(came):
        return [*items, *map(_standing_alone, parts)]
    for item, before, kept in zip(items, came, _shared_out(parts, came), strict=True):
        peek = read_json(item, Peek)
        if before and not kept:
            is_unbound = is_unbound or peek.type == "reasoning"
            continue
        built = [item] if _are_same(kept, before) else _rebuilt(item, peek, kept)
        encoded.extend(map(_without_id, built) if is_unbound else built)
    return encoded


def edited_result(result: ToolResult, raw: bytes, kind: str) -> bytes:
    """Return an output of this kind with the result's parts; one that words cannot replace stays as it came."""
    match kind:
        case _ if kind in _WORDY:
            output = _words(result)
        case _ if kind in _PLAIN:
            output = write_json(result.text)
        case "shell_call_output":
            output = write_array([_rebuilt_run(part) for part in result.parts])
        case _:
            return raw
    return write_object(read_fields(raw) | {"output": output})


def _words(result: ToolResult) -> bytes:
    match result.parts:
        case ():
            return b'""'
        case (Text(text=text, extra=b""),):
            return write_json(text)
        case parts:
            return encode_content(parts, "input_text")


def _rebuilt_run(part: AnyPart) -> bytes:
    text = part.text if isinstance(part, Text) else ""
    told = {"stdout": write_json(text), "stderr": b'""', "outcome": _RAN}
    return write_object(told | fields_of(part.extra))


def _shared_out(parts: Sequence[AnyPart], came: Sequence[Sequence[AnyPart]]) -> list[list[AnyPart]]:
    """Return for each item the parts that are its own now: the same, or another in its place."""
    before = [(at, part) for at, own in enumerate(came) for part in own]
    shares: list[list[AnyPart]] = [[] for _ in came]
    left = 0
    for part in parts:
        place = next((i for i in range(left, len(before)) if _is_same(before[i][1], part)), None)
        if place is None:
            alike = (i for i in range(left, len(before)) if type(before[i][1]) is type(part))
            place = next(alike, min(left, len(before) - 1))
        shares[before[place][0]].append(part)
        left = place + 1
    return shares


def _rebuilt(item: bytes, peek: Peek, parts: Sequence[AnyPart]) -> list[bytes]:
    if peek.type == "message" and not any(isinstance(part, ToolCall | Thinking) for part in parts):
        fields = read_fields(item)
        if fields["content"].lstrip()[:1] == b'"' and _is_text(parts):
            return [write_object(fields | {"content": write_json(parts[0].text)})]  # type: ignore[union-attr]
        return [write_object(fields | {"content": encode_content(parts, "output_text")})]
    return [_standing_alone(part) for part in parts]


def _standing_alone(part: AnyPart) -> bytes:
    match part:
        case Thinking():
            return _reasoning(part)
        case ToolCall():
            return _rebuilt_call(part)
        case Opaque():
            return part.body.encode()
        case _:
            content = encode_content([part], "output_text")
            return write_object({"type": b'"message"', "role": b'"assistant"', "content": content})


def _reasoning(thought: Thinking) -> bytes:
    fields = {"type": b'"reasoning"', "summary": b"[]"} | fields_of(thought.extra)
    if thought.signature:
        fields["encrypted_content"] = write_json(thought.signature)
    if thought_in(write_object(fields)).text != thought.text:
        fields.pop("content", None)
        fields["summary"] = write_json([{"type": "summary_text", "text": thought.text}])
    return write_object(fields)


def _rebuilt_call(call: ToolCall) -> bytes:
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
    if read_json(item, Peek).type not in _BOUND:
        return item
    fields = read_fields(item)
    bare = {name: value for name, value in fields.items() if name != "id"}
    return item if bare == fields else write_object(bare)


def _are_same(ours: Sequence[AnyPart], theirs: Sequence[AnyPart]) -> bool:
    return len(ours) == len(theirs) and all(map(_is_same, ours, theirs))


def _is_same(ours: AnyPart, theirs: AnyPart) -> bool:
    return ours == theirs and ours.extra == theirs.extra


def _is_text(parts: Sequence[AnyPart]) -> bool:
    return len(parts) == 1 and isinstance(parts[0], Text) and not parts[0].extra


_NULL = Raw(b"null")
_ENDS = frozenset({"failed", "cancelled"})


class Failed(Struct, frozen=True, kw_only=True):
    """The provider's code, a colon, and its words; and the usage, None if it told none."""

    said: str
    usage: Usage | None


class _Error(Struct):
    code: Any = None
    message: str | None = None


class _Response(Struct):
    status: Any = None
    error: _Error | None = None
    usage: Raw = _NULL


def failed_in(raw: bytes) -> Failed | None:
    """Return what became of a response without an answer; None for any other body. Raises BadInput for what is no JSON object."""
    response = read_json(raw, _Response)
    if response.status not in _ENDS:
        return None
    error, usage = response.error or _Error(), bytes(response.usage)
    return Failed(
        said=f"{error.code or 'error'}: {error.message or ''}",
        usage=None if usage == b"null" else decode_openai_usage(usage),
    )


_GOES_ON_WITH = ("previous_response_id", "conversation")
_REFERENCE = b"item_reference"


def is_elsewhere(fields: Mapping[str, bytes]) -> bool:
    """Return whether the request with these fields leaves (part of) its history to the provider's memory.

    Nobody else can shorten such a request, for nobody else sees what it is about.
    """
    if any(fields.get(name, b"null").strip() != b"null" for name in _GOES_ON_WITH):
        return True
    listed = fields.get("input", b"")
    return _REFERENCE in listed and any(map(_is_reference, _items(listed)))


def _items(listed: bytes) -> list[Raw]:
    try:
        return read_json(listed, list[Raw])
    except BadInput:
        return []


def _is_reference(raw: Raw) -> bool:
    try:
        item = read_json(bytes(raw), Peek)
    except BadInput:
        return False
    # The API takes an item that says nothing but an id for a reference.
    return item.type == "item_reference"


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
