"""Salvages a damaged SQLite file: what is intact is written into a new store, and lost messages become tombstones.

`Pages` reads the file format itself (https://www.sqlite.org/fileformat2.html), because SQLite gives up at the first damaged
page. `_ReadableRows` sorts the rows by the tables they must belong to, and `_LedgerRebuilder` makes ledgers of them.
"""

import sqlite3
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.entries import Appended, Compacted, Entry, Opened, ViewItem
from lowwater.core.events import Event, TurnRecord
from lowwater.core.ledger import Ledger
from lowwater.core.messages import Message, Text, ToolCall, ToolResult
from lowwater.core.stored import About, Append
from lowwater.errors import IllegalEntry, UnusableStore
from lowwater.stores.serialization import (
    AppendedKeys,
    Broken,
    CompactedSince,
    digest_of,
    joined_items,
    restored,
    unpack_event,
    unpack_message,
    unpack_record,
    unpack_stored,
    unseal,
)
from lowwater.stores.shared import EVENT_COLUMNS, TURN_COLUMNS
from lowwater.stores.sqlite.connections import log_of, refuse_without_log
from lowwater.stores.sqlite.store import SqliteStore

T = TypeVar("T")


class SalvagedSession(Struct, frozen=True, kw_only=True):
    """What could be salvaged of one session, and what is lost."""

    name: str
    messages: int
    lost_messages: int = 0
    """Messages that were replaced by tombstones."""
    missing_messages: int = 0
    """Messages at the end of which nothing is left, not even a tombstone."""
    lost_entries: int = 0
    """Compactions, rewinds and the like that are gone; the view shows the messages instead."""
    lost_accounts: int = 0
    """Turn records and events that are gone."""
    lost_state: bool = False
    """Whether the carried state is gone (rent, cache belief, counts): the session goes on without it."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing of it is lost."""
        return not (
            self.lost_messages
            or self.missing_messages
            or self.lost_entries
            or self.lost_accounts
            or self.lost_state
        )


class Examined(Struct, frozen=True, kw_only=True):
    """What is wrong with a file, and what could be salvaged of each of its sessions."""

    problems: tuple[str, ...]
    sessions: tuple[SalvagedSession, ...]

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems and all(session.is_whole for session in self.sessions)


_MOST_PROBLEMS = 20


def examine(path: Path) -> Examined:
    """Read everything in a file without changing it, and report what is wrong."""
    found = _ReadableRows(path)
    return Examined(
        problems=tuple(_problems(path)),
        sessions=tuple(_restored(found, id).report for id in found.ids),
    )


def _problems(path: Path) -> Iterator[str]:
    """Yield what SQLite finds wrong with the file as a whole, in its own words."""
    try:
        refuse_without_log(path)
    except UnusableStore as error:
        yield str(error)
    except sqlite3.DatabaseError:
        pass  # reported below
    mode = "mode=ro" if log_of(path).exists() else "immutable=1"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)) as connection:
            rows = connection.execute(f"PRAGMA quick_check({_MOST_PROBLEMS})").fetchall()
            yield from (str(row[0]) for row in rows if row[0] != "ok")
    except sqlite3.Error as error:
        yield f"SQLite cannot read it: {error}"


def salvage(path: Path, to: SqliteStore) -> list[SalvagedSession]:
    """Write what can be read of a damaged file into an empty store, and return what became of each session."""
    found = _ReadableRows(path)
    reports = []
    for id in found.ids:
        restored = _restored(found, id)
        version = 0
        for append in restored.appends:
            version = to.append(restored.report.name, version, append)
        reports.append(restored.report)
    names = {id: report.name for id, report in zip(found.ids, reports, strict=True)}
    to.adopt(
        found.secret,
        [(names[row[2]], row) for row in found.trails if isinstance(row[2], int) and row[2] in names],
    )
    return reports


# The file format

_TABLE_LEAF, _INDEX_LEAF, _INDEX_INTERIOR = 0x0D, 0x0A, 0x02
"""The kinds of pages that hold rows; tables without row ids are stored like indexes."""
_DEFAULT_SIZE = 4096
"""The page size if the file's header has an impossible one."""
_SIZES = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
_MAGIC = (0x377F0682, 0x377F0683)
"""How a write-ahead log begins; the last bit says in which byte order its checksums are."""
_LOG_HEADER, _FRAME_HEADER = 32, 24
_INTEGER_SIZES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
"""Bytes of an integer by its serial type."""
SqliteValue = int | float | str | bytes | None


class CellRow(Struct, frozen=True, kw_only=True):
    """One row; `rowid` is None in tables without row ids and in indexes."""

    rowid: int | None
    values: tuple[SqliteValue, ...]


class _Malformed(Exception):
    """The bytes of a cell are not a row."""


class Pages:
    """All pages of a file, as of the last complete commit in its write-ahead log."""

    def __init__(self, path: Path) -> None:
        self._main = path.read_bytes()
        log = path.with_name(path.name + "-wal")
        self._log = log.read_bytes() if log.exists() else b""
        declared = int.from_bytes(self._main[16:18], "big")
        size = 65536 if declared == 1 else declared
        self._size = size if size in _SIZES else _DEFAULT_SIZE
        reserved = self._main[20] if len(self._main) > 20 and self._main[20] <= 32 else 0
        self._usable = self._size - reserved
        self._logged = self._committed()
        self.count = max(len(self._main) // self._size, max(self._logged, default=0))

    def rows(self) -> Iterator[CellRow]:
        """Yield every row that can be read, in no particular order."""
        for number in range(1, self.count + 1):
            page = self._page(number)
            start = 100 if number == 1 else 0
            kind = page[start] if len(page) > start else 0
            if kind in (_TABLE_LEAF, _INDEX_LEAF, _INDEX_INTERIOR):
                yield from self._cells(page, start, kind)

    def _cells(self, page: bytes, start: int, kind: int) -> Iterator[CellRow]:
        cells = int.from_bytes(page[start + 3 : start + 5], "big")
        first = start + (12 if kind == _INDEX_INTERIOR else 8)
        for index in range(min(cells, self._size // 4)):
            at = int.from_bytes(page[first + 2 * index : first + 2 * index + 2], "big")
            with suppress(_Malformed, IndexError, UnicodeDecodeError, struct.error):
                yield self._cell(page, at, kind)

    def _cell(self, page: bytes, at: int, kind: int) -> CellRow:
        if kind == _INDEX_INTERIOR:
            at += 4
        length, at = _varint(page, at)
        rowid: int | None = None
        if kind == _TABLE_LEAF:
            rowid, at = _varint(page, at)
        payload = self._payload(page, at, length, is_table=kind == _TABLE_LEAF)
        return CellRow(rowid=rowid, values=_record(payload))

    def _payload(self, page: bytes, at: int, length: int, *, is_table: bool) -> bytes:
        """Return the bytes of a row: those in its page, and those in its chain of overflow pages."""
        usable = self._usable
        most = usable - 35 if is_table else (usable - 12) * 64 // 255 - 23
        if length <= most:
            return page[at : at + length]
        least = (usable - 12) * 32 // 255 - 23
        here = least + (length - least) % (usable - 4)
        here = here if here <= most else least
        if length > len(self._main) + len(self._log):
            raise _Malformed
        pieces = [page[at : at + here]]
        left = length - here
        following = int.from_bytes(page[at + here : at + here + 4], "big")
        while left > 0:
            overflow = self._page(following)
            if len(overflow) < usable:
                raise _Malformed
            pieces.append(overflow[4 : 4 + min(left, usable - 4)])
            left -= usable - 4
            following = int.from_bytes(overflow[:4], "big")
        return b"".join(pieces)

    def _page(self, number: int) -> bytes:
        at = self._logged.get(number)
        if at is not None:
            return self._log[at : at + self._size]
        return self._main[(number - 1) * self._size : number * self._size] if number > 0 else b""

    def _committed(self) -> dict[int, int]:
        """Return the place in the log of the newest version of each page, up to the last complete commit."""
        header = self._log[:_LOG_HEADER]
        if len(header) < _LOG_HEADER or int.from_bytes(header[:4], "big") not in _MAGIC:
            return {}
        if int.from_bytes(header[8:12], "big") != self._size:
            if not self._main:
                return {}
            self._size = int.from_bytes(header[8:12], "big") or self._size
        order = ">" if header[3] & 1 else "<"
        sums = _summed(order, header[:24], (0, 0))
        if sums != struct.unpack(">II", header[24:32]):
            return {}
        committed: dict[int, int] = {}
        waiting: dict[int, int] = {}
        for at in range(
            _LOG_HEADER, len(self._log) - _FRAME_HEADER - self._size + 1, _FRAME_HEADER + self._size
        ):
            frame = self._log[at : at + _FRAME_HEADER]
            data = at + _FRAME_HEADER
            if frame[8:16] != header[16:24]:
                break
            sums = _summed(order, frame[:8] + self._log[data : data + self._size], sums)
            if sums != struct.unpack(">II", frame[16:24]):
                break
            waiting[int.from_bytes(frame[:4], "big")] = data
            if int.from_bytes(frame[4:8], "big"):
                committed |= waiting
                waiting = {}
        return committed


def _summed(order: str, data: bytes, sums: tuple[int, int]) -> tuple[int, int]:
    """Return the running checksum of the log after these bytes."""
    first, second = sums
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for index in range(0, len(words), 2):
        first = (first + words[index] + second) & 0xFFFFFFFF
        second = (second + words[index + 1] + first) & 0xFFFFFFFF
    return first, second


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a variable-length integer of one to nine bytes, and where it ends."""
    value = 0
    for index in range(8):
        byte = data[at + index]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + index + 1
    value = value << 8 | data[at + 8]
    return (value - (1 << 64) if value >= 1 << 63 else value), at + 9


def _record(payload: bytes) -> tuple[SqliteValue, ...]:
    """Return the columns of a row, or raise _Malformed."""
    end, at = _varint(payload, 0)
    body = end
    values: list[SqliteValue] = []
    while at < end:
        kind, at = _varint(payload, at)
        value, body = _value(payload, body, kind)
        values.append(value)
    if at != end or body != len(payload):
        raise _Malformed
    return tuple(values)


def _value(payload: bytes, at: int, kind: int) -> tuple[SqliteValue, int]:
    match kind:
        case 0:
            return None, at
        case 8 | 9:
            return kind - 8, at
        case 7:
            return float(struct.unpack(">d", payload[at : at + 8])[0]), at + 8
        case _ if kind in _INTEGER_SIZES:
            size = _INTEGER_SIZES[kind]
            return int.from_bytes(payload[at : at + size], "big", signed=True), at + size
        case _ if kind >= 12:
            size = (kind - 12) // 2
            data = payload[at : at + size]
            if len(data) < size:
                raise _Malformed
            return (data.decode() if kind % 2 else data), at + size
        case _:
            raise _Malformed


# Rows by table


class _EntryRow(Struct, frozen=True, kw_only=True):
    version: int
    at: float
    kind: str
    messages: int
    sealed: object


class _ReadableRows:
    """The rows of a store that can be read, sorted by table: the types and number of their columns tell which one."""

    def __init__(self, path: Path) -> None:
        self.sessions: dict[int, tuple[object, ...]] = {}
        self.entries: dict[int, dict[int, _EntryRow]] = {}
        self.contents: dict[bytes, bytes] = {}
        self.damaged: dict[bytes, bytes] = {}
        self.content_keys: dict[int, bytes] = {}
        self.messages: dict[int, dict[int, tuple[int, int]]] = {}
        self.turns: dict[int, dict[int, object]] = {}
        self.events: dict[int, dict[tuple[int, int], object]] = {}
        self.carried: dict[int, object] = {}
        self.trails: list[tuple[object, ...]] = []
        self.secret = b""
        for row in Pages(path).rows():
            self._sort_in(row)

    def _sort_in(self, row: CellRow) -> None:
        values = row.values
        if row.rowid is not None:
            self._sort_in_by_rowid(row.rowid, values)
            return
        kinds = tuple(type(value) for value in values)
        if len(values) == 8 and kinds[4] is str and kinds[7] is bytes and kinds[:3] == (int, int, int):
            self._add_entry(values)
        elif kinds == (int, int, int, int):
            session, number, content, tokens = cast("tuple[int, int, int, int]", values)
            self.messages.setdefault(session, {})[number] = (content, tokens)
        elif len(values) == 3 + len(TURN_COLUMNS) and kinds[:2] == (int, int) and kinds[-1] is bytes:
            self.turns.setdefault(cast("int", values[0]), {})[cast("int", values[1])] = values[-1]
        elif len(values) == 4 + len(EVENT_COLUMNS) and kinds[:3] == (int, int, int) and kinds[-1] is bytes:
            place = cast("tuple[int, int]", values[1:3])
            self.events.setdefault(cast("int", values[0]), {})[place] = values[-1]
        elif kinds == (str, bytes, int, str, int):
            self.trails.append(values)

    def _sort_in_by_rowid(self, rowid: int, values: tuple[object, ...]) -> None:
        match values:
            case (None, bytes() as key, bytes() as stored) if len(key) == len(digest_of(b"")):
                self.content_keys[rowid] = key
                body = restored(stored)
                if digest_of(body) == key:
                    self.contents[key] = body
                else:
                    self.damaged[key] = body
            case (None, str(), int(), int(), *_) if len(values) == 16:
                self.sessions[rowid] = values
            case (None, bytes() as body) if _is_sealed(body):
                self.carried[rowid] = body
            case (bytes() as body,) if len(body) == 32:
                self.secret = body
            case _:
                pass

    def _add_entry(self, values: tuple[object, ...]) -> None:
        session, position, version, at, kind, messages, _, body = values
        row = _EntryRow(
            version=cast("int", version),
            at=float(cast("float", at or 0.0)),
            kind=cast("str", kind),
            messages=messages if isinstance(messages, int) else 0,
            sealed=body,
        )
        self.entries.setdefault(cast("int", session), {})[cast("int", position)] = row

    @property
    def ids(self) -> list[int]:
        """The ids of sessions of which anything is left."""
        return sorted({*self.sessions, *self.entries} - {0})


def _is_sealed(body: bytes) -> bool:
    try:
        unseal(body)
    except Broken:
        return False
    return True


# Sessions from rows

TOMBSTONE = "[lost: this message was damaged in the store and could not be salvaged]"
_VOCABULARY = "o200k_base"
"""The vocabulary of a session whose first entry is lost, if no other session has one."""


class _RestoredSession(Struct, frozen=True, kw_only=True):
    """A session to be written into a new store."""

    report: SalvagedSession
    appends: tuple[Append, ...]


def _restored(found: _ReadableRows, id: int) -> _RestoredSession:
    listed = found.sessions.get(id)
    name = str(listed[1]) if listed else f"salvaged-{id}"
    rows = found.entries.get(id, {})
    count = max([*rows, -1]) + 1
    messages = listed[4] if listed and isinstance(listed[4], int) else 0
    ledger = _LedgerRebuilder(found, id, rows, model=str(listed[8]) if listed else "", messages=messages)
    entries = [ledger.next(position) for position in range(count)]
    records, lost_records = _accounts(sorted(found.turns.get(id, {}).items()), unpack_record)
    events, lost_events = _accounts(
        [(version, sealed) for (version, _), sealed in sorted(found.events.get(id, {}).items())], unpack_event
    )
    about = _about(listed)
    carried = found.carried.get(id)
    report = SalvagedSession(
        name=name,
        messages=len(ledger.ledger.messages),
        lost_messages=ledger.lost_messages,
        missing_messages=max(0, messages - len(ledger.ledger.messages)),
        lost_entries=ledger.lost_entries,
        lost_accounts=lost_records + lost_events,
        lost_state=carried is None and bool(records),
    )
    versions = [rows[position].version if position in rows else 0 for position in range(count)]
    appends = list(_appends(entries, versions, records, events))
    last = replace(
        appends[-1] if appends else Append(), about=about, carried=unseal(carried) if carried else None
    )
    return _RestoredSession(report=report, appends=(*appends[:-1], last))


def _accounts(
    rows: Iterable[tuple[int, object]], unpack: Callable[[bytes], T]
) -> tuple[list[tuple[int, T]], int]:
    """Return the records or events that can be read, each with its version, and how many cannot."""
    whole: list[tuple[int, T]] = []
    lost = 0
    for version, sealed in rows:
        try:
            whole.append((version, unpack(unseal(sealed))))
        except (Broken, msgspec.MsgspecError):
            lost += 1
    return whole, lost


def _appends(
    entries: Sequence[Entry],
    versions: Sequence[int],
    records: Sequence[tuple[int, TurnRecord]],
    events: Sequence[tuple[int, Event]],
) -> Iterator[Append]:
    """Yield the appends to write, one for each version."""
    by_version: dict[int, list[Entry]] = {}
    newest = 0
    for entry, version in zip(entries, versions, strict=True):
        newest = max(newest, version)
        by_version.setdefault(newest, []).append(entry)
    record_of = dict(records)
    events_of: dict[int, list[Event]] = {}
    for version, event in events:
        events_of.setdefault(version, []).append(event)
    for version in sorted({*by_version, *record_of, *events_of}):
        yield Append(
            entries=tuple(by_version.get(version, ())),
            record=record_of.get(version),
            events=tuple(events_of.get(version, ())),
        )


def _about(listed: tuple[object, ...] | None) -> About:
    if listed is None:
        return About()
    title, source, parent, ended_at, ended_because = listed[11:16]
    return About(
        title=str(title or ""),
        source=str(source or "cli"),
        parent=str(parent or ""),
        ended_at=float(ended_at) if isinstance(ended_at, int | float) else None,
        ended_because=str(ended_because or ""),
    )


class _LedgerRebuilder:
    """Builds a ledger entry by entry; a lost entry is replaced by its messages, or by an entry without any."""

    def __init__(
        self, found: _ReadableRows, id: int, rows: dict[int, _EntryRow], *, model: str, messages: int
    ) -> None:
        self._found = found
        self._numbered = found.messages.get(id, {})
        self._rows = rows
        self._model = model
        self._messages = messages
        self._items: dict[int, tuple[ViewItem, ...]] = {}
        self.ledger = Ledger()
        self.lost_messages = 0
        self.lost_entries = 0

    def next(self, position: int) -> Entry:
        """Return the entry at the next position, or its replacement."""
        row = self._rows.get(position)
        entry = self._whole(position, row) if row is not None else None
        if entry is None or not self._fits(position):
            entry = self._replacement(position, row)
        try:
            self.ledger = self.ledger.append(entry)
        except IllegalEntry:
            # It refers to something that is lost: an empty entry takes its place, so that positions stay the same.
            self.lost_entries += 1
            entry = Appended(at=entry.at, messages=(), tokens=())
            self.ledger = self.ledger.append(entry)
        return entry

    def _fits(self, position: int) -> bool:
        return self._rows[position].messages == len(self.ledger.messages)

    def _whole(self, position: int, row: _EntryRow) -> Entry | None:
        try:
            stored = unpack_stored(unseal(row.sealed))
        except (Broken, msgspec.MsgspecError):
            return None
        if isinstance(stored, AppendedKeys):
            messages = tuple(self._message(key) for key in stored.keys)
            return Appended(at=stored.at, messages=messages, tokens=stored.tokens)
        if isinstance(stored, CompactedSince):
            base = self._items.get(stored.base)
            if base is None:
                return None
            stored = Compacted(
                at=stored.at, mechanisms=stored.mechanisms, items=joined_items(base, stored.pieces)
            )
        if isinstance(stored, Compacted):
            self._items[position] = stored.items
        return stored

    def _message(self, key: bytes) -> Message:
        body = self._found.contents.get(key)
        if body is not None:
            with suppress(msgspec.MsgspecError):
                return unpack_message(body)
        self.lost_messages += 1
        return _tombstone(self._found.damaged.get(key, b""))

    def _replacement(self, position: int, row: _EntryRow | None) -> Entry:
        """Return an entry in place of a lost one, with the messages it must have brought; these are found by number."""
        at = row.at if row is not None else self._at(position)
        if position == 0:
            self.lost_entries += 1
            return Opened(at=at, model=self._model, vocabulary=self._vocabulary())
        after = next((self._rows[n].messages for n in sorted(self._rows) if n > position), self._messages)
        first = len(self.ledger.messages) + 1
        messages = [self._by_number(number) for number in range(first, after + 1)]
        if not messages:
            self.lost_entries += 1
        return Appended(
            at=at,
            messages=tuple(message for message, _ in messages),
            tokens=tuple(tokens for _, tokens in messages),
        )

    def _by_number(self, number: int) -> tuple[Message, int]:
        content, tokens = self._numbered.get(number, (0, 0))
        return self._message(self._found.content_keys.get(content, b"")), tokens

    def _at(self, position: int) -> float:
        return next((self._rows[n].at for n in sorted(self._rows) if n > position), 0.0)

    def _vocabulary(self) -> str:
        for rows in self._found.entries.values():
            try:
                stored = unpack_stored(unseal(rows[0].sealed))
            except (KeyError, Broken, msgspec.MsgspecError):
                continue
            if isinstance(stored, Opened):
                return stored.vocabulary
        return _VOCABULARY


def _tombstone(damaged: bytes) -> Message:
    """Return the replacement of a lost message, with the role and the calls it had if they can still be read."""
    gone = Text(text=TOMBSTONE)
    try:
        was = unpack_message(damaged)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Message(role="user", parts=(gone,))
    kept: list[Text | ToolCall | ToolResult] = []
    for part in was.parts:
        if isinstance(part, ToolCall):
            kept.append(ToolCall(id=part.id, name=part.name, arguments="{}"))
        elif isinstance(part, ToolResult):
            kept.append(ToolResult(call_id=part.call_id, parts=(gone,), is_error=part.is_error))
    if not any(isinstance(part, ToolResult) for part in kept):
        kept.insert(0, gone)
    return Message(role=was.role, parts=tuple(kept))
