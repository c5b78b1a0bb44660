"""A file of JSON lines that several processes append to, one at a time."""

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct

from lowwater.plugins import About, Append, BadInput, DamagedStore, Fingerprint, UnusableStore


class Drawn(Struct, frozen=True, kw_only=True, tag="drawn"):
    """The store was made, with this secret; it is the first line, and no two files of a store have the same."""

    secret: bytes
    rewritten: int = 0
    """How often the file was written anew since."""


class Added(Struct, frozen=True, kw_only=True, tag="added"):
    """A session got something new."""

    session: str
    new: Append


class Copied(Struct, frozen=True, kw_only=True, tag="copied"):
    """A session began with what another has."""

    session: str
    to: str
    about: About


class Left(Struct, frozen=True, kw_only=True, tag="left"):
    """A session left a fingerprint."""

    fingerprint: Fingerprint


class Gone(Struct, frozen=True, kw_only=True, tag="gone"):
    """So many versions stood here, of sessions that were deleted."""

    versions: int


Line = Drawn | Added | Copied | Left | Gone
_decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


class Journal:
    """The lines of a folder's `store.jsonl`; `news` and what writes may only be called while it is `locked`."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "store.jsonl"
        self._first: bytes | None = None
        """The first line of the file that was read: another takes its place when something is deleted."""
        self._end = 0
        """Up to where it was read."""
        with _failing(folder):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep every other process out."""
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    def is_another(self) -> bool:
        """Return whether the file is not the one that was read last; it is read from its start then."""
        with self._opened() as file:
            first = file.readline().removesuffix(b"\n")
        if first == self._first:
            return False
        self._first, self._end = first, 0
        return True

    def news(self) -> list[Line]:
        """Return the lines that were written since the last look; one that a crash cut short is none."""
        with self._opened() as file:
            file.seek(self._end)
            whole, newline, _ = file.read().rpartition(b"\n")
        self._end += len(whole + newline)
        return self._decoded(whole)

    def lines(self) -> list[Line]:
        """Return all lines up to the last look."""
        with self._opened() as file:
            return self._decoded(file.read(self._end).removesuffix(b"\n"))

    def write(self, *lines: Line) -> None:
        """Append lines behind the last whole one; when it returns, they outlive the machine."""
        self._put(self._path, encoded(*lines), at=self._end)

    def rewrite(self, lines: Iterable[Line]) -> None:
        """Put another file in place of this one, whole or not at all."""
        new = self._path.with_suffix(".new")
        self._put(new, encoded(*lines), at=0)
        with _failing(self._path):
            new.replace(self._path)

    def close(self) -> None:
        """Let go of the lock."""
        os.close(self._lock)

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        with _failing(self._path), self._path.open("rb") if self._path.exists() else BytesIO() as file:
            yield file

    def _decoded(self, whole: bytes) -> list[Line]:
        try:
            return [_decoder.decode(line) for line in whole.split(b"\n")] if whole else []
        except msgspec.MsgspecError:
            self._first = None
            raise DamagedStore(f"{self._path} has a line that cannot be read") from None

    def _put(self, path: Path, body: bytes, *, at: int) -> None:
        try:
            with _failing(path), os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
                file.truncate(at)
                file.seek(at)
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
        except UnusableStore:
            self._first = None  # what was replayed may be more than what is there
            raise
        self._first = self._first if at else body.partition(b"\n")[0]
        self._end = at + len(body)


def encoded(*lines: Line) -> bytes:
    """Return lines as bytes, or raise BadInput if a text in them is no Unicode."""
    try:
        return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
    except UnicodeEncodeError as error:
        raise BadInput(f"text with half a character cannot be stored: {error.reason}") from None


@contextmanager
def _failing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UnusableStore(f"{path} cannot be used: {error.strerror}") from error
