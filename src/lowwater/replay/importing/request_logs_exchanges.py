"""One line of a request log: the body that was sent, the answer that came, and when.

Loggers wrap both in layers of their own; what counts is found by what only a body has: `messages` or `input` in a
request, `choices`, an assistant's `content` or a response's `output` in an answer.
"""

from collections.abc import Callable

from msgspec import Struct

from lowwater.core.formats.streams import answer_in_events, answer_in_stream
from lowwater.core.strict_json import read_json, write_object
from lowwater.errors import BadInput
from lowwater.replay.importing.outline import fields_in, items_in
from lowwater.replay.importing.times import seconds

_SENT = ("request", "request_body", "req", "proxy_server_request", "body", "params", "kwargs")
_CAME = ("response", "response_body", "res", "result", "response_obj", "completion")
_INNER_SENT = ("body", "json", "params", "data", "request", "kwargs", "content")
_INNER_CAME = ("body", "json", "message", "data", "response", "body_raw", "content")
_ASKED = ("startTime", "start_time", "request_time", "started_at", "requested_at")
_ANSWERED = ("endTime", "end_time", "response_time", "completed_at", "finished_at", "logged_at")
_AT = ("timestamp", "ts", "time", "created_at", "datetime", "date")
_COUNTED = ("prompt_tokens", "completion_tokens")
_DEEPEST = 4


class Exchange(Struct, frozen=True, kw_only=True):
    """A request and its answer, each empty if the line has none."""

    request: bytes = b""
    answer: bytes = b""
    usage: bytes = b""
    """What the logger itself counted."""
    custom_id: str = ""
    """By which the lines of a batch and of its results belong together."""
    asked_at: float | None = None
    at: float | None = None


def exchange_in(line: bytes) -> Exchange | None:
    """Return what a line tells, or None if it is no line of a request log."""
    fields = fields_in(line)
    request = _request_in(fields)
    answer = next((body for name in _CAME if (body := _answer(fields.get(name, b"")))), b"")
    custom_id = _text(fields.get("custom_id", b""))
    is_result = bool(custom_id) and any(name in fields for name in ("response", "result", "error"))
    if not request and not answer and not is_result:
        return None
    if not any(name in fields for name in _CAME) and not custom_id:
        return None  # a request without any place for an answer is a list of messages
    asked_at = _first(fields, _ASKED) or _inner_time(fields, _SENT)
    at = _first(fields, _ANSWERED) or _inner_time(fields, _CAME) or _first(fields, _AT)
    return Exchange(
        request=request,
        answer=answer,
        usage=_counted(fields),
        custom_id=custom_id,
        asked_at=asked_at,
        at=at or _first(fields_in(answer), ("created", "created_at")) or asked_at,
    )


def _request_in(fields: dict[str, bytes]) -> bytes:
    """Return the body of the request; where its fields stand in the line itself, a body of those that matter."""
    body = next((body for name in _SENT if (body := _request(fields.get(name, b"")))), b"")
    listed = _unquoted(fields.get("messages", b""))
    if body or listed[:1] != b"[":
        return body
    own = {name: fields[name] for name in ("model", "system", "tools") if name in fields}
    around = fields_in(fields.get("model_parameters", b"")) | fields_in(fields.get("optional_params", b""))
    beside = {name: around[name] for name in ("system", "tools") if name in around}
    return write_object(beside | own | {"messages": listed})


def _request(raw: bytes, depth: int = 0) -> bytes:
    body = _unquoted(raw)
    fields = fields_in(body)
    if fields.get("messages", b"")[:1] == b"[" or _is_responses_request(fields):
        return body
    return _inside(fields, _INNER_SENT, depth, _request)


def _answer(raw: bytes, depth: int = 0) -> bytes:
    if raw[:1] == b'"':
        text = _text(raw)
        if text.lstrip().startswith(("data:", "event:")):
            return answer_in_stream(text.encode(errors="replace"))
    body = _unquoted(raw)
    if body[:1] == b"[":
        return answer_in_events(items_in(body))
    fields = fields_in(body)
    if fields.get("choices", b"")[:1] == b"[" or _is_response(fields):
        return body
    if fields.get("role") == b'"assistant"':
        of_anthropic = fields.get("content", b"")[:1] == b"[" and "tool_calls" not in fields
        return body if of_anthropic else b'{"choices":[{"message":%b}]}' % body
    return _inside(fields, _INNER_CAME, depth, _answer)


def _is_responses_request(fields: dict[str, bytes]) -> bool:
    return fields.get("input", b"")[:1] in (b"[", b'"') and "model" in fields


def _is_response(fields: dict[str, bytes]) -> bool:
    return fields.get("output", b"")[:1] == b"[" and fields.get("object") == b'"response"'


def _inside(
    fields: dict[str, bytes], names: tuple[str, ...], depth: int, look: Callable[[bytes, int], bytes]
) -> bytes:
    if depth == _DEEPEST:
        return b""
    return next((body for name in names if (body := look(fields.get(name, b""), depth + 1))), b"")


def _unquoted(raw: bytes) -> bytes:
    """Return JSON that was written into a text as JSON; any other as it is."""
    return _text(raw).strip().encode(errors="replace") if raw[:1] == b'"' else raw


def _counted(fields: dict[str, bytes]) -> bytes:
    if fields.get("usage", b"")[:1] == b"{":
        return fields["usage"]
    counted = {name: raw for name, raw in fields.items() if name in _COUNTED}
    return write_object(counted) if counted else b""


def _inner_time(fields: dict[str, bytes], names: tuple[str, ...]) -> float | None:
    inner = (fields_in(fields.get(name, b"")) for name in names)
    return next((time for found in inner if (time := _first(found, _AT)) is not None), None)


def _first(fields: dict[str, bytes], names: tuple[str, ...]) -> float | None:
    return next((time for name in names if (time := _seconds(fields.get(name, b""))) is not None), None)


def _seconds(raw: bytes) -> float | None:
    try:
        return seconds(read_json(raw, float | str)) if raw else None  # type: ignore[arg-type]  # a union is a type
    except BadInput:
        return None


def _text(raw: bytes) -> str:
    try:
        return read_json(raw, str) if raw[:1] == b'"' else ""
    except BadInput:
        return ""
