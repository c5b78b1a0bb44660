"""Reading and writing messages, requests and whole answers in every format."""

from collections.abc import Callable, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from msgspec import Raw, Struct

from lowwater.core.api_calls import Request, Response, Usage
from lowwater.core.formats.anthropic import decode_message as decode_anthropic
from lowwater.core.formats.anthropic import encode_messages as encode_anthropic
from lowwater.core.formats.detect import detect, formats_of
from lowwater.core.formats.openai_chat import decode_message as decode_chat
from lowwater.core.formats.openai_chat import encode_messages as encode_chat
from lowwater.core.formats.openai_responses import decode_message as decode_items
from lowwater.core.formats.openai_responses import decode_message as decode_responses
from lowwater.core.formats.openai_responses import encode_messages as encode_responses
from lowwater.core.formats.openai_responses import items_in, joined
from lowwater.core.formats.refusals import anthropic_reason, openai_reason
from lowwater.core.formats.usage import Report
from lowwater.core.formats.usage import decode_anthropic_report as anthropic_report
from lowwater.core.formats.usage import decode_openai_report as chat_report
from lowwater.core.formats.usage import decode_openai_report as responses_report
from lowwater.core.messages import Format, Message
from lowwater.core.strict_json import read_fields, read_json, write_array, write_json, write_object
from lowwater.errors import BadInput, MalformedMessage, UnknownFormat

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


_NULL = Raw(b"null")
_MOST_QUOTED = 200


class _Choice(Struct):
    message: Raw
    finish_reason: str | None = None


class _Completion(Struct):
    choices: list[_Choice]
    usage: Raw = _NULL
    model: str | None = None
    service_tier: Any = None
    prompt_cache_diagnostics: Raw = _NULL


class _Answer(Struct):
    content: Raw
    usage: Raw = _NULL
    model: str | None = None
    stop_reason: str | None = None
    diagnostics: Raw = _NULL


class _Error(Struct):
    message: str | None = None


class _Incomplete(Struct):
    reason: str | None = None


class _Output(Struct):
    output: list[Raw]
    usage: Raw = _NULL
    model: str | None = None
    status: str | None = None
    error: _Error | None = None
    incomplete_details: _Incomplete | None = None
    service_tier: Any = None
    prompt_cache_diagnostics: Raw = _NULL


def decode_response(raw: bytes) -> Response:
    """Return the answer in `raw`: a chat completion, an Anthropic message or a response; or raise a BadInput."""
    fields = read_fields(raw)
    if "choices" in fields:
        return _completion(raw)
    if "content" in fields:
        return _answer(raw)
    if "output" in fields:
        return _output(raw)
    raise UnknownFormat(
        "not a model's answer: expected a chat completion, an Anthropic message or a response"
    )


def _completion(raw: bytes) -> Response:
    completion = read_json(raw, _Completion)
    if not completion.choices:
        raise BadInput("the chat completion has no choices: there is nothing to record")
    choice = completion.choices[0]
    usage = bytes(completion.usage)
    return _response(
        decode_chat(bytes(choice.message), 0),
        _reported(usage, partial(chat_report, tier=completion.service_tier)),
        model=completion.model,
        stop=choice.finish_reason,
        miss_reason=openai_reason(bytes(completion.prompt_cache_diagnostics)),
    )


def _answer(raw: bytes) -> Response:
    answer = read_json(raw, _Answer)
    # What goes back to the provider is role and content; the rest of an answer is not part of a message.
    kept = write_object({"role": b'"assistant"', "content": bytes(answer.content)})
    usage = bytes(answer.usage)
    return _response(
        decode_anthropic(kept, 0),
        _reported(usage, anthropic_report),
        model=answer.model,
        stop=answer.stop_reason,
        miss_reason=anthropic_reason(bytes(answer.diagnostics)),
    )


def _output(raw: bytes) -> Response:
    answer = read_json(raw, _Output)
    if answer.status in {"failed", "cancelled"}:
        said = answer.error.message if answer.error else None
        raise BadInput(
            f"the response {answer.status}, there is nothing to record: {said or 'no reason given'}"
        )
    items = [bytes(item) for item in answer.output]
    usage = bytes(answer.usage)
    stopped = answer.incomplete_details.reason if answer.incomplete_details else None
    return _response(
        decode_items(write_array(items), 0),
        _reported(usage, partial(responses_report, tier=answer.service_tier)),
        model=answer.model,
        stop=stopped or answer.status,
        miss_reason=openai_reason(bytes(answer.prompt_cache_diagnostics)),
    )


def _reported(usage: bytes, read: Callable[[bytes], Report]) -> Report | str | None:
    """Return what the usage says, None if it says nothing, or what is wrong with it: an answer is never lost for its numbers."""
    if usage == b"null":
        return None
    try:
        return read(usage)
    except BadInput as error:
        return f"{error} ({usage[:_MOST_QUOTED].decode(errors='replace')})"


def _response(
    message: Message, told: Report | str | None, *, model: str | None, stop: str | None, miss_reason: str
) -> Response:
    """Return an answer; without a report nothing is known of what it cost."""
    report = told if isinstance(told, Report) else None
    return Response(
        doubt=told if isinstance(told, str) else "",
        message=message,
        usage=report.usage if report else None,
        others=report.others if report else (),
        list_price=report.list_price if report else True,
        cache_told=report.cache_told if report else True,
        prompt=report.prompt if report else 0,
        model=model or "",
        stop=stop or "",
        miss_reason=miss_reason,
    )


def as_message(content: object, usage: Usage, model: str = "") -> dict[str, Any]:
    """Return an answer as Anthropic's API gives it: content blocks, and what the call is billed."""
    return {
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": "end_turn",
        "usage": {
            "input_tokens": usage.uncached,
            "cache_read_input_tokens": usage.cache_read,
            "cache_creation_input_tokens": usage.cache_write,
            "output_tokens": usage.output,
        },
    }


def as_completion(message: object, usage: Usage, model: str = "") -> dict[str, Any]:
    """Return an answer as a chat API gives it that reports its cache writes."""
    return {
        "object": "chat.completion",
        "model": model,
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {
            "prompt_tokens": usage.prompt,
            "completion_tokens": usage.output,
            "prompt_tokens_details": {
                "cached_tokens": usage.cache_read,
                "cache_write_tokens": usage.cache_write,
            },
        },
    }
