"""Conversations in files: a JSON array, JSON lines, or an API request body, told apart by content."""

from msgspec import Struct

from lowwater.errors import BadInput, UnknownFormat
from lowwater.values.conversation import Conversation
from lowwater.values.message import Format
from lowwater.values.request import Request
from lowwater.wire.detect import detect
from lowwater.wire.formats import (
    decode_messages,
    decode_request,
    encode_messages,
    encode_request,
    split_messages,
)
from lowwater.wire.openai_responses.items import is_known
from lowwater.wire.reading import read_fields, read_json, without_line_breaks, write_array

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class _Header(Struct):
    model: str | None = None


def decode_conversation(data: bytes, format: Format | None = None) -> Conversation:
    """Return the conversation in `data`, or raise a BadInput that says what to change."""
    text = data.removeprefix(_BYTE_ORDER_MARK).strip()
    if not text:
        raise UnknownFormat(
            "nothing to read: expected a JSON array of messages, JSON lines or a request body"
        )
    if text[:1] == b"[":
        return _from_array(text, format)
    if text[:1] != b"{":
        raise UnknownFormat("not a conversation: expected JSON that starts with [ or {")
    if b"\n" in text and _is_object(text.split(b"\n", 1)[0]):
        return _from_lines(text, format)
    fields = read_fields(text)
    if "messages" not in fields and "input" not in fields and _is_message(fields):
        return _from_lines(text, format)
    return _from_request(text, format)


def encode_conversation(conversation: Conversation) -> bytes:
    """Return the conversation in the shape it came in; untouched messages byte for byte."""
    messages = encode_messages(conversation.messages, conversation.format)
    match conversation.shape:
        case "array":
            return write_array(messages)
        case "lines":
            lines = [conversation.around, *messages] if conversation.around else messages
            return b"".join(without_line_breaks(line) + b"\n" for line in lines)
        case "request":
            return encode_request(_request(conversation))


def _request(conversation: Conversation) -> Request:
    return Request(
        format=conversation.format,
        body=conversation.around,
        messages=conversation.messages,
        system=conversation.system,
        tools=conversation.tools,
        model=conversation.model,
    )


def _from_array(text: bytes, format: Format | None) -> Conversation:
    raws = split_messages(text)
    found = format or detect(raws)
    return Conversation(shape="array", format=found, messages=tuple(decode_messages(raws, found)))


def _from_request(text: bytes, format: Format | None) -> Conversation:
    request = decode_request(text, format)
    return Conversation(
        shape="request",
        format=request.format,
        messages=request.messages,
        around=text,
        system=request.system,
        tools=request.tools,
        model=request.model,
    )


def _from_lines(text: bytes, format: Format | None) -> Conversation:
    lines = [(number, line) for number, line in enumerate(text.split(b"\n"), start=1) if line.strip()]
    header = b""
    raws: list[bytes] = []
    for number, line in lines:
        try:
            fields = read_fields(line)
        except BadInput as error:
            raise type(error)(f"line {number}: {error}") from None
        if _is_message(fields):
            raws.append(line)
        elif number == 1:
            header = line
        else:
            raise UnknownFormat(f"line {number} has no role: expected one message a line")
    if not raws:
        raise UnknownFormat(
            "no line has a role: expected one message a line, or a request body with `messages`"
        )
    found = format or detect(raws)
    messages = tuple(decode_messages(raws, found))
    model = read_json(header, _Header).model or "" if header else ""
    return Conversation(shape="lines", format=found, messages=messages, around=header, model=model)


def _is_message(fields: dict[str, bytes]) -> bool:
    """Return whether an object is a message, or an item of the Responses format."""
    kind = fields.get("type", b"").strip(b'"').decode(errors="replace")
    return "role" in fields or (is_known(kind) and kind != "message")


def _is_object(line: bytes) -> bool:
    try:
        read_fields(line)
    except BadInput:
        return False
    return True
