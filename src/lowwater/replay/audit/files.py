"""Audits files one after the other, with one session in memory at a time."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from lowwater.errors import LowwaterError, defect
from lowwater.logs.importing import Progress, Skipped, files_in, recordings
from lowwater.logs.recording import Recording
from lowwater.replay.audit.audited import AuditedSession, DayOf
from lowwater.replay.audit.calls import Call, calls_of
from lowwater.replay.audit.forks import parts_of
from lowwater.replay.audit.kept import Entry, Kept, Stamp, Unread, stamp_of, stands_alone, told_before
from lowwater.replay.audit.pricing import Pricing
from lowwater.replay.audit.session import audit_session

Reader = Callable[..., Iterable[Recording]]
"""Reads the sessions of files, as `recordings` does."""


class AuditedFile(Struct, frozen=True, kw_only=True):
    """What one file gave."""

    path: str
    sessions: tuple[AuditedSession, ...] = ()
    unread: tuple[Unread, ...] = ()
    repeated: int = 0
    """Calls in it that a file before had told."""
    from_cache: bool = False


def audit_files(
    paths: Iterable[Path],
    *,
    day_of: DayOf,
    kept: Kept | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    pricing: Pricing | None = None,
    read: Reader = recordings,
) -> Iterator[AuditedFile]:
    """Yield what each file gives, in order; those that `kept` knows are not read.

    A call that several files hold, because a resumed session copies what came before, is counted with the first.
    Whoever stops early has what was yielded, and with `kept` the next run goes on from there.
    """
    run = _Run(day_of, kept, on_progress, pricing or Pricing(), read)
    return run.files(files_in(paths))


class _Run:
    def __init__(
        self,
        day_of: DayOf,
        kept: Kept | None,
        on_progress: Callable[[Progress], None] | None,
        pricing: Pricing,
        read: Reader,
    ) -> None:
        self._day_of = day_of
        self._kept = kept
        self._on_progress = on_progress
        self._pricing = pricing
        self._read = read
        self._told: set[bytes] = set()
        self._done, self._all = 0, 0

    def files(self, paths: Sequence[Path]) -> Iterator[AuditedFile]:
        stamps = [stamp_of(path) for path in paths]
        self._all = sum(stamp.size for stamp in stamps if stamp)
        for path, stamp in zip(paths, stamps, strict=True):
            self._tell(0, path)
            if stamp is None:
                yield AuditedFile(path=str(path), unread=(Unread(path=str(path), why="it is not there"),))
                continue
            known = self._kept.find(stamp, self._told) if self._kept else None
            entry = known or self._audit(path, stamp)
            if known is None and self._kept is not None and stands_alone(path):
                self._kept.keep(entry)
            self._told.update(entry.keys)
            self._done += stamp.size
            yield AuditedFile(
                path=str(path),
                sessions=entry.sessions,
                unread=entry.unread,
                repeated=entry.repeated,
                from_cache=known is not None,
            )
        if paths:
            self._tell(0, paths[-1])

    def _audit(self, path: Path, stamp: Stamp) -> Entry:
        sessions: list[AuditedSession] = []
        unread: list[Unread] = []
        keys: list[bytes] = []
        repeated = 0

        def skip(skipped: Skipped) -> None:
            unread.append(Unread(path=skipped.path, why=skipped.why, broken=len(skipped.broken)))

        for recording in self._read(
            [path], on_progress=lambda at: self._tell(at.read, path), on_skipped=skip
        ):
            calls: tuple[Call, ...] = ()
            try:
                calls = calls_of(recording, self._pricing, self._told)
                sessions += self._sessions(recording, calls)
            except LowwaterError as error:
                unread.append(Unread(path=f"{path} {recording.id}", why=str(error)))
            except Exception as error:  # noqa: BLE001 - a report on many sessions outlives a defect in one, and names it
                unread.append(Unread(path=f"{path} {recording.id}", why=defect(error)))
            keys += (key for call in calls for key in call.keys)
            repeated += sum(call.copied for call in calls)
        found = tuple(dict.fromkeys(keys))
        return Entry(
            stamp=stamp,
            sessions=tuple(sessions),
            unread=tuple(unread),
            keys=found,
            copied=told_before(found, self._told),
            repeated=repeated,
        )

    def _sessions(self, recording: Recording, calls: Sequence[Call]) -> list[AuditedSession]:
        """Return the sessions of a recording that have calls of their own, or none at all."""
        return [
            audit_session(part.recording, part.calls, day_of=self._day_of)
            for part in parts_of(recording, calls)
            if not part.calls or not all(call.copied for call in part.calls)
        ]

    def _tell(self, read: int, path: Path) -> None:
        if self._on_progress is not None:
            self._on_progress(Progress(read=self._done + read, of=max(self._all, 1), path=str(path)))
