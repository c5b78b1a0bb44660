"""Reads sessions in one simple form: a header, then OpenAI chat messages with times, usage and model."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Raw, Struct

from lowwater.core.api_calls import Usage
from lowwater.core.formats.usage import Tokens
from lowwater.core.strict_json import read_fields, read_json, write_object
from lowwater.errors import BadInput
from lowwater.logs.files import FileLine, RecordedFile, first_objects, seconds
from lowwater.logs.recording import NativeCompaction, RecordedCall, RecordedMessage, Recording
from lowwater.logs.recording_builder import build_recording, decode_recorded, usage_in

_HEADER = {"id", "agent", "native_compactions"}
_BESIDE = ("ts", "usage", "model", "kind")
_KINDS = {"developer": "meta", "queued": ""}


class _Compaction(Struct):
    index: int
    ts: Any = None
    trigger: str | None = None
    pre_tokens: int | None = None


class _Header(Struct):
    id: str
    agent: str = ""
    model: str | None = None
    started: Any = None
    native_compactions: list[_Compaction] = []


class _Beside(Struct):
    role: str = ""
    ts: Any = None
    usage: Raw = Raw(b"")
    model: str | None = None
    kind: str | None = None


class _Pi(Struct):
    """Token counts with the names that pi uses."""

    input: Tokens = None
    output: Tokens = None
    cacheRead: Tokens = None  # noqa: N815  # pi's spelling
    cacheWrite: Tokens = None  # noqa: N815


class Canonical:
    """Reads one session after each header."""

    name = "canonical"
    order = 50

    def recognises(self, head: bytes, path: Path) -> bool:  # noqa: ARG002  # the content is enough
        """Return whether the first line is a header."""
        return any(line.keys() >= _HEADER for line in first_objects(head)[:1])

    def read(self, file: RecordedFile) -> Iterator[Recording]:
        """Yield each session when the next header, or the end, is reached."""
        header: _Header | None = None
        messages: list[RecordedMessage | None] = []
        for line in file.lines():
            found = _header(line)
            if found is not None:
                if header is not None:
                    yield from _recording(file, header, messages)
                header, messages = found, []
            else:
                messages.append(_message(file, line, header))
        if header is not None:
            yield from _recording(file, header, messages)


def _header(line: FileLine) -> _Header | None:
    try:
        return read_json(line.data, _Header) if b'"native_compactions"' in line.data else None
    except BadInput:
        return None


def _recording(
    file: RecordedFile, header: _Header, messages: list[RecordedMessage | None]
) -> Iterator[Recording]:
    told = [message for message in messages if message is not None]
    if told:
        yield build_recording(
            file,
            id=header.id,
            agent=header.agent.partition(" ")[0],
            messages=told,
            compactions=[_compaction(it, messages, header) for it in header.native_compactions],
            model=header.model or "",
            started_at=seconds(header.started),
        )


def _compaction(
    told: _Compaction, messages: list[RecordedMessage | None], header: _Header
) -> NativeCompaction:
    """Return the compaction, with its index among the messages that could be read."""
    before = messages[: max(0, told.index)]
    return NativeCompaction(
        index=len(before) - before.count(None),
        at=seconds(told.ts),
        trigger=told.trigger or "",
        before=told.pre_tokens,
        version=header.agent.partition(" ")[2],
    )


def _message(file: RecordedFile, line: FileLine, header: _Header | None) -> RecordedMessage | None:
    beside = file.read(line.data, _Beside, line.number)
    if beside is None:
        return None
    fields = {name: value for name, value in read_fields(line.data).items() if name not in _BESIDE}
    message = decode_recorded(write_object(fields), "openai_chat", file=file, where=line.number)
    if message is None:
        return None
    call = None
    if message.role == "assistant":
        model = beside.model or (header.model if header else "") or ""
        call = RecordedCall(model=model, usage=_usage(file, line, bytes(beside.usage)))
    kind = (beside.kind or "").partition(":")[0]
    return RecordedMessage(message=message, at=seconds(beside.ts), call=call, kind=_KINDS.get(kind, kind))


def _usage(file: RecordedFile, line: FileLine, raw: bytes) -> Usage | None:
    if b'"cacheRead"' not in raw:
        return usage_in(raw, file=file, where=line.number)
    told = file.read(raw, _Pi, line.number)
    if told is None:
        return None
    return Usage(
        uncached=told.input or 0,
        cache_read=told.cacheRead or 0,
        cache_write=told.cacheWrite or 0,
        output=told.output or 0,
    )


FORMATS = (Canonical(),)
