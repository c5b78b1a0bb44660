"""All formats under one roof: read messages and requests, write them back."""

from collections.abc import Callable, Sequence
from types import MappingProxyType

from msgspec import Raw, Struct

from lowwater.errors import BadInput, MalformedMessage, UnknownFormat
from lowwater.values.message import Format, Message
from lowwater.values.request import Request
from lowwater.wire.anthropic.decode import decode_message as decode_anthropic
from lowwater.wire.anthropic.encode import encode_messages as encode_anthropic
from lowwater.wire.detect import detect, formats_of
from lowwater.wire.openai_chat.decode import decode_message as decode_chat
from lowwater.wire.openai_chat.encode import encode_messages as encode_chat
from lowwater.wire.openai_responses.decode import decode_message as decode_responses
from lowwater.wire.openai_responses.encode import encode_messages as encode_responses
from lowwater.wire.openai_responses.items import items_in, joined
from lowwater.wire.reading import read_fields, read_json, write_array, write_json, write_object

_DECODERS: MappingProxyType[Format, Callable[[bytes, int], Message]] = MappingProxyType(
    {"openai_chat": decode_chat, "anthropic": decode_anthropic, "openai_responses": decode_responses}
)
_ENCODERS: MappingProxyType[Format, Callable[[Sequence[Message]], list[bytes]]] = MappingProxyType(
    {"openai_chat": encode_chat, "anthropic": encode_anthropic, "openai_responses": encode_responses}
)


class _Limits(Struct):
    model: str | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    max_output_tokens: int | None = None


def split_array(data: bytes) -> list[bytes]:
    """Return the items of a JSON array, each as the bytes it was written in."""
    return [bytes(item) for item in read_json(data, list[Raw])]


def split_messages(data: bytes) -> list[bytes]:
    """Return the messages or items that a client listed, or raise MalformedMessage for one that is a list itself."""
    raws = split_array(data)
    for index, raw in enumerate(raws):
        if raw.lstrip()[:1] == b"[":
            raise MalformedMessage(index, "expected object, got array")
    return raws


def raw_messages(messages: Sequence[object]) -> list[bytes]:
    """Return messages a Python caller holds (dicts, SDK objects, or bytes already) as bytes."""
    raws = []
    for index, message in enumerate(messages):
        if not isinstance(message, bytes) and _holds_bytes(message):
            raise MalformedMessage(index, "bytes are no message content: decode them to text first")
        try:
            raws.append(message if isinstance(message, bytes) else write_json(message))
        except BadInput as error:
            raise MalformedMessage(index, str(error)) from None
    return raws


def _holds_bytes(value: object) -> bool:
    """Return whether bytes stand anywhere in `value`; JSON would silently hold them as base64."""
    left = [value]
    while left:
        inner = left.pop()
        if isinstance(inner, dict):
            left += [each for each in inner.values() if not isinstance(each, str)]
        elif isinstance(inner, list | tuple):
            left += [each for each in inner if not isinstance(each, str)]
        elif isinstance(inner, bytes | bytearray | memoryview):
            return True
    return False


def messages_in(raws: Sequence[bytes], format: Format) -> list[bytes]:
    """Return one piece of JSON for each message: in the Responses format, the items of an answer are one together."""
    return joined(raws) if format == "openai_responses" else list(raws)


def decode_messages(raws: Sequence[bytes], format: Format | None = None) -> list[Message]:
    """Return the messages in `raws`; without a format it is told from what they say.

    There are as many as `messages_in` returns. What is malformed is named by its place in `raws`.
    """
    format = format or detect(raws)
    decode = _DECODERS[format]
    if format != "openai_responses":
        return [decode(raw, index) for index, raw in enumerate(raws)]
    messages: list[Message] = []
    index = 0
    for raw in joined(raws):
        messages.append(decode(raw, index))
        index += len(items_in(raw))
    return messages


def encode_messages(messages: Sequence[Message], format: Format) -> list[bytes]:
    """Return `messages` as bytes; those that came in `format` and were not edited leave exactly as they came.

    In the Responses format these are items, of which an answer may have several.
    """
    return _ENCODERS[format](messages)


def reread(messages: Sequence[Message], *, assumed: Format | None, format: Format) -> list[Message]:
    """Return messages that were read in `assumed` before any told its format as read in `format`.

    As far as they read the same there, they may leave in the bytes they came in.
    """
    if assumed is None or assumed == format:
        return list(messages)
    return [_reread(message, assumed, format) for message in messages]


def _reread(message: Message, assumed: Format, format: Format) -> Message:
    wire = message.wire
    if wire is None or not wire.exact or wire.format != assumed or format not in formats_of(wire.raw):
        return message
    try:
        return _DECODERS[format](wire.raw, 0)
    except BadInput:
        return message  # what only looked the same is told in this format's own words


def decode_request(body: bytes, format: Format | None = None) -> Request:
    """Return the request in `body`, or raise a BadInput that says what to change."""
    fields = read_fields(body)
    if format == "openai_responses" or ("input" in fields and "messages" not in fields):
        format = "openai_responses"
    listed = _listed(fields, format)
    limits = read_json(body, _Limits)
    found = format or detect(listed, _with_tool_shape(fields))
    return Request(
        format=found,
        body=body,
        messages=tuple(decode_messages(listed, found)),
        system=_given(fields, system_field(found)),
        tools=fields.get("tools", b""),
        model=limits.model or "",
        max_tokens=limits.max_completion_tokens or limits.max_tokens or limits.max_output_tokens,
    )


def encode_request(request: Request) -> bytes:
    """Return the body to send: the bytes it came in where nothing changed, else those fields that did."""
    fields = read_fields(request.body)
    messages = encode_messages(request.messages, request.format)
    system = system_field(request.format)
    preamble = ((system, request.system), ("tools", request.tools))
    if _listed(fields, request.format) != messages:
        fields[list_field(request.format)] = write_array(messages)
    elif all(_given(fields, name) == value for name, value in preamble):
        return request.body
    for name, value in preamble:
        if value:
            fields[name] = value
        elif _given(fields, name):
            del fields[name]
    return write_object(fields)


def list_field(format: Format) -> str:
    """Return the name of the field that holds a request's conversation."""
    return "input" if format == "openai_responses" else "messages"


def system_field(format: Format) -> str:
    """Return the name of the field that holds a system prompt apart from the conversation."""
    return "instructions" if format == "openai_responses" else "system"


def _listed(fields: dict[str, bytes], format: Format | None) -> list[bytes]:
    """Return the pieces of the conversation; a Responses request may have one text instead, which the user says."""
    name = list_field(format or "openai_chat")
    if name not in fields:
        raise UnknownFormat(
            "the request has no `messages` and no `input`: expected a chat-completions, messages or responses request"
        )
    if name == "input" and fields[name].lstrip()[:1] == b'"':
        return [write_object({"role": b'"user"', "content": fields[name]})]
    return split_messages(fields[name])


def _given(fields: dict[str, bytes], name: str) -> bytes:
    value = fields.get(name, b"")
    return b"" if name == "instructions" and value == b"null" else value


def _with_tool_shape(fields: dict[str, bytes]) -> set[str]:
    """Return the field names, and one more that tells the format when the tools do."""
    names = set(fields)
    if b'"input_schema"' in fields.get("tools", b""):
        names |= {"anthropic_version", "system"}
    return names
