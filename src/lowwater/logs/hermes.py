"""Reads Hermes' sessions from its SQLite database, with its own compactions."""

import sqlite3
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path

from msgspec import Raw, Struct
from msgspec.structs import replace

from lowwater.core.api_calls import Usage, together
from lowwater.core.messages import Message
from lowwater.core.strict_json import read_json, write_json
from lowwater.errors import BadInput
from lowwater.logs.files import (
    Database,
    LogFolder,
    RecordedFile,
    given_text,
    has_columns,
    open_database,
    read_or,
    seconds,
)
from lowwater.logs.recording import NativeCompaction, RecordedCall, RecordedMessage, Recording
from lowwater.logs.recording_builder import build_recording, decode_chat_fields

# Rows of the database

_SESSION = (
    "id", "source", "model", "model_config", "parent_session_id", "started_at", "ended_at", "end_reason",
    "api_call_count", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens",
)  # fmt: skip
_MESSAGE = (
    "id", "role", "content", "api_content", "tool_call_id", "tool_calls", "tool_name", "timestamp",
    "reasoning", "reasoning_content", "active", "compacted",
)  # fmt: skip
_STRUCTURED = "\x00json:"
"""The prefix of content that is stored as JSON instead of plain text."""
_NO_MESSAGES = ("session_meta",)


class _Marks(Struct, rename={"branched_from": "_branched_from", "delegate_from": "_delegate_from"}):
    branched_from: str | None = None
    delegate_from: str | None = None


class HermesSession(Struct, frozen=True, kw_only=True):
    """A session's row, without its messages."""

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
    """The total usage of its calls; Hermes records no usage per call."""


class HermesMessageRow(Struct, frozen=True, kw_only=True):
    """One message with its time."""

    message: Message
    at: float | None


def sessions_in(database: Database) -> Iterator[HermesSession]:
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
    return given_text(found["system_prompt"]) if found is not None else ""


def message_rows(database: Database, session: str, file: RecordedFile) -> Iterator[HermesMessageRow]:
    """Yield the messages of a session in order, without those that the user retracted."""
    there = database.columns("messages")
    columns = ", ".join(name for name in _MESSAGE if name in there)
    taken_back = " AND NOT (active = 0 AND compacted = 0)" if {"active", "compacted"} <= there else ""
    query = f"SELECT {columns} FROM messages WHERE session_id = ?{taken_back} ORDER BY id"  # noqa: S608  # as above
    with file.broken_at(f"session {session}"):
        for row in database.rows(query, session):
            message = _message(row, file)
            if message is not None:
                yield HermesMessageRow(message=message, at=seconds(dict(row).get("timestamp")))


def _session(fields: dict[str, object]) -> HermesSession:
    marks = read_or(given_text(fields.get("model_config")).encode(), _Marks())
    figures = [
        _count(fields.get(f"{name}_tokens")) for name in ("input", "cache_read", "cache_write", "output")
    ]
    uncached, read, written, output = figures
    usage = Usage(uncached=uncached, cache_read=read, cache_write=written, output=output)
    return HermesSession(
        id=given_text(fields["id"]),
        source=given_text(fields.get("source")),
        model=given_text(fields.get("model")),
        parent=given_text(fields.get("parent_session_id"))
        or marks.branched_from
        or marks.delegate_from
        or "",
        branched=marks.branched_from is not None,
        delegated=marks.delegate_from is not None,
        started_at=seconds(fields.get("started_at")),
        ended_at=seconds(fields.get("ended_at")),
        end_reason=given_text(fields.get("end_reason")),
        calls=_count(fields.get("api_call_count")),
        usage=usage if usage.prompt else None,
    )


def _message(row: sqlite3.Row, file: RecordedFile) -> Message | None:
    fields = dict(row)
    role, where = given_text(fields.get("role")), f"message {fields.get('id')}"
    if role in _NO_MESSAGES:
        return None
    try:
        shaped: dict[str, object] = {"role": role, "content": _content(fields)}
        if calls := given_text(fields.get("tool_calls")):
            shaped["tool_calls"] = read_json(calls.encode(), list[Raw])
    except BadInput as error:
        file.broken(where, str(error))
        return None
    if role == "tool":
        shaped["tool_call_id"] = fields.get("tool_call_id")
        shaped["name"] = fields.get("tool_name")
    if thought := given_text(fields.get("reasoning_content")) or given_text(fields.get("reasoning")):
        shaped["reasoning_content"] = thought
    return decode_chat_fields(shaped, file=file, where=where)


def _content(fields: dict[str, object]) -> object:
    """Return the content that was sent: Hermes stores it separately if it differs from the text shown."""
    content = fields.get("api_content") or fields.get("content")
    if not isinstance(content, str):
        return None if content is None else str(content)
    if content.startswith(_STRUCTURED):
        return read_json(content.removeprefix(_STRUCTURED).encode(), Raw)
    return content


def _count(told: object) -> int:
    return told if isinstance(told, int) and told >= 0 else 0


# What compactions left: copies of messages, and summaries

_BEGINNINGS = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]:")
_MERGED = "[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]"


class Left(Struct, frozen=True, kw_only=True):
    """The rows from `start` to before `end`, which one compaction left."""

    start: int
    end: int


def left_by_compactions(rows: Sequence[HermesMessageRow], starts: Sequence[int]) -> list[Left]:
    """Return what each compaction left, in order; `starts` are the first rows of sessions that continue another."""
    found: list[Left] = []
    earlier = _Earlier()
    shown = at = 0
    while at < len(rows):
        start = at if at in starts else _start_before(rows, shown, at)
        if start is None:
            earlier.take(rows[at].message, at)
            at += 1
            continue
        earlier.forget_from(start)
        left = Left(start=start, end=_end_of(rows, start, at, earlier))
        found.append(left)
        shown = start
        for position in range(left.start, left.end):
            earlier.take(rows[position].message, position)
        at = max(left.end, at)
        if left.end == left.start:  # a new session that begins with new messages
            earlier.take(rows[at].message, at)
            at += 1
    return found


def is_summary(message: Message) -> bool:
    """Return whether a message is, or ends with, a summary that Hermes wrote of removed messages."""
    text = message.text.lstrip()
    if _MERGED in text:
        return True
    return text.startswith(_BEGINNINGS)


def _start_before(rows: Sequence[HermesMessageRow], shown: int, at: int) -> int | None:
    """Return where the copies before a summary begin; None if the row at `at` is not a summary."""
    if at == 0 or not is_summary(rows[at].message):
        return None
    for copies in range((at - shown) // 2, 0, -1):
        pairs = zip(rows[shown : shown + copies], rows[at - copies : at], strict=True)
        if all(_is_copy(new.message, old.message) for old, new in pairs):
            return at - copies
    return at


def _end_of(rows: Sequence[HermesMessageRow], start: int, at: int, earlier: "_Earlier") -> int:
    """Return the end of the copies and the summary; copies are in the order of their originals."""
    end, last = start, -1
    while end < len(rows):
        message = rows[end].message
        if not is_summary(message):
            copied = earlier.position(message, after=last)
            if copied is None and end >= at:
                break
            last = last if copied is None else copied
        end += 1
    return end


class _Earlier:
    """The messages so far, indexed by content and by the tool calls that they make or answer."""

    def __init__(self) -> None:
        self._positions: defaultdict[object, list[int]] = defaultdict(list)
        self._keys: list[tuple[int, list[object]]] = []

    def take(self, message: Message, position: int) -> None:
        keys = _keys(message)
        self._keys.append((position, keys))
        for key in keys:
            self._positions[key].append(position)

    def position(self, message: Message, *, after: int) -> int | None:
        """Return the first position after `after` of this message, even if its outputs have been shortened."""
        for key in _keys(message):
            places = self._positions.get(key, [])
            index = bisect_right(places, after)
            if index < len(places):
                return places[index]
        return None

    def forget_from(self, position: int) -> None:
        while self._keys and self._keys[-1][0] >= position:
            for key in self._keys.pop()[1]:
                self._positions[key].pop()


def _is_copy(message: Message, of: Message) -> bool:
    return not set(_keys(of)).isdisjoint(_keys(message))


def _keys(message: Message) -> list[object]:
    calls = [("call", call.id) for call in message.calls]
    results = [("result", result.call_id) for result in message.results]
    return [message.digest, *calls, *results]


# The format: sessions with those that continue them

_SPLIT, _BRANCHED = "compression", "branched"


class Hermes:
    """Reads all sessions of a database, one lineage in memory at a time."""

    name = "hermes"
    order = 70

    def recognises(self, head: bytes, path: Path) -> bool:
        """Return whether the tables are those of Hermes."""
        return has_columns(head, path, sessions="parent_session_id", messages="tool_calls")

    def read(self, file: RecordedFile) -> Iterator[Recording]:
        """Yield each session with those that continue it."""
        with open_database(file.path) as database:
            sessions = {session.id: session for session in sessions_in(database)}
            lineages = list(_lineages(sessions))
            homes = {session.id: lineage[0].id for lineage in lineages for session in lineage}
            for lineage in lineages:
                relation = _relation(lineage[0], sessions)
                for recording in _recording(lineage, relation, database, file):
                    parent = lineage[0].parent
                    yield replace(recording, parent=homes.get(parent, parent), relation=relation)


def _recording(
    lineage: Sequence[HermesSession], relation: str, database: Database, file: RecordedFile
) -> Iterator[Recording]:
    """Yield a lineage as one session, unless it has no messages."""
    root, rows = lineage[0], list[HermesMessageRow]()
    starts: list[int] = []
    for session in lineage:
        starts.append(len(rows))
        rows.extend(message_rows(database, session.id, file))
    if not rows:
        return
    shared = _shared(rows, root.parent, database, file.path) if relation == "fork" else 0
    left = left_by_compactions(rows, [start for start in starts if 0 < start < len(rows)])
    messages = _messages(rows, left, model=lineage[-1].model or root.model, shared=shared)
    one_call = sum(message.call is not None for message in messages) == 1
    usage = _sum(lineage)
    if usage is not None and one_call and sum(session.calls for session in lineage) == 1:
        messages, usage = [_billed(message, usage) for message in messages], None
    yield build_recording(
        file,
        id=root.id,
        agent=Hermes.name,
        messages=messages,
        compactions=[NativeCompaction(index=one.start, at=rows[one.start].at) for one in left],
        system=_system(database, lineage),
        started_at=root.started_at,
        shared=shared,
        usage=usage,
    )


def _messages(
    rows: Sequence[HermesMessageRow], left: Sequence[Left], *, model: str, shared: int
) -> list[RecordedMessage]:
    """Return the rows as messages; those that a compaction left or that a branch shares are not new calls."""
    copies = {position for one in left for position in range(one.start, one.end)}
    messages: list[RecordedMessage] = []
    for at, row in enumerate(rows):
        is_new = at not in copies and at >= shared
        answers = row.message.role == "assistant" and is_new
        messages.append(
            RecordedMessage(
                message=row.message,
                at=row.at,
                call=RecordedCall(model=model) if answers else None,
                kind="compact_summary" if at in copies else "",
            )
        )
    return messages


def _lineages(sessions: dict[str, HermesSession]) -> Iterator[list[HermesSession]]:
    """Yield each session with those that continue it after a compaction, in order; a cycle is cut."""
    continued = _continued(sessions)
    behind = {session.id for session in continued.values()}
    done: set[str] = set()
    firsts = [session for session in sessions.values() if session.id not in behind]
    for first in (*firsts, *sessions.values()):
        lineage: list[HermesSession] = []
        session: HermesSession | None = first
        while session is not None and session.id not in done:
            done.add(session.id)
            lineage.append(session)
            session = continued.get(session.id)
        if lineage:
            yield lineage


def _continued(sessions: dict[str, HermesSession]) -> dict[str, HermesSession]:
    """Return for each session the one that continues it after a compaction; of several, one that was itself compacted."""
    found: dict[str, HermesSession] = {}
    for session in sessions.values():
        if not _continues(session, sessions):
            continue
        before = found.get(session.parent)
        if before is None or before.end_reason != _SPLIT or session.end_reason == _SPLIT:
            found[session.parent] = session
    return found


def _continues(session: HermesSession, sessions: dict[str, HermesSession]) -> bool:
    parent = sessions.get(session.parent)
    marked = session.branched or session.delegated or session.source == "tool"
    return parent is not None and parent.end_reason == _SPLIT and not marked


def _relation(session: HermesSession, sessions: dict[str, HermesSession]) -> str:
    """Return the relation of a session to its parent; a child without a mark is a sub-agent, as in Hermes itself."""
    if not session.parent:
        return ""
    parent = sessions.get(session.parent)
    left_for_it = parent is not None and parent.end_reason in (_BRANCHED, _SPLIT)
    return "fork" if session.branched or (left_for_it and not session.delegated) else "subagent"


def _shared(rows: Sequence[HermesMessageRow], parent: str, database: Database, path: Path) -> int:
    """Return how many of the first messages a branch copied from its parent; broken rows are reported with the parent."""
    with RecordedFile(path) as again:
        pairs = zip(rows, message_rows(database, parent, again), strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0].message == pair[1].message, pairs))


def _billed(message: RecordedMessage, usage: Usage) -> RecordedMessage:
    return replace(message, call=replace(message.call, usage=usage)) if message.call else message


def _sum(lineage: Sequence[HermesSession]) -> Usage | None:
    told = [session.usage for session in lineage if session.usage is not None]
    return together(told) if told else None


def _system(database: Database, lineage: Sequence[HermesSession]) -> bytes:
    """Return the system prompt of the first session that has one."""
    try:
        prompts = (system_prompt_of(database, session.id) for session in lineage)
        prompt = next((prompt for prompt in prompts if prompt), "")
        return write_json(prompt) if prompt else b""
    except BadInput:
        return b""


FORMATS = (Hermes(),)
FOLDERS = (LogFolder(agent="Hermes", variable="HERMES_HOME", home=".hermes", inside="state.db"),)
