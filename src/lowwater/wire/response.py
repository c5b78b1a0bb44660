"""Whole (not streamed) answers of both providers: the message to keep, and the usage."""

from msgspec import Raw, Struct

from lowwater.errors import BadInput, UnknownFormat
from lowwater.values.response import Response
from lowwater.wire.anthropic.decode import decode_message as decode_anthropic
from lowwater.wire.anthropic.usage import decode_prompt
from lowwater.wire.anthropic.usage import decode_usage as anthropic_usage
from lowwater.wire.openai_chat.decode import decode_message as decode_chat
from lowwater.wire.openai_chat.usage import decode_usage as chat_usage
from lowwater.wire.reading import read_fields, read_json, write_object


class _Choice(Struct):
    message: Raw
    finish_reason: str | None = None


class _Completion(Struct):
    choices: list[_Choice]
    usage: Raw = Raw(b"null")
    model: str | None = None


class _Answer(Struct):
    content: Raw
    usage: Raw = Raw(b"null")
    model: str | None = None
    stop_reason: str | None = None


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
    message = decode_chat(bytes(choice.message), 0)
    usage = None if bytes(completion.usage) == b"null" else chat_usage(bytes(completion.usage))
    return Response(
        message=message,
        usage=usage,
        prompt=usage.prompt if usage else 0,
        model=completion.model or "",
        stop=choice.finish_reason or "",
    )


def _answer(raw: bytes) -> Response:
    answer = read_json(raw, _Answer)
    # What goes back to the provider is role and content; the rest of an answer is not part of a message.
    kept = write_object({"role": b'"assistant"', "content": bytes(answer.content)})
    usage = bytes(answer.usage)
    return Response(
        message=decode_anthropic(kept, 0),
        usage=None if usage == b"null" else anthropic_usage(usage),
        prompt=decode_prompt(usage),
        model=answer.model or "",
        stop=answer.stop_reason or "",
    )
