"""Reads plain lists of messages, which no program has put its mark on.

A list is a JSON array of messages, JSON lines with one message each, or a field of an object: a request body, a line of a
fine-tuning set, a result of tau-bench. If a message has other fields beside its content, these are read: `ts` (or
`timestamp`, `created_at`), `model`, `usage`, `kind`.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec import Raw, Struct

from lowwater.core.formats.codec import detect
from lowwater.core.messages import Format
from lowwater.core.strict_json import write_object
from lowwater.logs.files import (
    RecordedFile,
    fields_in,
    given_text,
    given_value,
    is_readable,
    json_items,
    read_or,
    seconds,
)
from lowwater.logs.recording import RecordedCall, RecordedMessage, Recording
from lowwater.logs.recording_builder import build_recording, decode_recorded, usage_in

LISTS = ("messages", "traj", "conversation", "history")
"""The fields of an object that may have a list of messages; the first that has one counts."""
_KINDS = ("compact_summary", "meta", "attachment", "synthetic")
_BESIDE = ("ts", "timestamp", "created_at", "model", "kind", "usage")
_NONE = Raw(b"null")


class _Around(Struct):
    """What a message may have beside its content."""

    role: Any = None
    ts: Any = None
    timestamp: Any = None
    created_at: Any = None
    model: Any = None
    kind: Any = None
    usage: Raw = _NONE


class _Header(Struct):
    """What an object or a first line may say about the whole list."""

    id: Any = None
    session_id: Any = None
    model: Any = None
    system: Raw = Raw(b"")
    tools: Raw = Raw(b"")


class _Numbered(Struct, frozen=True):
    where: int | str
    raw: bytes


class MessageLists:
    """Reads lists of messages; the last format to be tried, because files of other formats contain messages, too."""

    name = "message-list"
    order = 120

    def recognises(self, head: bytes, path: Path) -> bool:  # noqa: ARG002  # the content is enough
        """Return whether the file begins with messages, lists of messages, or objects with such a list."""
        text = head.lstrip()
        if text[:1] == b"[":
            first = next(json_items(text), b"")
            return _is_message(first) or _is_list(first)
        lines = [line for line in text.split(b"\n", 3)[:2] if line.strip()]
        return any(_is_message(line) or _is_list(line) for line in lines) or bool(
            _list_field(fields_in(text))
        )

    def read(self, file: RecordedFile) -> Iterator[Recording]:
        """Yield each list as a session."""
        head = file.head().lstrip()
        if head[:1] == b"[":
            yield from _from_array(file)
        elif _in_lines(head):
            yield from _from_lines(file)
        else:
            yield from _sessions([_Numbered(1, file.whole())], file, alone=True)


def _in_lines(head: bytes) -> bool:
    first, _, rest = head.partition(b"\n")
    return is_readable(first, dict[str, Raw]) and (bool(rest.strip()) or _is_message(first))


def _from_array(file: RecordedFile) -> Iterator[Recording]:
    """Yield the sessions of a file that begins with an array: one value, or a list on each line."""
    head = file.head().lstrip()
    first, _, rest = head.partition(b"\n")
    if rest.lstrip()[:1] == b"[" and is_readable(first, list[Raw]):
        yield from _from_lines(file)
        return
    items = json_items(file.whole())
    one = next(items, b"")
    each = (_Numbered(f"item {at}", item) for at, item in enumerate(chain([one], items), start=1))
    if _is_list(one):
        yield from _sessions(each, file)
    else:
        yield from _recording(list(each), file, _Header(), place=file.path.stem)


def _from_lines(file: RecordedFile) -> Iterator[Recording]:
    lines = (_Numbered(line.number, line.data) for line in file.lines())
    first = next(lines, None)
    if first is None:
        return
    each = chain([first], lines)
    if _is_list(first.raw):
        yield from _sessions(each, file)
        return
    header = _Header() if _is_message(first.raw) else read_or(next(each).raw, _Header())
    yield from _recording(list(each), file, header, place=file.path.name.split(".")[0])


def _sessions(each: Iterable[_Numbered], file: RecordedFile, *, alone: bool = False) -> Iterator[Recording]:
    for at, item in enumerate(each, start=1):
        place = file.path.stem if alone else f"{file.path.stem}:{at}"
        if item.raw[:1] == b"[":
            header, raw = _Header(), item.raw
        else:
            fields = fields_in(item.raw)
            name = _list_field(fields)
            header, raw = read_or(item.raw, _Header()), fields.get(name, b"")
        if not raw:
            file.broken(item.where, "it has no list of messages")
            continue
        listed = [
            _Numbered(f"{item.where} message {n}", one) for n, one in enumerate(json_items(raw), start=1)
        ]
        yield from _recording(listed, file, header, place=place)


def _recording(
    raws: list[_Numbered], file: RecordedFile, header: _Header, *, place: str
) -> Iterator[Recording]:
    format = detect([one.raw for one in raws], ("system",) if bytes(header.system) else ())
    messages: list[RecordedMessage] = []
    for one in raws:
        after = messages[-1].message.role if messages else ""
        if (message := _message(one, format, file, header, after=after)) is not None:
            messages.append(message)
    if not messages:
        return
    yield build_recording(
        file,
        id=given_text(header.id) or given_text(header.session_id) or place,
        agent=MessageLists.name,
        messages=messages,
        model=given_text(header.model),
        system=given_value(bytes(header.system)),
        tools=given_value(bytes(header.tools)),
    )


def _message(
    one: _Numbered, format: Format, file: RecordedFile, header: _Header, *, after: str
) -> RecordedMessage | None:
    around = file.read(one.raw, _Around, one.where)
    if around is None:
        return None
    message = decode_recorded(_alone(one.raw), format, file=file, where=one.where)
    if message is None:
        return None
    usage = usage_in(bytes(around.usage), file=file, where=one.where)
    answers = message.role == "assistant" and (usage is not None or after != "assistant")
    kind = given_text(around.kind).partition(":")[0]
    return RecordedMessage(
        message=message,
        at=seconds(around.ts) or seconds(around.timestamp) or seconds(around.created_at),
        call=RecordedCall(model=given_text(around.model) or given_text(header.model), usage=usage)
        if answers
        else None,
        kind=kind if kind in _KINDS else "",
    )


def _alone(raw: bytes) -> bytes:
    """Return a message without the fields beside its content, which no provider accepts."""
    fields = fields_in(raw)
    if fields.keys().isdisjoint(_BESIDE):
        return raw
    return write_object({name: value for name, value in fields.items() if name not in _BESIDE})


def _is_message(raw: bytes) -> bool:
    fields = fields_in(raw)
    return fields.get("role", b"")[:1] == b'"' and bool({"content", "tool_calls"} & fields.keys())


def _is_list(raw: bytes) -> bool:
    """Return whether this is an array of messages, or an object with one."""
    if raw[:1] == b"[":
        return _is_message(next(json_items(raw), b""))
    return bool(_list_field(fields_in(raw)))


def _list_field(fields: dict[str, bytes]) -> str:
    return next((name for name in LISTS if _is_message(next(json_items(fields.get(name, b"")), b""))), "")


FORMATS = (MessageLists(),)
