"""Items that were edited: built anew from their parts as far as they differ, their other fields kept."""

from collections.abc import Sequence

from lowwater.values.parts import AnyPart, Opaque, Text, Thinking, ToolCall, ToolResult
from lowwater.wire.openai_responses.content import encode_content
from lowwater.wire.openai_responses.decode import answer_parts, thought_in
from lowwater.wire.openai_responses.items import Peek
from lowwater.wire.reading import fields_of, read_fields, read_json, write_array, write_json, write_object

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
            output = write_array([_ran(part) for part in result.parts])
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


def _ran(part: AnyPart) -> bytes:
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
            return _call(part)
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


def _call(call: ToolCall) -> bytes:
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
