"""Whole (not streamed) answers of both providers: the message to keep, and the usage."""

from typing import Any

from msgspec import Raw, Struct

from lowwater.errors import BadInput, UnknownFormat
from lowwater.values.message import Message
from lowwater.values.response import Response
from lowwater.wire.anthropic.decode import decode_message as decode_anthropic
from lowwater.wire.anthropic.usage import decode_report as anthropic_report
from lowwater.wire.miss_reason import anthropic_reason, openai_reason
from lowwater.wire.openai_chat.decode import decode_message as decode_chat
from lowwater.wire.openai_chat.usage import decode_report as chat_report
from lowwater.wire.reading import read_fields, read_json, write_object
from lowwater.wire.usage import Report

_NULL = Raw(b"null")


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


def decode_response(raw: bytes) -> Response:
    """Return the answer in `raw`, a chat completion or an Anthropic message, or raise a BadInput."""
    fields = read_fields(raw)
    if "choices" in fields:
        return _completion(raw)
    if "content" in fields:
        return _answer(raw)
    raise UnknownFormat("not a model's answer: expected a chat completion or an Anthropic message")


def _completion(raw: bytes) -> Response:
    completion = read_json(raw, _Completion)
    if not completion.choices:
        raise BadInput("the chat completion has no choices: there is nothing to record")
    choice = completion.choices[0]
    usage = bytes(completion.usage)
    return _response(
        decode_chat(bytes(choice.message), 0),
        None if usage == b"null" else chat_report(usage, tier=completion.service_tier),
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
        None if usage == b"null" else anthropic_report(usage),
        model=answer.model,
        stop=answer.stop_reason,
        miss_reason=anthropic_reason(bytes(answer.diagnostics)),
    )


def _response(
    message: Message, report: Report | None, *, model: str | None, stop: str | None, miss_reason: str
) -> Response:
    """Return an answer; without a report nothing is known of what it cost."""
    return Response(
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
