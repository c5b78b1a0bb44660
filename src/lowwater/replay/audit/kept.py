"""What audits found in files, kept between runs: a file that has not changed is not read again."""

import os
from functools import lru_cache
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from time import altzone, timezone, tzname

import msgspec
from msgspec import Struct
from platformdirs import user_cache_path

import lowwater
from lowwater.errors import BadInput
from lowwater.logs.files import RecordedFile
from lowwater.replay.audit.audited import AuditedSession
from lowwater.replay.audit.session import numpy_version


class Unread(Struct, frozen=True, kw_only=True):
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
    unread: tuple[Unread, ...] = ()
    keys: tuple[bytes, ...] = ()
    """Those of all calls in it."""
    copied: tuple[bytes, ...] = ()
    """Of these, those that were told before; sorted."""
    repeated: int = 0
    """How many calls these are."""


class Kept:
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
