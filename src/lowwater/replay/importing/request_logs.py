"""Logs of requests to OpenAI's and Anthropic's APIs with their answers, LiteLLM's logs and batches among them.

One exchange a line, or one an item of a JSON array. A request that was never answered is no call: its messages come with
the next one that repeats them.
"""

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.formats.codec import decode_response, messages_in
from lowwater.core.formats.detect import detect
from lowwater.core.formats.openai_responses import is_elsewhere
from lowwater.core.messages import Format
from lowwater.core.strict_json import read_fields, read_json, write_object
from lowwater.errors import BadInput
from lowwater.logs.recording import Recording
from lowwater.replay.importing.decoding import usage_in
from lowwater.replay.importing.lines import RecordedFile
from lowwater.replay.importing.outline import fields_in, items_in
from lowwater.replay.importing.request_logs_batches import BatchRequests
from lowwater.replay.importing.request_logs_exchanges import Exchange, exchange_in
from lowwater.replay.importing.request_logs_sessions import AGENT, Asked, Sessions

_LOOKED_AT = 3
RESPONSES: Format = "openai_responses"


class _Item(Struct, frozen=True):
    where: int | str
    data: bytes


class RequestLogs:
    """One log a file; consecutive requests that extend each other are one session."""

    name = AGENT

    def recognises(self, head: bytes, path: Path) -> bool:  # noqa: ARG002  # the content is enough
        """Tell whether one of the first lines, or the first item, is an exchange."""
        text = head.lstrip()
        if text[:1] == b"[":
            return _is_exchange(next(items_in(text), b""))
        return any(map(_is_exchange, text.split(b"\n", _LOOKED_AT)[:_LOOKED_AT]))

    def read(self, file: RecordedFile) -> Iterator[Recording]:
        """Yield each session when no memory is left for it, or the file ends."""
        sessions, batch = Sessions(file), BatchRequests(file.path)
        told: set[bytes] = set()
        for item in _items(file):
            exchange = exchange_in(item.data)
            if exchange is None:
                file.broken(item.where, _why_none(item.data))
                continue
            if not exchange.answer:
                continue
            if exchange.custom_id and not exchange.request:
                exchange = replace(exchange, request=batch.find(exchange.custom_id))
            once = blake2b(exchange.request + exchange.answer, digest_size=16).digest()
            if once not in told:
                told.add(once)
                yield from _take(exchange, item.where, sessions, file)
        yield from sessions.rest()


def _is_exchange(data: bytes) -> bool:
    exchange = exchange_in(data)
    return exchange is not None and bool(exchange.answer or exchange.custom_id)


def _why_none(data: bytes) -> str:
    try:
        read_fields(data)
    except BadInput as error:
        return str(error)
    return "neither a request nor an answer"


def _items(file: RecordedFile) -> Iterator[_Item]:
    if file.head().lstrip()[:1] == b"[":
        for at, data in enumerate(items_in(file.whole())):
            yield _Item(f"item {at}", data)
    else:
        for line in file.lines():
            yield _Item(line.number, line.data)


def _take(
    exchange: Exchange, where: int | str, sessions: Sessions, file: RecordedFile
) -> Iterator[Recording]:
    try:
        response = decode_response(exchange.answer)
        asked = _asked(exchange.request, where, sessions)
    except BadInput as error:
        file.broken(where, str(error))
        return
    if response.usage is None:
        response = replace(response, usage=usage_in(exchange.usage, file=file, where=where))
    yield from sessions.take(
        asked, response, asked_at=exchange.asked_at, at=exchange.at, name=exchange.custom_id
    )


def _asked(request: bytes, where: int | str, sessions: Sessions) -> Asked:
    fields = fields_in(request)
    if "messages" not in fields and "input" in fields:
        return _asked_for_response(fields, where, sessions)
    raws = list(items_in(fields.get("messages", b"")))
    format = detect(raws, fields)
    return Asked(
        messages=tuple(sessions.messages(raws, format, where)),
        system=_value(fields.get("system", b"")),
        tools=_value(fields.get("tools", b"")),
        model=_model(fields.get("model", b"")),
    )


def _asked_for_response(fields: dict[str, bytes], where: int | str, sessions: Sessions) -> Asked:
    if is_elsewhere(fields):
        raise BadInput("the request goes on with what its provider keeps: its history is not in the log")
    listed = fields["input"]
    said = write_object({"role": b'"user"', "content": listed}) if listed[:1] == b'"' else b""
    raws = [said] if said else list(items_in(listed))
    return Asked(
        messages=tuple(sessions.messages(messages_in(raws, RESPONSES), RESPONSES, where)),
        system=_value(fields.get("instructions", b"")),
        tools=_value(fields.get("tools", b"")),
        model=_model(fields.get("model", b"")),
    )


def _value(raw: bytes) -> bytes:
    return b"" if raw == b"null" else raw


def _model(raw: bytes) -> str:
    try:
        return read_json(raw, str)
    except BadInput:
        return ""
