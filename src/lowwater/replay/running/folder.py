"""A folder that keeps the finished sessions of a run, so that it can be interrupted and resumed."""

import os
from pathlib import Path

import msgspec

from lowwater.errors import UnreadableFile
from lowwater.replay.running.results import SessionResult


class RunFolder:
    """Results by their keys: the same session under other options is another result, and neither gets in the other's way."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UnreadableFile(f"no results can be kept in {path}: {error.strerror}") from None

    def has(self, key: str) -> bool:
        """Return whether a result is kept that can be read."""
        try:
            self.find(key)
        except UnreadableFile:
            return False
        return True

    def find(self, key: str) -> SessionResult:
        """Return a result that was kept, or raise UnreadableFile."""
        try:
            return msgspec.msgpack.decode(self._file(key).read_bytes(), type=SessionResult)
        except (OSError, msgspec.MsgspecError) as error:
            raise UnreadableFile(f"no result can be read from {self._file(key)}: {error}") from None

    def keep(self, result: SessionResult) -> None:
        """Keep a result; a process that is killed meanwhile leaves none."""
        file = self._file(result.key)
        unfinished = file.with_name(f"{file.name}.{os.getpid()}")
        try:
            unfinished.write_bytes(msgspec.msgpack.encode(result))
            unfinished.replace(file)
        except OSError as error:
            raise UnreadableFile(f"a result cannot be kept in {self._path}: {error.strerror}") from None

    def _file(self, key: str) -> Path:
        return self._path / f"{key}.result"
