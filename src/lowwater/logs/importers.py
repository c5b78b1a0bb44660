"""The registry of the formats of recordings, and reading all recordings in files and folders."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from stat import S_ISDIR, S_ISREG
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lowwater import logs
from lowwater.errors import LowwaterError, defect
from lowwater.logs.files import CallOwners, LogFolder, LogFormat, RecordedFile, detect_log_format, project_in
from lowwater.logs.recording import BrokenLine, Recording
from lowwater.logs.recording_builder import playable


def _found(what: str) -> Iterator[Any]:
    for module in iter_modules(logs.__path__, f"{logs.__name__}."):
        if module.name != __name__:
            yield from getattr(import_module(module.name), what, ())


FORMATS: tuple[LogFormat, ...] = tuple(
    sorted(_found("FORMATS"), key=lambda format: (format.order, format.name))
)
"""What the files of this folder offer, in order: the first format that recognises a file reads it, and the last one recognises most."""
FOLDERS: tuple[LogFolder, ...] = tuple(_found("FOLDERS"))
"""Where agents keep their recordings."""
_STEP = 4 << 20


class Progress(Struct, frozen=True, kw_only=True):
    """The progress of a run, in bytes on disk."""

    read: int
    of: int
    path: str
    """The current file."""


class Skipped(Struct, frozen=True, kw_only=True):
    """A file, or the rest of one, that could not be read."""

    path: str
    why: str
    broken: tuple[BrokenLine, ...] = ()
    """Broken parts of it that belong to no session."""


def recordings(
    paths: Iterable[Path],
    *,
    on_progress: Callable[[Progress], None] | None = None,
    on_skipped: Callable[[Skipped], None] | None = None,
    formats: Sequence[LogFormat] = FORMATS,
) -> Iterator[Recording]:
    """Yield the sessions in files and folders (sorted); nothing in a file raises.

    A call that several files contain, because a resumed session copies its history, belongs to the first of them.
    """
    return _Run(files_in(paths), on_progress, on_skipped, formats).recordings()


def log_folders(env: Mapping[str, str], home: Path) -> dict[Path, str]:
    """Return the places with recordings on this machine, each with the agent that keeps them there."""
    places = {folder.path(env, home): folder.agent for folder in FOLDERS}
    return {path: agent for path, agent in places.items() if path.exists()}


def files_in(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Return the files among the paths and in folders among them, sorted within each folder, without duplicates.

    Symbolic links to folders are not followed; folders that cannot be listed are left out.
    """
    found: dict[str, Path] = {}
    for path in paths:
        for item in _inside(path) or [path]:
            found.setdefault(os.path.realpath(item), item)
    return tuple(found.values())


def _inside(folder: Path) -> list[Path]:
    """Return the files in a folder and its subfolders; none if it is not a folder."""
    return sorted(Path(place) / name for place, _, names in os.walk(folder) for name in names)


class _Run:
    """One pass over files, with the calls seen so far and its progress."""

    def __init__(
        self,
        files: Sequence[Path],
        on_progress: Callable[[Progress], None] | None,
        on_skipped: Callable[[Skipped], None] | None,
        formats: Sequence[LogFormat],
    ) -> None:
        self._files = files
        self._sizes = [_size(path) for path in files]
        self._total = sum(self._sizes)
        self._on_progress = on_progress
        self._on_skipped = on_skipped
        self._formats = formats
        self._call_owners: CallOwners = {}
        self._reported = 0

    def recordings(self) -> Iterator[Recording]:
        before = 0
        for path, size in zip(self._files, self._sizes, strict=True):
            self._report_progress(before, path, at_least=0)
            yield from self._read(path, before)
            before += size
        if self._files:
            self._report_progress(before, self._files[-1], at_least=0)

    def _read(self, path: Path, before: int) -> Iterator[Recording]:
        if (why_not := _why_not(path)) is not None:
            self._skip(path, why_not)
            return
        try:
            with RecordedFile(
                path,
                call_owners=self._call_owners,
                on_read=lambda at: self._report_progress(before + at, path, at_least=_STEP),
            ) as file:
                yield from self._sessions(file)
        except LowwaterError as error:
            self._skip(path, str(error))

    def _sessions(self, file: RecordedFile) -> Iterator[Recording]:
        head = file.head()
        format = detect_log_format(head, file.path, self._formats)
        if format is None:
            self._skip(file.path, "not a recording in a known format")
            return
        any_yet, failed, project = False, "", project_in(head)
        sessions = format.read(file)
        while True:
            try:
                recording = playable(next(sessions))
            except StopIteration:
                break
            except LowwaterError as error:
                failed = str(error)
                break
            except Exception as error:  # noqa: BLE001 - a run over many files outlives a defect in one, and names it
                failed = defect(error)
                break
            if recording.messages:
                any_yet = True
                yield replace(
                    recording,
                    project=recording.project or project,
                    broken=recording.broken + file.take_broken(),
                )
        broken = file.take_broken()
        if failed or broken or not any_yet:
            self._skip(file.path, failed or f"no session {'more ' if any_yet else ''}in it", broken)

    def _skip(self, path: Path, why: str, broken: tuple[BrokenLine, ...] = ()) -> None:
        if self._on_skipped is not None:
            self._on_skipped(Skipped(path=str(path), why=why, broken=broken))

    def _report_progress(self, read: int, path: Path, *, at_least: int) -> None:
        if self._on_progress is not None and read - self._reported >= at_least:
            self._reported = read
            self._on_progress(Progress(read=read, of=max(read, self._total), path=str(path)))


def _why_not(path: Path) -> str | None:
    """Return why a path cannot be read as a file, or None."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if S_ISDIR(mode):
        return "an empty folder"
    return None if S_ISREG(mode) else "not a regular file"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
