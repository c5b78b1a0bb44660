"""The request that rides the cached prefix: the one sent last, extended by an instruction."""

from collections.abc import Sequence
from typing import Any

from msgspec import Raw, Struct

from lowwater.core.formats.codec import encode_messages, list_field
from lowwater.core.messages import Message, Thinking
from lowwater.core.strict_json import read_json, write_json
from lowwater.core.summary.request import Riding, SummaryRequest
from lowwater.errors import BadInput
from lowwater.send.endpoint import Endpoint
from lowwater.send.instruction import instruction_riding
from lowwater.send.limits import THINKING, OutputLimit, output_limit
from lowwater.send.splice import with_fields, with_items

_FREE = frozenset({"auto", "none"})


class _Sent(Struct):
    messages: list[Raw] = []
    input: list[Raw] = []
    model: str = ""
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    max_output_tokens: int | None = None
    background: Any = None
    store: Any = None
    stream: Any = None
    stream_options: Any = None
    tool_choice: Any = None
    thinking: Any = None
    reasoning_effort: Any = None
    reasoning: Any = None


def riding_body(request: SummaryRequest, endpoint: Endpoint) -> bytes | None:
    """Return the body that extends the request sent last, or None if that would not read the endpoint's cache.

    Tools, system prompt and messages stay byte for byte where they are, and so does every parameter the cache depends
    on; only what limits and transports the answer changes. It cannot ride on a request for another model or in another
    format, nor on one that forces a tool call.
    """
    riding = request.riding
    if riding is None or riding.format != endpoint.format:
        return None
    try:
        sent = read_json(riding.body, _Sent)
    except BadInput:
        return None
    listed = list_field(endpoint.format)
    items = sent.input if listed == "input" else sent.messages
    if not items or sent.model != endpoint.model or forces_a_call(sent.tool_choice):
        return None
    told = {"role": "user", "content": instruction_riding(request)}
    extended = with_items(riding.body, listed, [*_since(riding, sent), write_json(told)])
    limit = output_limit(endpoint, request.max_tokens)
    if endpoint.format == "openai_responses":
        return with_fields(extended, _changed_responses(sent, limit, streamed=endpoint.only_streams))
    return with_fields(extended, _changed(sent, limit))


def _changed_responses(sent: _Sent, limit: OutputLimit, *, streamed: bool) -> dict[str, bytes]:
    """Return the fields of a Responses request that differ; its limit counts thinking, whoever asked for that."""
    if streamed:
        return {} if sent.stream is True else {"stream": b"true"}
    changed = {limit.field: write_json(max(limit.tokens, sent.max_output_tokens or 0))}
    if sent.background:
        # The answer would be a promise of one.
        changed["background"] = b"false"
    return changed | _unstreamed(sent)


def _changed(sent: _Sent, limit: OutputLimit) -> dict[str, bytes]:
    """Return the fields that differ: none of them is part of a prompt."""
    name, tokens = limit.field, limit.tokens
    if sent.max_completion_tokens is not None:
        name, tokens = "max_completion_tokens", max(tokens, sent.max_completion_tokens)
    elif sent.max_tokens is not None:
        name = "max_tokens"
        tokens = max(tokens, sent.max_tokens) if _thinks(sent) else tokens
    elif _thinks(sent):
        tokens += _budget(sent.thinking)
    return {name: write_json(tokens)} | _unstreamed(sent)


def _unstreamed(sent: _Sent) -> dict[str, bytes]:
    changed = {}
    if sent.stream is not None:
        changed["stream"] = b"false"
    if sent.stream_options is not None:
        # A provider refuses options for a stream where there is none.
        changed["stream_options"] = b"null"
    return changed


def _thinks(sent: _Sent) -> bool:
    """Tell whether thinking was asked for, which counts against the limit and may not be switched off."""
    asked = isinstance(sent.thinking, dict) and sent.thinking.get("type") != "disabled"
    return bool(asked or sent.reasoning_effort not in (None, "none") or sent.reasoning is not None)


def _budget(thinking: object) -> int:
    """Return how many tokens thinking may take; a limit has to be above that."""
    match thinking:
        case {"budget_tokens": int(tokens)}:
            return tokens
        case _:
            return THINKING


def thinking_tokens(thinking: object) -> int:
    """Return how many tokens a request's `thinking` at Anthropic may take beside what is written; none if it does not think."""
    asked = isinstance(thinking, dict) and thinking.get("type") != "disabled"
    return _budget(thinking) if asked else 0


def forces_a_call(choice: object) -> bool:
    """Tell whether a `tool_choice` leaves the model no answer but a tool call."""
    match choice:
        case None:
            return False
        case {"type": "allowed_tools", "allowed_tools": {"mode": mode}} | {
            "type": "allowed_tools",
            "mode": mode,
        }:
            return str(mode) != "auto"
        case {"type": kind}:
            return str(kind) not in _FREE
        case _:
            return str(choice) not in _FREE


def _since(riding: Riding, sent: _Sent) -> list[bytes]:
    """Return what came after the request, as far as every tool call in it has its result."""
    answered = _answered(riding.since)
    if riding.format == "openai_responses" and sent.store is False:
        answered = [_without_references(message) for message in answered]
    return [bytes(raw) for raw in encode_messages(answered, riding.format)]


def _without_references(message: Message) -> Message:
    """Return a message without reasoning that only its id tells of: a provider that stores nothing does not find it."""
    kept = [part for part in message.parts if not isinstance(part, Thinking) or part.signature]
    return message if len(kept) == len(message.parts) else message.with_parts(kept)


def _answered(messages: Sequence[Message]) -> Sequence[Message]:
    waiting: set[str] = set()
    whole = 0
    for number, message in enumerate(messages, 1):
        waiting.update(call.id for call in message.calls)
        waiting.difference_update(result.call_id for result in message.results)
        whole = number if not waiting else whole
    return messages[:whole]
