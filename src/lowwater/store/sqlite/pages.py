"""The rows in the pages of an SQLite file, read without SQLite: what is damaged is left out and hides nothing else.

SQLite refuses a table whose tree is broken anywhere, and a file that was cut off altogether. Here every page is looked at by
itself: https://www.sqlite.org/fileformat2.html describes what is read. Rows carry no checksum of SQLite's; whoever uses them
relies on those of Lowwater. The file is not changed, and neither is its log.
"""

import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

Value = int | float | str | bytes | None

_TABLE_LEAF, _INDEX_LEAF, _INDEX_INTERIOR = 0x0D, 0x0A, 0x02
_USUAL = 4096
"""The size of pages where the file's header does not say a possible one."""
_MAGIC = (0x377F0682, 0x377F0683)
_LOG_HEADER, _FRAME_HEADER = 32, 24
_WHOLE_SIZES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_SIZES = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)


class CellRow(Struct, frozen=True, kw_only=True):
    """One row; those of tables without row ids have None for it, like the rows of indexes."""

    rowid: int | None
    values: tuple[Value, ...]


class _Malformed(Exception):
    """What should be a row is none."""


class Pages:
    """All pages of a file as of the last whole commit in its log."""

    def __init__(self, path: Path) -> None:
        self._main = path.read_bytes()
        log = path.with_name(path.name + "-wal")
        self._log = log.read_bytes() if log.exists() else b""
        said = int.from_bytes(self._main[16:18], "big")
        size = 65536 if said == 1 else said
        self._size = size if size in _SIZES else _USUAL
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
        """Return the bytes of a row: those in its page, and those in the chain of pages behind it."""
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
        """Return where in the log the newest version of each page is, as far as the log is whole and committed."""
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
    """Return the checksum of a log after these bytes."""
    first, second = sums
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for index in range(0, len(words), 2):
        first = (first + words[index] + second) & 0xFFFFFFFF
        second = (second + words[index + 1] + first) & 0xFFFFFFFF
    return first, second


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of one to nine bytes, and where it ends."""
    value = 0
    for index in range(8):
        byte = data[at + index]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + index + 1
    value = value << 8 | data[at + 8]
    return (value - (1 << 64) if value >= 1 << 63 else value), at + 9


def _record(payload: bytes) -> tuple[Value, ...]:
    """Return the columns of a row, or raise _Malformed."""
    end, at = _varint(payload, 0)
    body = end
    values: list[Value] = []
    while at < end:
        kind, at = _varint(payload, at)
        value, body = _value(payload, body, kind)
        values.append(value)
    if at != end or body != len(payload):
        raise _Malformed
    return tuple(values)


def _value(payload: bytes, at: int, kind: int) -> tuple[Value, int]:
    match kind:
        case 0:
            return None, at
        case 8 | 9:
            return kind - 8, at
        case 7:
            return float(struct.unpack(">d", payload[at : at + 8])[0]), at + 8
        case _ if kind in _WHOLE_SIZES:
            size = _WHOLE_SIZES[kind]
            return int.from_bytes(payload[at : at + size], "big", signed=True), at + size
        case _ if kind >= 12:
            size = (kind - 12) // 2
            data = payload[at : at + size]
            if len(data) < size:
                raise _Malformed
            return (data.decode() if kind % 2 else data), at + size
        case _:
            raise _Malformed
