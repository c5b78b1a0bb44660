"""A file that may hold recordings: its lines in bounded memory, what of it was broken, and how far it was read."""

import gzip
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, TypeVar, cast

from msgspec import Struct

from lowwater.core.strict_json import read_json
from lowwater.errors import BadInput, UnreadableFile, UnreadableJson
from lowwater.logs.recording import BrokenLine
from lowwater.replay.importing.surrogates import without_lone_surrogates

T = TypeVar("T")

LONGEST_LINE = 64 << 20
LARGEST_WHOLE = 512 << 20
MOST_BROKEN = 10_000
_HEAD, _LONGEST_HEAD, _LINES_IN_HEAD = 64 << 10, 8 << 20, 3
_STEP = 1 << 20
_GZIP = b"\x1f\x8b"
_UNREADABLE = (OSError, EOFError, zlib.error)
"""What reading raises when a disk, or the compressed data in a file, is bad."""


Tellers = dict[str, tuple[str, str]]
"""For each call, the file and the session that told of it first."""


class Line(Struct, frozen=True, kw_only=True):
    """One line without its end; half characters in it, which agents cut off, are mended."""

    number: int
    """From 1."""
    at: int
    """Where it begins, in bytes of the plain content."""
    data: bytes


class RecordedFile:
    """One file, plain or gzip, open for reading.

    `tellers` is shared by all files of a run.
    """

    def __init__(
        self,
        path: Path,
        *,
        tellers: Tellers | None = None,
        on_read: Callable[[int], None] | None = None,
    ) -> None:
        self.path = path
        self._tellers: Tellers = {} if tellers is None else tellers
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
        """Return the beginning: a few whole lines if they are not too long; raise UnreadableFile if even that fails."""
        try:
            self._content.seek(0)
            head = self._content.read(_HEAD)
            while head.count(b"\n") < _LINES_IN_HEAD and len(head) < _LONGEST_HEAD:
                more = self._content.read(_STEP)
                if not more:
                    break
                head += more
        except _UNREADABLE as error:
            raise UnreadableFile(f"cannot be read: {_said(error)}") from None
        return head

    def lines(self) -> Iterator[Line]:
        """Yield every line that is not blank, from the first on; those that are no text or too long are broken.

        A file that ends badly ends there; one with too many broken lines is not read on.
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
                    yield Line(number=number, at=begin, data=_mended(data))
                self._progress()
                if len(self._ever_broken) >= MOST_BROKEN:
                    self.broken(number, f"{MOST_BROKEN:,} broken lines: the rest was not read")
                    return
        except _UNREADABLE as error:
            self.broken(number + 1, f"the file cannot be read on: {_said(error)}")

    def line_at(self, at: int) -> bytes:
        """Return the line that begins there, as `lines` gave it; fast in the order of the file."""
        try:
            self._content.seek(at)
            return _mended(self._content.readline(LONGEST_LINE + 1))
        except _UNREADABLE as error:
            raise UnreadableFile(f"cannot be read again: {_said(error)}") from None

    def whole(self) -> bytes:
        """Return all of its content, or raise a BadInput if it is no text, too large or unreadable."""
        content = bytearray()
        try:
            self._content.seek(0)
            while data := self._content.read(_STEP):
                content += data
                self._progress()
                if len(content) > LARGEST_WHOLE:
                    raise UnreadableFile(f"one JSON value of more than {LARGEST_WHOLE:,} bytes")
        except _UNREADABLE as error:
            raise UnreadableFile(f"cannot be read: {_said(error)}") from None
        if not _is_text(content):
            raise UnreadableJson("not UTF-8")
        return _mended(bytes(content))

    def broken(self, where: int | str, why: str) -> None:
        """Count something that could not be read, once: `where` is a line's number or other words for a place."""
        broken = BrokenLine(place=f"{self.path}:{where}", why=why)
        if broken not in self._ever_broken:
            self._ever_broken.add(broken)
            self._broken.append(broken)

    def take_broken(self) -> tuple[BrokenLine, ...]:
        """Return what was broken since this was last asked."""
        taken, self._broken = tuple(self._broken), []
        return taken

    def read(self, line: Line, kind: type[T]) -> T | None:
        """Return the line as `kind`; None, and the line is counted as broken, if it is none."""
        try:
            return read_json(line.data, kind)
        except BadInput as error:
            self.broken(line.number, str(error))
            return None

    def told_by(self, call: str, session: str) -> str | None:
        """Return the other session that told of a call first; None if the given one of this file does, from now on."""
        mine = (str(self.path), session)
        teller = self._tellers.setdefault(call, mine)
        return None if teller == mine else teller[1]

    def teller(self, call: str, session: str) -> str:
        """Return the session that told of a call first, which is the given one if no other did."""
        return self.told_by(call, session) or session

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


def _mended(data: bytes) -> bytes:
    ended = data.rstrip(b"\r\n")
    return without_lone_surrogates(ended) if b"\\ud" in ended or b"\\uD" in ended else ended


def _is_text(data: bytes | bytearray) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _said(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
