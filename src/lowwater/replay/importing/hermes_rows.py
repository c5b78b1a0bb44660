"""What stands in Hermes' `state.db`: its sessions, and the messages of each in the chat format."""

import sqlite3
from collections.abc import Iterator

from msgspec import Raw, Struct

from lowwater.core.api_calls import Usage
from lowwater.core.messages import Message
from lowwater.core.strict_json import read_json
from lowwater.errors import BadInput
from lowwater.replay.importing.databases import Database
from lowwater.replay.importing.decoding import decoded_object
from lowwater.replay.importing.lines import RecordedFile
from lowwater.replay.importing.times import seconds

_SESSION = (
    "id", "source", "model", "model_config", "parent_session_id", "started_at", "ended_at", "end_reason",
    "api_call_count", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens",
)  # fmt: skip
_MESSAGE = (
    "id", "role", "content", "api_content", "tool_call_id", "tool_calls", "tool_name", "timestamp",
    "reasoning", "reasoning_content", "active", "compacted",
)  # fmt: skip
_STRUCTURED = "\x00json:"
"""What content begins with that is more than one text."""
_NO_MESSAGES = ("session_meta",)


class _Marks(Struct, rename={"branched_from": "_branched_from", "delegate_from": "_delegate_from"}):
    branched_from: str | None = None
    delegate_from: str | None = None


class Session(Struct, frozen=True, kw_only=True):
    """What Hermes says of a session besides its messages."""

    id: str
    source: str = ""
    model: str = ""
    parent: str = ""
    branched: bool = False
    delegated: bool = False
    started_at: float | None = None
    ended_at: float | None = None
    end_reason: str = ""
    calls: int = 0
    usage: Usage | None = None
    """All its calls together: Hermes keeps no more."""


class Row(Struct, frozen=True, kw_only=True):
    """One message and when it was written."""

    message: Message
    at: float | None


def sessions_in(database: Database) -> Iterator[Session]:
    """Yield the sessions, oldest first."""
    there = database.columns("sessions")
    columns = ", ".join(name for name in _SESSION if name in there)
    order = ", ".join(name for name in ("started_at", "id") if name in there)
    query = f"SELECT {columns} FROM sessions ORDER BY {order}"  # noqa: S608  # names from this file
    for row in database.rows(query):
        fields = dict(row)
        if isinstance(fields["id"], str):
            yield _session(fields)


def system_prompt_of(database: Database, session: str) -> str:
    """Return the system prompt that a session was recorded with, empty if it was not."""
    if "system_prompt" not in database.columns("sessions"):
        return ""
    found = next(database.rows("SELECT system_prompt FROM sessions WHERE id = ?", session), None)
    return _text(found["system_prompt"]) if found is not None else ""


def rows_of(database: Database, session: str, file: RecordedFile) -> Iterator[Row]:
    """Yield the messages of a session in the order they were written, without those that the user took back."""
    there = database.columns("messages")
    columns = ", ".join(name for name in _MESSAGE if name in there)
    taken_back = " AND NOT (active = 0 AND compacted = 0)" if {"active", "compacted"} <= there else ""
    query = f"SELECT {columns} FROM messages WHERE session_id = ?{taken_back} ORDER BY id"  # noqa: S608  # as above
    try:
        for row in database.rows(query, session):
            message = _message(row, file)
            if message is not None:
                yield Row(message=message, at=seconds(dict(row).get("timestamp")))
    except BadInput as error:
        file.broken(f"session {session}", str(error))


def _session(fields: dict[str, object]) -> Session:
    marks = _marks(_text(fields.get("model_config")))
    figures = [
        _count(fields.get(f"{name}_tokens")) for name in ("input", "cache_read", "cache_write", "output")
    ]
    uncached, read, written, output = figures
    usage = Usage(uncached=uncached, cache_read=read, cache_write=written, output=output)
    return Session(
        id=_text(fields["id"]),
        source=_text(fields.get("source")),
        model=_text(fields.get("model")),
        parent=_text(fields.get("parent_session_id")) or marks.branched_from or marks.delegate_from or "",
        branched=marks.branched_from is not None,
        delegated=marks.delegate_from is not None,
        started_at=seconds(fields.get("started_at")),
        ended_at=seconds(fields.get("ended_at")),
        end_reason=_text(fields.get("end_reason")),
        calls=_count(fields.get("api_call_count")),
        usage=usage if usage.prompt else None,
    )


def _message(row: sqlite3.Row, file: RecordedFile) -> Message | None:
    fields = dict(row)
    role, where = _text(fields.get("role")), f"message {fields.get('id')}"
    if role in _NO_MESSAGES:
        return None
    try:
        shaped: dict[str, object] = {"role": role, "content": _content(fields)}
        if calls := _text(fields.get("tool_calls")):
            shaped["tool_calls"] = read_json(calls.encode(), list[Raw])
    except BadInput as error:
        file.broken(where, str(error))
        return None
    if role == "tool":
        shaped["tool_call_id"] = fields.get("tool_call_id")
        shaped["name"] = fields.get("tool_name")
    if thought := _text(fields.get("reasoning_content")) or _text(fields.get("reasoning")):
        shaped["reasoning_content"] = thought
    return decoded_object(shaped, file=file, where=where)


def _content(fields: dict[str, object]) -> object:
    """Return what was sent: Hermes keeps it beside the text it shows where the two differ."""
    content = fields.get("api_content") or fields.get("content")
    if not isinstance(content, str):
        return None if content is None else str(content)
    if content.startswith(_STRUCTURED):
        return read_json(content.removeprefix(_STRUCTURED).encode(), Raw)
    return content


def _marks(config: str) -> _Marks:
    try:
        return read_json(config.encode(), _Marks) if config else _Marks()
    except BadInput:
        return _Marks()


def _text(told: object) -> str:
    return told if isinstance(told, str) else ""


def _count(told: object) -> int:
    return told if isinstance(told, int) and told >= 0 else 0
