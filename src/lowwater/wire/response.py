"""Whole (not streamed) answers in every format: the message to keep, and the usage."""

from collections.abc import Callable
from functools import partial
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
from lowwater.wire.openai_responses.decode import decode_message as decode_items
from lowwater.wire.openai_responses.usage import decode_report as responses_report
from lowwater.wire.reading import read_fields, read_json, write_array, write_object
from lowwater.wire.usage import Report

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
