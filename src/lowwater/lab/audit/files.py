"""Audits files one after the other; what was found is kept between runs."""

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
from lowwater.lab.audit.calls import AuditedCall, Pricing, calls_of
from lowwater.lab.audit.findings import AuditedSession, DayOf
from lowwater.lab.audit.session import audit_session, numpy_version
from lowwater.logs.files import RecordedFile
from lowwater.logs.importing import Progress, Skipped, files_in, recordings
from lowwater.logs.recording import Recording

REPEATED = "repeated"
"""What a session is, of which only a fork tells."""
Reader = Callable[..., Iterable[Recording]]
"""Reads the sessions of files, as `recordings` does."""


class Part(Struct, frozen=True, kw_only=True):
    """The calls of one session in a recording, with those around them that others made or told."""

    recording: Recording
    calls: tuple[AuditedCall, ...]


def parts_of(recording: Recording, calls: Sequence[AuditedCall]) -> Iterator[Part]:
    """Yield the session itself, then the beginning of each other session whose calls it repeats."""
    others = dict.fromkeys(call.made_by for call in calls if call.made_by)
    if not others:
        yield Part(recording=recording, calls=tuple(calls))
        return
    if any(not call.made_by for call in calls):
        own = tuple(replace(call, copied=call.copied or bool(call.made_by)) for call in calls)
        yield Part(recording=recording, calls=own)
    for name in others:
        last = max(at for at, call in enumerate(calls) if call.made_by == name)
        until = calls[last].index + 1
        yield Part(
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


def joined(sessions: Iterable[AuditedSession]) -> list[AuditedSession]:
    """Return the sessions, what several files tell of one as one; where its own file is there, under that file's name.

    What could have been saved is estimated on whole sessions, and is not told of one that was put together.
    """
    pieces: dict[tuple[str, str], list[AuditedSession]] = {}
    every = list(sessions)
    for session in every:
        pieces.setdefault((session.agent, session.id), []).append(session)
    found: list[AuditedSession] = []
    for session in every:
        of_one = pieces.pop((session.agent, session.id), [])
        if any(piece.relation == REPEATED for piece in of_one):
            found += _together(of_one)
        else:
            found += of_one
    return found


def _together(pieces: Sequence[AuditedSession]) -> list[AuditedSession]:
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
        peak_prompt=max(piece.peak_prompt for piece in (first, *others)),
        ended_at=max(times, default=None),
        copied=sum(piece.copied for piece in (first, *others)),
        foreseen=None,
        saving=None,
    )
    return [one, *whole[1:]]


class UnreadFile(Struct, frozen=True, kw_only=True):
    """A file, or the rest of one, that gave no session."""

    path: str
    why: str
    broken: int = 0


class Stamp(Struct, frozen=True, kw_only=True):
    """A file as it was, what read it, and the time zone that its days are told in."""

    path: str
    size: int
    changed: int
    log: tuple[int, int] = (0, 0)
    """Size and time of what a program that has the database open has not moved into it yet."""
    reader: str
    zone: str


class Entry(Struct, frozen=True, kw_only=True):
    """What was found in one file, given that the calls in `copied` had been told by files before it."""

    stamp: Stamp
    sessions: tuple[AuditedSession, ...]
    unread: tuple[UnreadFile, ...] = ()
    keys: tuple[bytes, ...] = ()
    """Those of all calls in it."""
    copied: tuple[bytes, ...] = ()
    """Of these, those that were told before; sorted."""
    repeated: int = 0
    """How many calls these are."""


class AuditCache:
    """A folder with an entry for each file that was audited; whatever is wrong with it, the file is read again."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = user_cache_path("lowwater", appauthor=False) / "audit" if folder is None else folder

    def find(self, stamp: Stamp, told: set[bytes]) -> Entry | None:
        """Return what was found in the file, if it holds for the file as it is and for what was `told` before."""
        try:
            entry = msgspec.msgpack.decode(self._place(stamp).read_bytes(), type=Entry)
        except (OSError, msgspec.DecodeError):
            return None
        is_same = entry.stamp == stamp and entry.copied == told_before(entry.keys, told)
        return entry if is_same else None

    def keep(self, entry: Entry) -> None:
        """Write an entry; a folder that cannot be written to keeps nothing."""
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
    """Return a file as it is now; None if it cannot be looked at."""
    try:
        seen = path.stat()
        whole = path.resolve()
    except OSError:
        return None
    return Stamp(
        path=str(whole),
        size=seen.st_size,
        changed=seen.st_mtime_ns,
        log=_log_of(whole),
        reader=reader(),
        zone=_zone(),
    )


def _log_of(path: Path) -> tuple[int, int]:
    try:
        seen = path.with_name(f"{path.name}-wal").stat()
    except OSError:
        return 0, 0
    return seen.st_size, seen.st_mtime_ns


def stands_alone(path: Path) -> bool:
    """Tell whether what is found in a file depends on it alone.

    The results of a batch are read with the requests in the files beside them, an OpenCode session with the folders
    of its messages and parts; a stamp says nothing about those.
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


def told_before(keys: tuple[bytes, ...], told: set[bytes]) -> tuple[bytes, ...]:
    """Return those of the keys that were told before, sorted."""
    return tuple(sorted(told.intersection(keys)))


@lru_cache(maxsize=1)
def reader() -> str:
    """Return what stands for all that findings depend on beside the file: code, model data, prices, numpy.

    The whole package counts: a list of the parts that matter would be wrong as soon as one of them imports another.
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
    _add(digest, version("genai-prices").encode(), version("msgspec").encode(), numpy_version().encode())
    return digest.hexdigest()


def _add(digest: blake2b, *parts: bytes) -> None:
    """Add parts so that no two lists of them come to the same."""
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)


def _zone() -> str:
    """Return what says when a day begins here: zones of one name may change their clocks on other days."""
    named = os.environ.get("TZ")
    return f"{' '.join(tzname)} {timezone} {altzone} {_zone_of_the_machine() if named is None else named}"


@lru_cache(maxsize=1)
def _zone_of_the_machine() -> str:
    try:
        return blake2b(Path("/etc/localtime").read_bytes(), digest_size=8).hexdigest()
    except OSError:
        return ""


class AuditedFile(Struct, frozen=True, kw_only=True):
    """What one file gave."""

    path: str
    sessions: tuple[AuditedSession, ...] = ()
    unread: tuple[UnreadFile, ...] = ()
    repeated: int = 0
    """Calls in it that a file before had told."""
    from_cache: bool = False


def audit_files(
    paths: Iterable[Path],
    *,
    day_of: DayOf,
    kept: AuditCache | None = None,
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
        kept: AuditCache | None,
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
                yield AuditedFile(path=str(path), unread=(UnreadFile(path=str(path), why="it is not there"),))
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
        unread: list[UnreadFile] = []
        keys: list[bytes] = []
        repeated = 0

        def skip(skipped: Skipped) -> None:
            unread.append(UnreadFile(path=skipped.path, why=skipped.why, broken=len(skipped.broken)))

        for recording in self._read(
            [path], on_progress=lambda at: self._tell(at.read, path), on_skipped=skip
        ):
            calls: tuple[AuditedCall, ...] = ()
            try:
                calls = calls_of(recording, self._pricing, self._told)
                sessions += self._sessions(recording, calls)
            except LowwaterError as error:
                unread.append(UnreadFile(path=f"{path} {recording.id}", why=str(error)))
            except Exception as error:  # noqa: BLE001 - a report on many sessions outlives a defect in one, and names it
                unread.append(UnreadFile(path=f"{path} {recording.id}", why=defect(error)))
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

    def _sessions(self, recording: Recording, calls: Sequence[AuditedCall]) -> list[AuditedSession]:
        """Return the sessions of a recording that have calls of their own, or none at all."""
        return [
            audit_session(part.recording, part.calls, day_of=self._day_of)
            for part in parts_of(recording, calls)
            if not part.calls or not all(call.copied for call in part.calls)
        ]

    def _tell(self, read: int, path: Path) -> None:
        if self._on_progress is not None:
            self._on_progress(Progress(read=self._done + read, of=max(self._all, 1), path=str(path)))
