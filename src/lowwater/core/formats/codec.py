"""Decoding and encoding messages, requests and complete answers, whatever their format, and detecting the format.

A format is detected by the roles, fields and block types that only some formats have.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from msgspec import Raw, Struct
from msgspec.structs import replace

from lowwater.core.api_calls import Request, Response, Usage
from lowwater.core.formats import anthropic, openai_chat, openai_responses
from lowwater.core.formats.openai_responses import group_items, is_item_type, items_in
from lowwater.core.formats.refusals import anthropic_miss_reason, openai_miss_reason
from lowwater.core.formats.usage import (
    UsageReport,
    anthropic_usage_fields,
    decode_anthropic_report,
    decode_openai_report,
)
from lowwater.core.messages import Format, Message
from lowwater.core.strict_json import (
    as_strict_json,
    read_fields,
    read_json,
    write_array,
    write_json,
    write_object,
)
from lowwater.errors import BadInput, MalformedMessage, UnknownFormat

T = TypeVar("T")

# Messages

_DECODERS: MappingProxyType[Format, Callable[[bytes, int], Message]] = MappingProxyType(
    {
        "openai_chat": openai_chat.decode_message,
        "anthropic": anthropic.decode_message,
        "openai_responses": openai_responses.decode_message,
    }
)
_ENCODERS: MappingProxyType[Format, Callable[[Sequence[Message]], list[bytes]]] = MappingProxyType(
    {
        "openai_chat": openai_chat.encode_messages,
        "anthropic": anthropic.encode_messages,
        "openai_responses": openai_responses.encode_messages,
    }
)


def split_array(data: bytes) -> list[bytes]:
    """Return the items of a JSON array as the bytes they were written in."""
    return [bytes(item) for item in read_json(data, list[Raw])]


def split_messages(data: bytes) -> list[bytes]:
    """Return the messages or items of a JSON array; raise MalformedMessage for one that is an array itself."""
    raws = split_array(data)
    for index, raw in enumerate(raws):
        if raw.lstrip()[:1] == b"[":
            raise MalformedMessage(index, "expected object, got array")
    return raws


def raw_messages(messages: Sequence[object]) -> list[bytes]:
    """Return a Python caller's messages (dicts, SDK objects or bytes) as JSON bytes."""
    raws = []
    for index, message in enumerate(messages):
        if not isinstance(message, bytes) and _holds_bytes(message):
            raise MalformedMessage(index, "bytes are not valid message content: decode them to text first")
        try:
            raws.append(message if isinstance(message, bytes) else write_json(message))
        except BadInput as error:
            raise MalformedMessage(index, str(error)) from None
    return raws


def _holds_bytes(value: object) -> bool:
    """Return whether there are bytes anywhere in `value`, which msgspec would silently write as base64."""
    pending = [value]
    while pending:
        inner = pending.pop()
        if isinstance(inner, dict):
            pending += [each for each in inner.values() if not isinstance(each, str)]
        elif isinstance(inner, list | tuple):
            pending += [each for each in inner if not isinstance(each, str)]
        elif isinstance(inner, bytes | bytearray | memoryview):
            return True
    return False


def messages_in(raws: Sequence[bytes], format: Format) -> list[bytes]:
    """Return one piece of JSON for each message; in the Responses format the items of one answer are one message."""
    return group_items(raws) if format == "openai_responses" else list(raws)


def decode_messages(raws: Sequence[bytes], format: Format | None = None) -> list[Message]:
    """Return the messages in `raws`, as many as `messages_in` returns; without a format, it is detected.

    MalformedMessage names the index in `raws`.
    """
    format = format or detect(raws)
    decode = _DECODERS[format]
    if format != "openai_responses":
        return [decode(raw, index) for index, raw in enumerate(raws)]
    messages: list[Message] = []
    index = 0
    for raw in group_items(raws):
        messages.append(decode(raw, index))
        index += len(items_in(raw))
    return messages


def encode_messages(messages: Sequence[Message], format: Format) -> list[bytes]:
    """Return `messages` as bytes; those that arrived in `format` and were not edited leave exactly as they arrived.

    In the Responses format the result is a list of items, of which one answer may have several.
    """
    return _ENCODERS[format](messages)


def reread(messages: Sequence[Message], *, assumed: Format | None, format: Format) -> list[Message]:
    """Decode messages again in `format` that were decoded in `assumed` before the format was known.

    Messages that look the same in both formats can then leave as they arrived; the others are returned as they are.
    """
    if assumed is None or assumed == format:
        return list(messages)
    return [_reread(message, assumed, format) for message in messages]


def _reread(message: Message, assumed: Format, format: Format) -> Message:
    wire = message.wire
    if wire is None or not wire.exact or wire.format != assumed or format not in possible_formats(wire.raw):
        return message
    try:
        return _DECODERS[format](wire.raw, 0)
    except BadInput:
        return message  # it only looked the same, and will be converted when it is encoded


# Requests


class _RequestFields(Struct):
    model: str | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    max_output_tokens: int | None = None


def decode_request(body: bytes, format: Format | None = None) -> Request:
    """Return the request in `body`, or raise a BadInput that says what to change."""
    fields = read_fields(body)
    if format == "openai_responses" or ("input" in fields and "messages" not in fields):
        format = "openai_responses"
    raws = _conversation(fields, format)
    asked = read_json(body, _RequestFields)
    found = format or detect(raws, _evidence(fields))
    return Request(
        format=found,
        body=body,
        messages=tuple(decode_messages(raws, found)),
        system=_field(fields, system_field(found)),
        tools=fields.get("tools", b""),
        model=asked.model or "",
        max_tokens=asked.max_completion_tokens or asked.max_tokens or asked.max_output_tokens,
    )


def encode_request(request: Request) -> bytes:
    """Return the body to send: the original bytes if nothing changed, else with the changed fields replaced."""
    fields = read_fields(request.body)
    messages = encode_messages(request.messages, request.format)
    system = system_field(request.format)
    preamble = ((system, request.system), ("tools", request.tools))
    if _conversation(fields, request.format) != messages:
        fields[list_field(request.format)] = write_array(messages)
    elif all(_field(fields, name) == value for name, value in preamble):
        return request.body
    for name, value in preamble:
        if value:
            fields[name] = value
        elif _field(fields, name):
            del fields[name]
    return write_object(fields)


def list_field(format: Format) -> str:
    """Return the name of the field that holds a request's conversation."""
    return "input" if format == "openai_responses" else "messages"


def system_field(format: Format) -> str:
    """Return the name of the field that holds the system prompt outside the conversation."""
    return "instructions" if format == "openai_responses" else "system"


def _conversation(fields: dict[str, bytes], format: Format | None) -> list[bytes]:
    """Return the raw messages of a request; the `input` of a Responses request may be a string, the user's message."""
    name = list_field(format or "openai_chat")
    if name not in fields:
        raise UnknownFormat(
            "the request has no `messages` and no `input`: expected a chat-completions, messages or responses request"
        )
    if name == "input" and fields[name].lstrip()[:1] == b'"':
        return [write_object({"role": b'"user"', "content": fields[name]})]
    return split_messages(fields[name])


def _field(fields: dict[str, bytes], name: str) -> bytes:
    value = fields.get(name, b"")
    return b"" if name == "instructions" and value == b"null" else value


def _evidence(fields: dict[str, bytes]) -> set[str]:
    """Return the field names, with Anthropic's added if the tools are in its format."""
    names = set(fields)
    if b'"input_schema"' in fields.get("tools", b""):
        names |= {"anthropic_version", "system"}
    return names


# Answers

_NULL = Raw(b"null")
_QUOTED_BYTES = 200


class _Choice(Struct):
    message: Raw
    finish_reason: Raw = _NULL


class _Completion(Struct):
    choices: list[Raw]
    usage: Raw = _NULL
    model: Raw = _NULL
    service_tier: Raw = _NULL
    prompt_cache_diagnostics: Raw = _NULL


class _AnthropicAnswer(Struct):
    content: Raw
    usage: Raw = _NULL
    model: Raw = _NULL
    stop_reason: Raw = _NULL
    diagnostics: Raw = _NULL


class _OpenAIResponse(Struct):
    output: list[Raw]
    usage: Raw = _NULL
    model: Raw = _NULL
    status: Raw = _NULL
    error: Raw = _NULL
    incomplete_details: Raw = _NULL
    service_tier: Raw = _NULL
    prompt_cache_diagnostics: Raw = _NULL


class _Error(Struct):
    message: str | None = None


class _Incomplete(Struct):
    reason: str | None = None


class _Bookkeeping:
    """Reads what an answer says beside its content; a value that cannot be read is left out and noted, and loses no answer."""

    def __init__(self) -> None:
        self.unread: list[str] = []

    def text(self, name: str, raw: Raw) -> str:
        """Return a text, empty if it is null or none."""
        return self.value(name, raw, str) or ""

    def value(self, name: str, raw: Raw, kind: type[T]) -> T | None:
        """Return a value of this kind, None if it is null or of another one."""
        if bytes(raw) == b"null":
            return None
        try:
            return read_json(bytes(raw), kind)
        except BadInput:
            self.unread.append(name)
            return None


def decode_response(raw: bytes) -> Response:
    """Return the answer in `raw`: a chat completion, an Anthropic message or a response; or raise a BadInput.

    Only an answer whose content cannot be read is refused. Odd values beside it are left out, and what no JSON may contain is
    replaced; `Response.unread` says so.
    """
    read = _Bookkeeping()
    strict = as_strict_json(raw)
    if strict != raw:
        read.unread.append("what is not valid JSON in it")
    answer = _decode_answer(strict, read)
    return replace(answer, unread=(*read.unread, *answer.unread))


def _decode_answer(raw: bytes, read: _Bookkeeping) -> Response:
    fields = read_fields(raw)
    # An answer may have fields that are called like another format's.
    if fields.get("output", b"")[:1] == b"[":
        return _decode_openai_response(raw, read)
    if "choices" in fields:
        return _decode_completion(raw, read)
    if "content" in fields:
        return _decode_anthropic_answer(raw, read)
    if "output" in fields:
        return _decode_openai_response(raw, read)
    raise UnknownFormat(
        "not a model's answer: expected a chat completion, an Anthropic message or a response"
    )


def _decode_completion(raw: bytes, read: _Bookkeeping) -> Response:
    completion = read_json(raw, _Completion)
    if not completion.choices:
        raise BadInput("the chat completion has no choices: there is nothing to record")
    choice = read_json(bytes(completion.choices[0]), _Choice)
    message = _with_assistant_role(bytes(choice.message))
    usage = bytes(completion.usage)
    return _response(
        openai_chat.decode_message(message, 0),
        _read_report(usage, partial(decode_openai_report, tier=bytes(completion.service_tier))),
        model=read.text("model", completion.model),
        stop=read.text("finish_reason", choice.finish_reason),
        miss_reason=openai_miss_reason(bytes(completion.prompt_cache_diagnostics)),
    )


def _with_assistant_role(message: bytes) -> bytes:
    """Return the message of an answer, which is the model's whatever role it gives; byte for byte if that is the right one."""
    fields = read_fields(message)
    role = b'"assistant"'
    return message if fields.get("role") == role else write_object(fields | {"role": role})


def _decode_anthropic_answer(raw: bytes, read: _Bookkeeping) -> Response:
    answer = read_json(raw, _AnthropicAnswer)
    # The API accepts only role and content of an answer that is sent back.
    message = write_object({"role": b'"assistant"', "content": bytes(answer.content)})
    usage = bytes(answer.usage)
    return _response(
        anthropic.decode_message(message, 0),
        _read_report(usage, decode_anthropic_report),
        model=read.text("model", answer.model),
        stop=read.text("stop_reason", answer.stop_reason),
        miss_reason=anthropic_miss_reason(bytes(answer.diagnostics)),
    )


def _decode_openai_response(raw: bytes, read: _Bookkeeping) -> Response:
    answer = read_json(raw, _OpenAIResponse)
    status = read.text("status", answer.status)
    if status in {"failed", "cancelled"}:
        error = read.value("error", answer.error, _Error)
        reason = error.message if error else None
        raise BadInput(f"the response {status}, there is nothing to record: {reason or 'no reason given'}")
    items = [bytes(item) for item in answer.output]
    usage = bytes(answer.usage)
    incomplete = read.value("incomplete_details", answer.incomplete_details, _Incomplete)
    return _response(
        openai_responses.decode_message(write_array(items), 0),
        _read_report(usage, partial(decode_openai_report, tier=bytes(answer.service_tier))),
        model=read.text("model", answer.model),
        stop=(incomplete.reason if incomplete else None) or status,
        miss_reason=openai_miss_reason(bytes(answer.prompt_cache_diagnostics)),
    )


def _read_report(usage: bytes, read: Callable[[bytes], UsageReport]) -> UsageReport | str | None:
    """Return the usage report, None if there is none, or what is wrong with it: bad numbers must not lose an answer."""
    if usage == b"null":
        return None
    try:
        return read(usage)
    except BadInput as error:
        return f"{error} ({usage[:_QUOTED_BYTES].decode(errors='replace')})"


def _response(
    message: Message,
    reported: UsageReport | str | None,
    *,
    model: str,
    stop: str,
    miss_reason: str,
) -> Response:
    """Return the answer; `reported` is its usage, None if there was none, or why it could not be read."""
    report = reported if isinstance(reported, UsageReport) else None
    return Response(
        doubt=reported if isinstance(reported, str) else "",
        message=message,
        usage=report.usage if report else None,
        others=report.others if report else (),
        list_price=report.list_price if report else True,
        reports_cache=report.reports_cache if report else True,
        splits_writes=report.splits_writes if report else True,
        prompt=report.prompt if report else 0,
        model=model,
        stop=stop,
        unread=report.unread if report else (),
        miss_reason=miss_reason,
    )


def as_message(content: object, usage: Usage, model: str = "") -> dict[str, Any]:
    """Return an answer in the form of Anthropic's API, from content blocks and usage."""
    return {
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": "end_turn",
        "usage": anthropic_usage_fields(usage),
    }


def as_completion(message: object, usage: Usage, model: str = "") -> dict[str, Any]:
    """Return an answer in the form of a chat API that reports cache writes."""
    return {
        "object": "chat.completion",
        "model": model,
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {
            "prompt_tokens": usage.prompt,
            "completion_tokens": usage.output,
            "prompt_tokens_details": {
                "cached_tokens": usage.cache_read,
                "cache_write_tokens": usage.cache_write + usage.cache_write_long,
            },
        },
    }


# Detecting the format

_ANTHROPIC_BLOCKS = frozenset(
    {
        "tool_use",
        "tool_result",
        "thinking",
        "redacted_thinking",
        "image",
        "document",
        "server_tool_use",
        "compaction",
    }
)
_CHAT_BLOCKS = frozenset({"image_url", "input_audio", "file"})
_RESPONSES_BLOCKS = frozenset({"input_text", "output_text", "input_image", "input_file"})
_CHAT_ROLES = frozenset({"tool", "function"})
_OPENAI_ROLES = frozenset({"system", "developer"})
_ANTHROPIC_FIELDS = frozenset(
    {"system", "anthropic_version", "stop_sequences", "thinking", "context_management"}
)
_CHAT_FIELDS = frozenset(
    {"max_completion_tokens", "stream_options", "response_format", "reasoning_effort", "n"}
)

_Formats = frozenset[Format]
_ANY: _Formats = frozenset({"openai_chat", "anthropic", "openai_responses"})
_ANTHROPIC: _Formats = frozenset({"anthropic"})
_CHAT: _Formats = frozenset({"openai_chat"})
_RESPONSES: _Formats = frozenset({"openai_responses"})
_OPENAI: _Formats = frozenset({"openai_chat", "openai_responses"})
_NOT_RESPONSES: _Formats = frozenset({"openai_chat", "anthropic"})


class _Block(Struct):
    type: str = ""


class _Hint(Struct):
    role: str = ""
    type: str = ""
    content: list[_Block] | str | None = None
    tool_calls: Raw = Raw(b"")
    stop_reason: Raw = Raw(b"")


def detect(messages: Sequence[bytes], fields: Collection[str] = ()) -> Format:
    """Return the format of raw messages, with the names of the request's other fields as further evidence.

    The first message that only one format allows decides, then the fields. A conversation of plain text looks the same
    in every format and counts as chat.
    """
    found = detect_format(messages)
    if found is not None:
        return found
    anthropic, chat = len(_ANTHROPIC_FIELDS.intersection(fields)), len(_CHAT_FIELDS.intersection(fields))
    return "anthropic" if anthropic > chat else "openai_chat"


def detect_format(messages: Iterable[bytes]) -> Format | None:
    """Return the only format that the messages allow; None if they look the same in every format.

    Messages that fit both of OpenAI's formats but not Anthropic's count as chat.
    """
    left = _ANY
    for raw in messages:
        allowed = possible_formats(raw)
        if len(allowed) == 1:
            return next(iter(allowed))
        left = left & allowed or left
        if len(left) == 1:
            return next(iter(left))
    return None if "anthropic" in left else "openai_chat"


def possible_formats(raw: bytes) -> frozenset[Format]:
    """Return the formats that a message could be in."""
    if raw.lstrip()[:1] == b"[":
        return _RESPONSES  # the items of one answer
    try:
        hint = read_json(raw, _Hint)
    except BadInput:
        return _ANY  # decoding reports what is wrong, with the message's index
    if hint.role in _CHAT_ROLES or bytes(hint.tool_calls):
        return _CHAT
    kinds = {block.type for block in hint.content} if isinstance(hint.content, list) else set()
    if kinds & _ANTHROPIC_BLOCKS:
        return _ANTHROPIC
    if kinds & _RESPONSES_BLOCKS or (
        hint.type and is_item_type(hint.type) and not _is_anthropic_answer(hint, kinds)
    ):
        return _RESPONSES
    if kinds & _CHAT_BLOCKS:
        return _CHAT
    if "refusal" in kinds or hint.role in _OPENAI_ROLES:
        return _CHAT if "text" in kinds else _OPENAI
    return _NOT_RESPONSES if kinds else _ANY


def _is_anthropic_answer(hint: _Hint, kinds: set[str]) -> bool:
    """Return whether it is an answer from Anthropic: those have the type `message`, like items of the Responses format."""
    return hint.type == "message" and (bytes(hint.stop_reason) != b"" or "text" in kinds)
