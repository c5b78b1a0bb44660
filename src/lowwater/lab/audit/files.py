"""Audits files one after the other; findings are cached between runs."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from time import altzone, timezone, tzname

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from platformdirs import user_cache_path

import lowwater
from lowwater.errors import BadInput, LowwaterError, defect
from lowwater.lab.audit.calls import AuditedCall, ModelPrices, audited_calls
from lowwater.lab.audit.findings import AuditedSession, DayOf
from lowwater.lab.audit.session import audit_session
from lowwater.logs.files import RecordedFile
from lowwater.logs.importers import Progress, Skipped, files_in, recordings
from lowwater.logs.recording import Recording

REPEATED = "repeated"
"""The relation of a session that is known only from its forks."""
Reader = Callable[..., Iterable[Recording]]
"""Reads the recordings in files, like `recordings`."""


class SessionPart(Struct, frozen=True, kw_only=True):
    """One session in a recording, with its calls and the copied calls around them."""

    recording: Recording
    calls: tuple[AuditedCall, ...]


def file_parts(recording: Recording, calls: Sequence[AuditedCall]) -> Iterator[SessionPart]:
    """Yield the session itself, then the repeated beginning of each other session."""
    others = dict.fromkeys(call.made_by for call in calls if call.made_by)
    if not others:
        yield SessionPart(recording=recording, calls=tuple(calls))
        return
    if any(not call.made_by for call in calls):
        own = tuple(replace(call, copied=call.copied or bool(call.made_by)) for call in calls)
        yield SessionPart(recording=recording, calls=own)
    for name in others:
        last = max(at for at, call in enumerate(calls) if call.made_by == name)
        until = calls[last].index + 1
        yield SessionPart(
            recording=replace(
                recording,
                id=name,
                parent="",
                relation=REPEATED,
                messages=recording.messages[:until],
                compactions=tuple(each for each in recording.compactions if each.index < until),
                broken=(),
            ),
            calls=tuple(
                replace(call, copied=call.copied or call.made_by != name) for call in calls[: last + 1]
            ),
        )


def merge_pieces(sessions: Iterable[AuditedSession]) -> list[AuditedSession]:
    """Return the sessions with the pieces of one session from several files merged, under the name of its own file if there is one.

    Savings are estimated on whole sessions, so a merged session has none.
    """
    pieces: dict[tuple[str, str], list[AuditedSession]] = {}
    every = list(sessions)
    for session in every:
        pieces.setdefault((session.agent, session.id), []).append(session)
    found: list[AuditedSession] = []
    for session in every:
        of_one = pieces.pop((session.agent, session.id), [])
        if any(piece.relation == REPEATED for piece in of_one):
            found += _merge(of_one)
        else:
            found += of_one
    return found


def _merge(pieces: Sequence[AuditedSession]) -> list[AuditedSession]:
    repeated = [piece for piece in pieces if piece.relation == REPEATED]
    whole = [piece for piece in pieces if piece.relation != REPEATED]
    first, *others = [*whole[:1], *repeated]
    if not others:
        return list(pieces)
    times = [piece.ended_at for piece in (first, *others) if piece.ended_at is not None]
    one = replace(
        first,
        rows=tuple(row for piece in (first, *others) for row in piece.rows),
        natives=tuple(native for piece in (first, *others) for native in piece.natives),
        stretches=tuple(stretch for piece in (first, *others) for stretch in piece.stretches),
        peak_prompt=max(piece.peak_prompt for piece in (first, *others)),
        ended_at=max(times, default=None),
        copied=sum(piece.copied for piece in (first, *others)),
        foreseen=None,
        saving=None,
    )
    return [one, *whole[1:]]


class UnreadFile(Struct, frozen=True, kw_only=True):
    """A file, or the rest of one, that could not be read."""

    path: str
    why: str
    broken: int = 0


class Stamp(Struct, frozen=True, kw_only=True):
    """Identifies a version of a file, of the code that read it, and of the time zone of its days."""

    path: str
    size: int
    changed: int
    log: tuple[int, int] = (0, 0)
    """Size and time of a database's write-ahead log."""
    reader: str
    zone: str


class CacheEntry(Struct, frozen=True, kw_only=True):
    """The findings of one file, given that the calls in `copied` were already counted with earlier files."""

    stamp: Stamp
    sessions: tuple[AuditedSession, ...]
    unread: tuple[UnreadFile, ...] = ()
    keys: tuple[bytes, ...] = ()
    """The keys of all calls in it."""
    copied: tuple[bytes, ...] = ()
    """The keys among them that were counted before, sorted."""
    repeated: int = 0
    """The number of those calls."""


class AuditCache:
    """A folder with an entry for each audited file; if an entry is missing or damaged, the file is read again."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = user_cache_path("lowwater", appauthor=False) / "audit" if folder is None else folder

    def find(self, stamp: Stamp, counted: set[bytes]) -> CacheEntry | None:
        """Return the entry of a file if it is valid for this version of it and for the calls `counted` before."""
        try:
            entry = msgspec.msgpack.decode(self._place(stamp).read_bytes(), type=CacheEntry)
        except (OSError, msgspec.DecodeError):
            return None
        is_same = entry.stamp == stamp and entry.copied == counted_before(entry.keys, counted)
        return entry if is_same else None

    def keep(self, entry: CacheEntry) -> None:
        """Write an entry; errors are ignored."""
        place = self._place(entry.stamp)
        written = place.with_suffix(f".{os.getpid()}")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            written.write_bytes(msgspec.msgpack.encode(entry))
            written.replace(place)
        except OSError:
            return

    def _place(self, stamp: Stamp) -> Path:
        name = blake2b(os.fsencode(stamp.path), digest_size=16).hexdigest()
        return self._folder / name[:2] / name


def stamp_of(path: Path) -> Stamp | None:
    """Return the stamp of a file as it is now; None if it cannot be accessed."""
    try:
        seen = path.stat()
        whole = path.resolve()
    except OSError:
        return None
    return Stamp(
        path=str(whole),
        size=seen.st_size,
        changed=seen.st_mtime_ns,
        log=_wal_stamp(whole),
        reader=reader_version(),
        zone=_zone(),
    )


def _wal_stamp(path: Path) -> tuple[int, int]:
    try:
        seen = path.with_name(f"{path.name}-wal").stat()
    except OSError:
        return 0, 0
    return seen.st_size, seen.st_mtime_ns


def stands_alone(path: Path) -> bool:
    """Return whether the findings of a file depend on that file alone, so that they can be cached.

    Batch results are read together with the files of their requests, and an OpenCode session with the folders of its messages
    and parts; the stamp does not cover those.
    """
    if not path.is_file():
        return True
    session = path.name.partition(".")[0]
    if any((base / "message" / session).is_dir() for base in path.parents[:3]):
        return False
    try:
        with RecordedFile(path) as file:
            return b'"custom_id"' not in file.head()
    except BadInput:
        return True


def counted_before(keys: tuple[bytes, ...], counted: set[bytes]) -> tuple[bytes, ...]:
    """Return the keys that were counted before, sorted."""
    return tuple(sorted(counted.intersection(keys)))


@lru_cache(maxsize=1)
def reader_version() -> str:
    """Return a digest of everything besides the file that findings depend on: code, model data, prices, numpy.

    It covers the whole package, because a list of the relevant modules would soon be out of date.
    """
    package = Path(lowwater.__file__).parent
    sources = sorted(
        path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    )
    if not sources:
        raise RuntimeError(f"no source of lowwater lies at {package}, so that no audit can be kept")
    digest = blake2b(digest_size=16)
    for path in sources:
        _add(digest, str(path.relative_to(package)).encode(), path.read_bytes())
    _add(digest, version("genai-prices").encode(), version("msgspec").encode(), version("numpy").encode())
    return digest.hexdigest()


def _add(digest: blake2b, *parts: bytes) -> None:
    """Add length-prefixed parts, so that different lists of parts have different digests."""
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)


def _zone() -> str:
    """Return a description of the time zone; zones of the same name may have different rules."""
    named = os.environ.get("TZ")
    return f"{' '.join(tzname)} {timezone} {altzone} {_zone_of_the_machine() if named is None else named}"


@lru_cache(maxsize=1)
def _zone_of_the_machine() -> str:
    try:
        return blake2b(Path("/etc/localtime").read_bytes(), digest_size=8).hexdigest()
    except OSError:
        return ""


class AuditedFile(Struct, frozen=True, kw_only=True):
    """The findings of one file."""

    path: str
    sessions: tuple[AuditedSession, ...] = ()
    unread: tuple[UnreadFile, ...] = ()
    repeated: int = 0
    """Calls in it that were counted with an earlier file."""
    from_cache: bool = False


def audit_files(
    paths: Iterable[Path],
    *,
    day_of: DayOf,
    kept: AuditCache | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    pricing: ModelPrices | None = None,
    read: Reader = recordings,
    with_contents: bool = False,
) -> Iterator[AuditedFile]:
    """Yield the findings of each file, in order; files in the cache `kept` are not read.

    A call that several files contain, because a resumed session copies its history, is counted with the first of them. The
    iterator can be abandoned early; with `kept`, the next run continues from there. With `with_contents`, findings name the paths
    and commands that were repeated after a compaction, and are not cached.
    """
    run = _Run(
        day_of,
        None if with_contents else kept,
        on_progress,
        pricing or ModelPrices(),
        read,
        with_contents=with_contents,
    )
    return run.files(files_in(paths))


class _Run:
    def __init__(
        self,
        day_of: DayOf,
        kept: AuditCache | None,
        on_progress: Callable[[Progress], None] | None,
        pricing: ModelPrices,
        read: Reader,
        *,
        with_contents: bool,
    ) -> None:
        self._with_contents = with_contents
        self._day_of = day_of
        self._kept = kept
        self._on_progress = on_progress
        self._pricing = pricing
        self._read = read
        self._counted: set[bytes] = set()
        self._done, self._all = 0, 0

    def files(self, paths: Sequence[Path]) -> Iterator[AuditedFile]:
        stamps = [stamp_of(path) for path in paths]
        self._all = sum(stamp.size for stamp in stamps if stamp)
        for path, stamp in zip(paths, stamps, strict=True):
            self._report_progress(0, path)
            if stamp is None:
                yield AuditedFile(path=str(path), unread=(UnreadFile(path=str(path), why="it is not there"),))
                continue
            known = self._kept.find(stamp, self._counted) if self._kept else None
            entry = known or self._audit(path, stamp)
            if known is None and self._kept is not None and stands_alone(path):
                self._kept.keep(entry)
            self._counted.update(entry.keys)
            self._done += stamp.size
            yield AuditedFile(
                path=str(path),
                sessions=entry.sessions,
                unread=entry.unread,
                repeated=entry.repeated,
                from_cache=known is not None,
            )
        if paths:
            self._report_progress(0, paths[-1])

    def _audit(self, path: Path, stamp: Stamp) -> CacheEntry:
        sessions: list[AuditedSession] = []
        unread: list[UnreadFile] = []
        keys: list[bytes] = []
        repeated = 0

        def skip(skipped: Skipped) -> None:
            unread.append(UnreadFile(path=skipped.path, why=skipped.why, broken=len(skipped.broken)))

        for recording in self._read(
            [path], on_progress=lambda at: self._report_progress(at.read, path), on_skipped=skip
        ):
            calls: tuple[AuditedCall, ...] = ()
            try:
                calls = audited_calls(recording, self._pricing, self._counted)
                sessions += self._sessions(recording, calls)
            except LowwaterError as error:
                unread.append(UnreadFile(path=f"{path} {recording.id}", why=str(error)))
            except Exception as error:  # noqa: BLE001 - a report on many sessions outlives a defect in one, and names it
                unread.append(UnreadFile(path=f"{path} {recording.id}", why=defect(error)))
            keys += (key for call in calls for key in call.keys)
            repeated += sum(call.copied for call in calls)
        found = tuple(dict.fromkeys(keys))
        return CacheEntry(
            stamp=stamp,
            sessions=tuple(sessions),
            unread=tuple(unread),
            keys=found,
            copied=counted_before(found, self._counted),
            repeated=repeated,
        )

    def _sessions(self, recording: Recording, calls: Sequence[AuditedCall]) -> list[AuditedSession]:
        """Return the audited sessions of a recording, except those whose calls are all copies."""
        return [
            audit_session(part.recording, part.calls, day_of=self._day_of, with_contents=self._with_contents)
            for part in file_parts(recording, calls)
            if not part.calls or not all(call.copied for call in part.calls)
        ]

    def _report_progress(self, read: int, path: Path) -> None:
        if self._on_progress is not None:
            self._on_progress(Progress(read=self._done + read, of=max(self._all, 1), path=str(path)))
