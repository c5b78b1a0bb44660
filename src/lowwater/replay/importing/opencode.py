"""OpenCode's sessions: a folder of small JSON files, the database it keeps since, or what it exports."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.strict_json import read_json, write_json
from lowwater.errors import BadInput
from lowwater.logs.recording import Recording
from lowwater.replay.importing.databases import Database, has_columns, opened
from lowwater.replay.importing.gathering import gathered
from lowwater.replay.importing.lines import RecordedFile
from lowwater.replay.importing.opencode_messages import Conversation
from lowwater.replay.importing.opencode_told import MessageInfo, Part, SessionInfo, Told
from lowwater.replay.importing.outline import fields_in, items_in
from lowwater.replay.importing.surrogates import without_lone_surrogates
from lowwater.replay.importing.times import seconds

_AGENT = "opencode"

T = TypeVar("T")


class _Raw(Struct, frozen=True):
    """One JSON object and where it was found."""

    where: str
    data: bytes


class OpenCodeFiles:
    """A session's file, from which its messages and their parts are found in the folders beside it, or an export."""

    name = _AGENT

    def recognises(self, head: bytes, path: Path) -> bool:  # noqa: ARG002  # the content is enough
        """Tell by the ids that only OpenCode gives."""
        fields = fields_in(head)
        return _is_session(fields) or _is_piece(fields) or _is_session(fields_in(fields.get("info", b"")))

    def read(self, file: RecordedFile) -> Iterator[Recording]:
        """Yield the session; messages and parts are read with theirs and give none."""
        data, name = file.whole(), file.path.name.partition(".")[0]
        fields = fields_in(data)
        if _is_piece(fields):
            raise BadInput("a message or part, which is read with its session")
        if "messages" in fields:
            info = _read(_Raw("info", fields.get("info", b"")), SessionInfo, file) or SessionInfo()
            told = _exported(fields["messages"], file)
            yield from _recording(replace(info, id=info.id or name), told, file)
        else:
            info = _read(_Raw("session", data), SessionInfo, file) or SessionInfo()
            yield from _recording(replace(info, id=name), _beside(file), file)


class OpenCodeDatabase:
    """All sessions of a database, one in memory at a time."""

    name = _AGENT

    def recognises(self, head: bytes, path: Path) -> bool:
        """Tell by the tables that OpenCode makes."""
        return has_columns(head, path, session="parent_id", message="data", part="message_id")

    def read(self, file: RecordedFile) -> Iterator[Recording]:
        """Yield each session, oldest first."""
        with opened(file.path) as database:
            sessions = list(database.rows("SELECT id, parent_id, time_created FROM session ORDER BY id"))
            for row in sessions:
                info = SessionInfo(id=str(row["id"]), parent=_text(row["parent_id"]))
                for recording in _recording(info, _stored(info.id, database, file), file):
                    yield replace(recording, started_at=seconds(row["time_created"]))


def _recording(info: SessionInfo, told: Sequence[Told], file: RecordedFile) -> Iterator[Recording]:
    """Yield the session if it has messages and was not told before: a database takes over what files held."""
    conversation = Conversation(file, told)
    place = str(file.path)
    if not conversation.messages or file.teller(f"{_AGENT}:{info.id}", place) != place:
        return
    prompts = (one.info.system for one in told if isinstance(one.info.system, str) and one.info.system)
    prompt = next(prompts, "")
    yield replace(
        gathered(
            file,
            id=info.id,
            agent=_AGENT,
            messages=conversation.messages,
            compactions=conversation.compactions,
            system=write_json(prompt) if prompt else b"",
            started_at=seconds(info.time.created) if info.time else None,
        ),
        parent=info.parent or "",
        relation="subagent" if info.parent else "",
    )


def _beside(file: RecordedFile) -> list[Told]:
    """Return the messages of a session from the folders beside its file."""
    session = file.path.name.partition(".")[0]
    for base in file.path.parents[:3]:
        if (base / "message" / session).is_dir():
            each = (
                _told(_contents(path), _parts_beside(base, session, path), file)
                for path in sorted((base / "message" / session).glob("*.json"))
            )
            return _in_order(each)
    return []


def _parts_beside(base: Path, session: str, message: Path) -> Iterator[_Raw]:
    """Yield the parts of a message; before 0.6 they lay a folder deeper."""
    name = message.name.partition(".")[0]
    for folder in (base / "part" / name, base / "part" / session / name):
        for path in sorted(folder.glob("*.json")):
            yield _contents(path)


def _contents(path: Path) -> _Raw:
    """Return what is in a file; one that cannot be opened is as broken as an empty one."""
    try:
        data = path.read_bytes()
    except OSError:
        data = b""
    where = f"{path.parent.name}/{path.name}"
    return _Raw(where, without_lone_surrogates(data) if b"\\u" in data else data)


def _exported(messages: bytes, file: RecordedFile) -> list[Told]:
    each: list[Told | None] = []
    for at, item in enumerate(items_in(messages)):
        fields = fields_in(item)
        parts = [
            _Raw(f"messages[{at}].parts[{n}]", raw)
            for n, raw in enumerate(items_in(fields.get("parts", b"")))
        ]
        each.append(_told(_Raw(f"messages[{at}]", fields.get("info", b"")), parts, file))
    return _in_order(each)


def _stored(session: str, database: Database, file: RecordedFile) -> list[Told]:
    """Return the messages of a session from a database; what is damaged ends them."""
    parts: dict[str, list[_Raw]] = {}
    each: list[Told | None] = []
    try:
        found = database.rows(
            "SELECT id, message_id, data FROM part WHERE session_id = ? ORDER BY message_id, id", session
        )
        for message, rows in groupby(found, key=lambda row: str(row["message_id"])):
            parts[message] = [_Raw(f"part {row['id']}", _bytes(row["data"])) for row in rows]
        for row in database.rows("SELECT id, data FROM message WHERE session_id = ? ORDER BY id", session):
            id = str(row["id"])
            told = _told(_Raw(f"message {id}", _bytes(row["data"])), parts.get(id, []), file)
            each.append(told and replace(told, info=replace(told.info, id=id)))
    except BadInput as error:
        file.broken(f"session {session}", str(error))
    return _in_order(each)


def _told(raw: _Raw, parts: Iterable[_Raw], file: RecordedFile) -> Told | None:
    info = _read(raw, MessageInfo, file)
    if info is None:
        return None
    read = (_read(part, Part, file) for part in parts)
    return Told(where=raw.where, info=info, parts=tuple(part for part in read if part is not None))


def _read(raw: _Raw, kind: type[T], file: RecordedFile) -> T | None:
    try:
        return read_json(raw.data, kind)
    except BadInput as error:
        file.broken(raw.where, str(error))
        return None


def _in_order(each: Iterable[Told | None]) -> list[Told]:
    """Return the messages in the order they were begun; ids grow with time too."""
    return sorted(
        (one for one in each if one is not None), key=lambda one: (one.info.begun or 0.0, one.info.id)
    )


def _is_session(fields: dict[str, bytes]) -> bool:
    return fields.get("id", b"").startswith(b'"ses') and {"time", "version"} <= fields.keys()


def _is_piece(fields: dict[str, bytes]) -> bool:
    is_message = fields.get("id", b"").startswith(b'"msg') and {"role", "sessionID"} <= fields.keys()
    return is_message or (
        fields.get("id", b"").startswith(b'"prt') and {"type", "messageID"} <= fields.keys()
    )


def _text(told: object) -> str:
    return told if isinstance(told, str) else ""


def _bytes(told: object) -> bytes:
    text = told.encode(errors="replace") if isinstance(told, str) else b""
    return without_lone_surrogates(text) if b"\\u" in text else text
