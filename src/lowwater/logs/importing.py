"""Every format that recordings are known in, and the recordings in a file or folder."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from msgspec import Struct
from msgspec.structs import replace

from lowwater.errors import LowwaterError, defect
from lowwater.logs.canonical import Canonical
from lowwater.logs.claude_code import ClaudeCode
from lowwater.logs.codex import Codex
from lowwater.logs.copilot_cli import CopilotCli
from lowwater.logs.files import CallOwners, Format, RecordedFile, format_of
from lowwater.logs.gathering import playable
from lowwater.logs.gemini_cli import GeminiCli
from lowwater.logs.hermes import Hermes
from lowwater.logs.message_lists import MessageLists
from lowwater.logs.opencode import OpenCodeDatabase, OpenCodeFiles
from lowwater.logs.own_exports import OwnExports
from lowwater.logs.recording import BrokenLine, Recording
from lowwater.logs.request_logs import RequestLogs
from lowwater.logs.swe_agent import SweAgent

FORMATS: tuple[Format, ...] = (
    ClaudeCode(),
    Codex(),
    CopilotCli(),
    GeminiCli(),
    Canonical(),
    OwnExports(),
    Hermes(),
    OpenCodeDatabase(),
    OpenCodeFiles(),
    SweAgent(),
    RequestLogs(),
    MessageLists(),
)
_STEP = 4 << 20


class Progress(Struct, frozen=True, kw_only=True):
    """How far a run is, in bytes on disk."""

    read: int
    of: int
    path: str
    """The file at hand."""


class Skipped(Struct, frozen=True, kw_only=True):
    """A file, or the rest of one, that gave no session."""

    path: str
    why: str
    broken: tuple[BrokenLine, ...] = ()
    """What was found broken in it and belongs to no session."""


def recordings(
    paths: Iterable[Path],
    *,
    on_progress: Callable[[Progress], None] | None = None,
    on_skipped: Callable[[Skipped], None] | None = None,
    formats: Sequence[Format] = FORMATS,
) -> Iterator[Recording]:
    """Yield each session in the files and, sorted, in all files of the folders; nothing in a file raises.

    A call that several files hold, because a resumed session copies what came before, is told with the first of them.
    """
    return _Run(files_in(paths), on_progress, on_skipped, formats).recordings()


def files_in(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Return the files among the paths and in folders among them, sorted in each, every file once.

    Links to folders are not followed, and what cannot be listed is left out.
    """
    found: dict[str, Path] = {}
    for path in paths:
        for item in _inside(path) or [path]:
            found.setdefault(os.path.realpath(item), item)
    return tuple(found.values())


def _inside(folder: Path) -> list[Path]:
    """Return the files in a folder and its folders; none if it is no folder."""
    return sorted(Path(place) / name for place, _, names in os.walk(folder) for name in names)


class _Run:
    """One pass over files, with what it has seen and how far it is."""

    def __init__(
        self,
        files: Sequence[Path],
        on_progress: Callable[[Progress], None] | None,
        on_skipped: Callable[[Skipped], None] | None,
        formats: Sequence[Format],
    ) -> None:
        self._files = files
        self._sizes = [_size(path) for path in files]
        self._total = sum(self._sizes)
        self._on_progress = on_progress
        self._on_skipped = on_skipped
        self._formats = formats
        self._call_owners: CallOwners = {}
        self._told = 0

    def recordings(self) -> Iterator[Recording]:
        before = 0
        for path, size in zip(self._files, self._sizes, strict=True):
            self._tell(before, path, at_least=0)
            yield from self._read(path, before)
            before += size
        if self._files:
            self._tell(before, self._files[-1], at_least=0)

    def _read(self, path: Path, before: int) -> Iterator[Recording]:
        if (why_not := _why_not(path)) is not None:
            self._skip(path, why_not)
            return
        try:
            with RecordedFile(
                path,
                call_owners=self._call_owners,
                on_read=lambda at: self._tell(before + at, path, at_least=_STEP),
            ) as file:
                yield from self._sessions(file)
        except LowwaterError as error:
            self._skip(path, str(error))

    def _sessions(self, file: RecordedFile) -> Iterator[Recording]:
        format = format_of(file.head(), file.path, self._formats)
        if format is None:
            self._skip(file.path, "no recording in a format that is known")
            return
        any_yet, failed = False, ""
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
                yield replace(recording, broken=recording.broken + file.take_broken())
        broken = file.take_broken()
        if failed or broken or not any_yet:
            self._skip(file.path, failed or f"no session {'more ' if any_yet else ''}in it", broken)

    def _skip(self, path: Path, why: str, broken: tuple[BrokenLine, ...] = ()) -> None:
        if self._on_skipped is not None:
            self._on_skipped(Skipped(path=str(path), why=why, broken=broken))

    def _tell(self, read: int, path: Path, *, at_least: int) -> None:
        if self._on_progress is not None and read - self._told >= at_least:
            self._told = read
            self._on_progress(Progress(read=read, of=max(read, self._total), path=str(path)))


def _why_not(path: Path) -> str | None:
    """Say why a path cannot be read as a file; None if nothing speaks against it."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if S_ISDIR(mode):
        return "an empty folder"
    return None if S_ISREG(mode) else "no plain file"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
