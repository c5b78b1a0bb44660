"""Reads files written by other programs: lines, database rows and JSON fields; broken parts are counted, not fatal."""

import gzip
import re
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from math import isfinite
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Protocol, Self, TypeVar, cast
from urllib.parse import quote

from msgspec import Raw, Struct
from msgspec.structs import replace

from lowwater.core.strict_json import read_fields, read_json
from lowwater.errors import BadInput, UnreadableFile, UnreadableJson
from lowwater.logs.recording import BrokenLine, Recording

T = TypeVar("T")


# Times

_MIN_TIME, _MAX_TIME = 946_684_800.0, 4_102_444_800.0
"""The years 2000 and 2100: a number outside of them is not taken for a time."""
_UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_UNITS = (1.0, 1e3, 1e6, 1e9)
"""Parts of a second in which times are recorded."""


def seconds(value: object) -> float | None:
    """Return a time given in seconds, milli-, micro- or nanoseconds, or as ISO 8601; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _from_number(value)
    return _from_text(value) if isinstance(value, str) else None


def time_in(id: str) -> float | None:
    """Return the time in an id if it is a UUID of version 7, which begins with milliseconds; else None."""
    return _from_number(int(id[:8] + id[9:13], 16)) if _UUID7.fullmatch(id) else None


def _from_number(value: float) -> float | None:
    # Dividing a huge integer would overflow a float.
    if abs(value) > _MAX_TIME * _UNITS[-1] or not isfinite(value):
        return None
    return next((value / unit for unit in _UNITS if _MIN_TIME <= value / unit < _MAX_TIME), None)


def _from_text(value: str) -> float | None:
    try:
        read = datetime.fromisoformat(value)
        return _from_number((read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return None


# Files

LONGEST_LINE = 64 << 20
LARGEST_WHOLE = 512 << 20
MAX_BROKEN = 10_000
_HEAD, _LONGEST_HEAD, _LINES_IN_HEAD = 64 << 10, 8 << 20, 3
_STEP = 1 << 20
_GZIP = b"\x1f\x8b"
_UNREADABLE = (OSError, EOFError, zlib.error)
"""What reading raises if the disk or compressed data is damaged."""
CallOwners = dict[str, tuple[str, str]]
"""For each call, the file and the session that recorded it first."""


class FileLine(Struct, frozen=True, kw_only=True):
    """One line without its line end; lone surrogates, which agents leave when they cut texts, are replaced."""

    number: int
    """From 1."""
    at: int
    """Its offset in bytes of the uncompressed content."""
    data: bytes


class RecordedFile:
    """One file, plain or gzip, open for reading.

    `call_owners` is shared by all files of a run, so that a call in several files is counted once.
    """

    def __init__(
        self,
        path: Path,
        *,
        call_owners: CallOwners | None = None,
        on_read: Callable[[int], None] | None = None,
    ) -> None:
        self.path = path
        self._call_owners: CallOwners = {} if call_owners is None else call_owners
        self._on_read = on_read
        self._broken: list[BrokenLine] = []
        self._ever_broken: set[BrokenLine] = set()
        try:
            self._disk: BinaryIO = path.open("rb")
        except OSError as error:
            raise UnreadableFile(f"cannot be opened: {error.strerror}") from None
        packed = self._disk.peek(2)[:2] == _GZIP
        self._content = cast(BinaryIO, gzip.GzipFile(fileobj=self._disk, mode="rb")) if packed else self._disk

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._content.close()
        self._disk.close()

    def head(self) -> bytes:
        """Return the beginning, with a few whole lines if they are not too long; raise UnreadableFile if it cannot be read."""
        try:
            self._content.seek(0)
            head = self._content.read(_HEAD)
            while head.count(b"\n") < _LINES_IN_HEAD and len(head) < _LONGEST_HEAD:
                more = self._content.read(_STEP)
                if not more:
                    break
                head += more
        except _UNREADABLE as error:
            raise UnreadableFile(f"cannot be read: {_error_text(error)}") from None
        return head

    def lines(self) -> Iterator[FileLine]:
        """Yield every line that is not blank; lines that are not text or too long are counted as broken.

        Reading stops where the file is damaged, and after too many broken lines.
        """
        number = at = 0
        try:
            self._content.seek(0)
            while data := self._content.readline(LONGEST_LINE + 1):
                number += 1
                begin, at = at, at + len(data)
                if len(data) > LONGEST_LINE and not data.endswith(b"\n"):
                    at += self._skip_line()
                    self.broken(number, f"longer than {LONGEST_LINE:,} bytes")
                elif not _is_text(data):
                    self.broken(number, "not UTF-8")
                elif not data.isspace():
                    yield FileLine(number=number, at=begin, data=_cleaned_line(data))
                self._progress()
                if len(self._ever_broken) >= MAX_BROKEN:
                    self.broken(number, f"{MAX_BROKEN:,} broken lines: the rest was not read")
                    return
        except _UNREADABLE as error:
            self.broken(number + 1, f"the file cannot be read on: {_error_text(error)}")

    def line_at(self, at: int) -> bytes:
        """Return the line at an offset, as `lines` gave it; fast if called in the order of the file."""
        try:
            self._content.seek(at)
            return _cleaned_line(self._content.readline(LONGEST_LINE + 1))
        except _UNREADABLE as error:
            raise UnreadableFile(f"cannot be read again: {_error_text(error)}") from None

    def whole(self) -> bytes:
        """Return the whole content, or raise BadInput if it is not text, too large or unreadable."""
        content = bytearray()
        try:
            self._content.seek(0)
            while data := self._content.read(_STEP):
                content += data
                self._progress()
                if len(content) > LARGEST_WHOLE:
                    raise UnreadableFile(f"one JSON value of more than {LARGEST_WHOLE:,} bytes")
        except _UNREADABLE as error:
            raise UnreadableFile(f"cannot be read: {_error_text(error)}") from None
        if not _is_text(content):
            raise UnreadableJson("not UTF-8")
        return _cleaned_line(bytes(content))

    def broken(self, where: int | str, why: str) -> None:
        """Record, once, that something could not be read; `where` is a line number or another description of the place."""
        broken = BrokenLine(place=f"{self.path}:{where}", why=why)
        if broken not in self._ever_broken:
            self._ever_broken.add(broken)
            self._broken.append(broken)

    def take_broken(self) -> tuple[BrokenLine, ...]:
        """Return what was broken since the last call."""
        taken, self._broken = tuple(self._broken), []
        return taken

    def read(self, data: bytes, kind: type[T], where: int | str) -> T | None:
        """Return JSON decoded as `kind`; if it cannot be, count the place as broken and return None."""
        with self.broken_at(where):
            return read_json(data, kind)
        return None

    def broken_at(self, where: int | str) -> AbstractContextManager[object, bool]:
        """Return a context that a BadInput leaves quietly, with the place counted as broken."""
        return _BrokenAt(self, where)

    def recorded_elsewhere(self, call: str, session: str) -> str | None:
        """Return the other session that recorded a call first; None if `session` in this file is the first, which is remembered."""
        mine = (str(self.path), session)
        owner = self._call_owners.setdefault(call, mine)
        return None if owner == mine else owner[1]

    def first_recorder(self, call: str, session: str) -> str:
        """Return the session that recorded a call first: `session` itself if there was no other."""
        return self.recorded_elsewhere(call, session) or session

    def _skip_line(self) -> int:
        skipped = 0
        while data := self._content.readline(_STEP):
            skipped += len(data)
            self._progress()
            if data.endswith(b"\n"):
                break
        return skipped

    def _progress(self) -> None:
        if self._on_read is not None:
            self._on_read(self._disk.tell())


class _BrokenAt(AbstractContextManager[object, bool]):
    def __init__(self, file: RecordedFile, where: int | str) -> None:
        self._file, self._where = file, where

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool:
        if isinstance(error, BadInput):
            self._file.broken(self._where, str(error))
        return isinstance(error, BadInput)


def _error_text(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _is_text(data: bytes | bytearray) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL
)
_LONE_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


def _cleaned_line(data: bytes) -> bytes:
    ended = data.rstrip(b"\r\n")
    return without_lone_surrogates(ended) if b"\\ud" in ended or b"\\uD" in ended else ended


def without_lone_surrogates(data: bytes) -> bytes:
    r"""Return JSON text with each lone surrogate replaced by `\ufffd`."""
    return _ESCAPE.sub(lambda found: rb"\ufffd" if _LONE_SURROGATE.fullmatch(found[0]) else found[0], data)


# Databases

_DATABASE_HEAD = b"SQLite format 3\x00"
_DATABASE_UNREADABLE = (sqlite3.Error, ValueError, OverflowError)
"""What a damaged database raises: names may not be Unicode, numbers may be too large."""


class Database:
    """An open SQLite database of another program; invalid Unicode is replaced."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def columns(self, table: str) -> frozenset[str]:
        """Return the columns of a table; none if there is no such table."""
        return frozenset(str(row["name"]) for row in self.rows(f'PRAGMA table_info("{table}")'))

    def rows(self, query: str, *values: object) -> Iterator[sqlite3.Row]:
        """Yield the rows of a query; raise UnreadableFile if the database is damaged."""
        try:
            yield from self._connection.execute(query, values)
        except _DATABASE_UNREADABLE as error:
            raise UnreadableFile(f"the database cannot be read: {error}") from None


@contextmanager
def open_database(path: Path) -> Iterator[Database]:
    """Open a database for reading, or raise UnreadableFile."""
    with closing(_connect_read_only(path)) as connection:
        connection.row_factory = sqlite3.Row
        connection.text_factory = lambda data: data.decode(errors="replace")
        yield Database(connection)


def has_columns(head: bytes, path: Path, **columns: str) -> bool:
    """Return whether a file is a database that has these tables, each with the given column."""
    if not head.startswith(_DATABASE_HEAD):
        return False
    try:
        with open_database(path) as database:
            return all(column in database.columns(table) for table, column in columns.items())
    except UnreadableFile:
        return False


def _connect_read_only(path: Path) -> sqlite3.Connection:
    """Return a connection that writes nothing, not even a lock file, unless another program has the database open."""
    log = path.with_name(f"{path.name}-wal")
    modes = ("mode=ro", "immutable=1") if log.exists() and log.stat().st_size else ("immutable=1", "mode=ro")
    said = ""
    for mode in modes:
        connection = None
        try:
            connection = sqlite3.connect(f"file:{quote(str(path.absolute()))}?{mode}", uri=True)
            connection.execute("SELECT name FROM sqlite_master LIMIT 1").fetchall()
        except _DATABASE_UNREADABLE as error:
            said = str(error)
            if connection is not None:
                connection.close()
        else:
            return connection
    raise UnreadableFile(f"the database cannot be read: {said}")


# JSON that may be truncated

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|["{}\[\],]', re.DOTALL)
_FIELD = re.compile(rb'\s*("(?:[^"\\]++|\\.)*+")\s*:', re.DOTALL)


def fields_in(data: bytes) -> dict[str, bytes]:
    """Return the fields of a possibly truncated JSON object; the last value may be incomplete."""
    if data.lstrip()[:1] != b"{":
        return {}
    try:
        return read_fields(data)
    except BadInput:
        return _first_fields(data)


def json_items(data: bytes) -> Iterator[bytes]:
    """Yield the items of a possibly truncated JSON array; the last one may be incomplete."""
    if data.lstrip()[:1] != b"[":
        return
    try:
        whole = read_json(data, list[Raw])
    except BadInput:
        yield from _pieces(data)
    else:
        yield from map(bytes, whole)


def read_or(data: bytes, otherwise: T) -> T:
    """Return JSON decoded as the type of `otherwise`, or `otherwise` if it is something else."""
    try:
        return read_json(data, type(otherwise))
    except BadInput:
        return otherwise


def is_readable(data: bytes, kind: type[object]) -> bool:
    """Return whether this is JSON of one kind."""
    try:
        read_json(data, kind)
    except BadInput:
        return False
    return True


def unquoted(data: bytes) -> bytes:
    """Return JSON that is inside a JSON string, unquoted; anything else as it is."""
    return read_or(data, "").strip().encode(errors="replace") if data[:1] == b'"' else data


def given_value(data: bytes) -> bytes:
    """Return a JSON value; empty if it is null."""
    return b"" if data == b"null" else data


def given_text(value: object) -> str:
    """Return a text; empty if the value is something else."""
    return value if isinstance(value, str) else ""


def _first_fields(data: bytes) -> dict[str, bytes]:
    fields: dict[str, bytes] = {}
    for piece in _pieces(data):
        name = _FIELD.match(piece)
        if name is None:
            continue
        try:
            fields[read_json(name[1], str)] = piece[name.end() :].strip()
        except BadInput:
            continue
    return fields


def _pieces(data: bytes) -> Iterator[bytes]:
    depth, start = 0, len(data)
    for found in _TOKEN.finditer(data):
        token = found.group()
        if token == b'"':
            break  # an unterminated string
        if token in b"{[":
            depth += 1
            start = found.end() if depth == 1 else start
        elif token in b"}]":
            depth -= 1
        if (token == b"," and depth == 1) or depth == 0:
            yield from _piece(data[start : found.start()])
            start = found.end()
        if depth == 0:
            return
    yield from _piece(data[start:])


def _piece(data: bytes) -> Iterator[bytes]:
    if piece := data.strip():
        yield piece


# Calls that several sessions recorded


class SharedCalls(Struct, kw_only=True):
    """Counts the calls of a session, and which of them another session recorded before."""

    session: str
    calls: int = 0
    new: int = 0
    messages: int = 0
    """The number of its first messages that the other session has too."""
    owner: str = ""
    """The other session."""

    def records(self, file: RecordedFile, call: str) -> bool:
        """Count a call and return whether this session is the first to record it."""
        self.calls += 1
        owner = file.recorded_elsewhere(call, self.session)
        if owner is None:
            self.new += 1
        elif not self.new:
            self.owner = owner
        return owner is None

    def answered(self, messages: int) -> None:
        """Note that the last call is complete with its results; `messages` is the number of messages so far."""
        if not self.new:
            self.messages = messages

    @property
    def is_copy(self) -> bool:
        """Whether other sessions have recorded all its calls."""
        return self.calls > 0 and self.new == 0

    def related(self, recording: Recording, *, parent: str = "", relation: str = "") -> Recording:
        """Return the recording with its parent and relation; without a relation, as a fork if it shares messages with another."""
        if not relation and self.messages:
            parent, relation = self.owner, "fork"
        return replace(recording, parent=parent, relation=relation, shared=self.messages)


# Formats

_MAX_HEAD_OBJECTS = 50
_AROUND_FOLDERS = ("payload", "data", "context")
"""Fields of first lines in which agents name the folder that they work in."""


class LogFolder(Struct, frozen=True, kw_only=True):
    """Where an agent keeps its recordings."""

    agent: str
    """Its name, for people."""
    home: str
    """The agent's folder within the user's home."""
    inside: str
    """The recordings within that folder."""
    variable: str = ""
    """The environment variable that names another folder instead."""

    def path(self, env: Mapping[str, str], home: Path) -> Path:
        """Return the folder or file in an environment, whether or not it exists."""
        elsewhere = env.get(self.variable, "").strip() if self.variable else ""
        return (Path(elsewhere).expanduser() if elsewhere else home / self.home) / self.inside


class LogFormat(Protocol):
    """A format of recorded sessions; a file of this folder that has `FORMATS` adds them, and nothing else has to know about it.

    With `FOLDERS` it also says where agents keep such files.
    """

    @property
    def name(self) -> str:
        """Its name, for people."""
        ...

    @property
    def order(self) -> int:
        """The lower, the earlier it is asked; the particular formats come before the general ones."""
        ...

    def recognises(self, head: bytes, path: Path, /) -> bool:
        """Return whether a file is in this format, by its first bytes, which may end in the middle of a line."""
        ...

    def read(self, file: RecordedFile, /) -> Iterator[Recording]:
        """Yield the sessions in a file; report what cannot be read to `file.broken`. A BadInput ends the file."""
        ...


def detect_log_format(head: bytes, path: Path, formats: Iterable[LogFormat]) -> LogFormat | None:
    """Return the first format that recognises the file."""
    return next((format for format in formats if format.recognises(head, path)), None)


@lru_cache(maxsize=2)
def first_objects(head: bytes) -> tuple[dict[str, Raw], ...]:
    """Return the JSON objects among the first whole lines, each with its fields as bytes; other lines are skipped.

    A single line counts as whole, because the file may have no other.
    """
    lines = head.split(b"\n")
    whole = lines[:-1] if len(lines) > 1 and lines[-1].strip() else lines
    return tuple(found for line in whole[:_MAX_HEAD_OBJECTS] if (found := _fields(line)) is not None)


def project_in(head: bytes) -> str:
    """Return the folder that an agent worked in, as the first lines of its recording have it; empty if they do not."""
    return next((folder for fields in first_objects(head) if (folder := _folder_in(fields, depth=2))), "")


def _folder_in(fields: dict[str, Raw], depth: int) -> str:
    for name in ("cwd", "directory"):
        if folder := read_or(bytes(fields.get(name, b'""')), ""):
            return folder
    for name in _AROUND_FOLDERS if depth else ():
        inside = _fields(bytes(fields.get(name, b"")))
        if inside and (folder := _folder_in(inside, depth - 1)):
            return folder
    return ""


def _fields(line: bytes) -> dict[str, Raw] | None:
    try:
        return read_json(line, dict[str, Raw])
    except BadInput:
        return None
