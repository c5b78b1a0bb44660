"""All formats under one roof: read messages and requests, write them back."""

from collections.abc import Callable, Sequence
from types import MappingProxyType

from msgspec import Raw, Struct
from msgspec.structs import replace

from lowwater.errors import BadInput, MalformedMessage, UnknownFormat
from lowwater.values.message import Format, Message
from lowwater.values.request import Request
from lowwater.wire.anthropic.decode import decode_message as decode_anthropic
from lowwater.wire.anthropic.encode import encode_messages as encode_anthropic
from lowwater.wire.detect import detect, told_format
from lowwater.wire.openai_chat.decode import decode_message as decode_chat
from lowwater.wire.openai_chat.encode import encode_messages as encode_chat
from lowwater.wire.reading import read_fields, read_json, write_array, write_json, write_object

_DECODERS: MappingProxyType[Format, Callable[[bytes, int], Message]] = MappingProxyType(
    {"openai_chat": decode_chat, "anthropic": decode_anthropic}
)
_ENCODERS: MappingProxyType[Format, Callable[[Sequence[Message]], list[bytes]]] = MappingProxyType(
    {"openai_chat": encode_chat, "anthropic": encode_anthropic}
)


class _Limits(Struct):
    model: str | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None


def split_array(data: bytes) -> list[bytes]:
    """Return the items of a JSON array, each as the bytes it was written in."""
    return [bytes(item) for item in read_json(data, list[Raw])]


def raw_messages(messages: Sequence[object]) -> list[bytes]:
    """Return messages a Python caller holds (dicts, SDK objects, or bytes already) as bytes."""
    raws = []
    for index, message in enumerate(messages):
        try:
            raws.append(message if isinstance(message, bytes) else write_json(message))
        except BadInput as error:
            raise MalformedMessage(index, str(error)) from None
    return raws


def decode_messages(raws: Sequence[bytes], format: Format | None = None) -> list[Message]:
    """Return the messages in `raws`; without a format it is told from what they say."""
    decode = _DECODERS[format or detect(raws)]
    return [decode(raw, index) for index, raw in enumerate(raws)]


def encode_messages(messages: Sequence[Message], format: Format) -> list[bytes]:
    """Return `messages` as bytes; those that came in `format` and were not edited leave exactly as they came."""
    return _ENCODERS[format](messages)


def reread(messages: Sequence[Message], *, assumed: Format | None, format: Format) -> list[Message]:
    """Return messages that were read in `assumed` before any told its format as read in `format`.

    They say nothing that only one format allows, so that they may leave in the bytes they came in.
    """
    if assumed is None or assumed == format:
        return list(messages)
    return [_reread(message, assumed, format) for message in messages]


def _reread(message: Message, assumed: Format, format: Format) -> Message:
    wire = message.wire
    if wire is None or not wire.exact or wire.format != assumed or told_format([wire.raw]) is not None:
        return message
    return _DECODERS[format](wire.raw, 0)


def decode_request(body: bytes, format: Format | None = None) -> Request:
    """Return the request in `body`, or raise a BadInput that says what to change."""
    fields = read_fields(body)
    if "messages" not in fields:
        raise UnknownFormat(
            "the request has no `messages`: expected a chat-completions or a messages request"
        )
    raws = split_array(fields["messages"])
    limits = read_json(body, _Limits)
    found = format or detect(raws, _with_tool_shape(fields))
    return Request(
        format=found,
        body=body,
        messages=tuple(decode_messages(raws, found)),
        system=fields.get("system", b""),
        tools=fields.get("tools", b""),
        model=limits.model or "",
        max_tokens=limits.max_completion_tokens or limits.max_tokens,
    )


def encode_request(request: Request) -> bytes:
    """Return the body to send: the bytes it came in where nothing changed, else those fields that did."""
    fields = read_fields(request.body)
    messages = encode_messages(request.messages, request.format)
    if split_array(fields["messages"]) != messages:
        fields["messages"] = write_array(messages)
    elif all(fields.get(name, b"") == value for name, value in _preamble(request)):
        return request.body
    for name, value in _preamble(request):
        if value:
            fields[name] = value
        else:
            fields.pop(name, None)
    return write_object(fields)


def with_messages(request: Request, messages: Sequence[Message]) -> Request:
    """Return the request with other messages; every other field stays."""
    return replace(request, messages=tuple(messages))


def _preamble(request: Request) -> tuple[tuple[str, bytes], tuple[str, bytes]]:
    return (("system", request.system), ("tools", request.tools))


def _with_tool_shape(fields: dict[str, bytes]) -> set[str]:
    """Return the field names, and one more that tells the format when the tools do."""
    names = set(fields)
    if b'"input_schema"' in fields.get("tools", b""):
        names |= {"anthropic_version", "system"}
    return names
