"""What audits found in files, kept between runs: a file that has not changed is not read again."""

import os
from functools import lru_cache
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from time import tzname

import msgspec
from msgspec import Struct
from platformdirs import user_cache_path

import lowwater
from lowwater.replay.audit.audited import AuditedSession

_PARTS = (
    *("data", "economics", "values", "wire", "replay/audit", "replay/importing"),
    *(f"replay/{name}.py" for name in ("course", "policies", "recorded", "renting", "tally")),
)
"""What of the package the findings depend on."""


class Unread(Struct, frozen=True, kw_only=True):
    """A file, or the rest of one, that gave no session."""

    path: str
    why: str
    broken: int = 0


class Stamp(Struct, frozen=True, kw_only=True):
    """A file as it was, and what read it; days are told in a time zone."""

    path: str
    size: int
    changed: int
    reader: str
    zone: tuple[str, ...] = tzname


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
    return Stamp(path=str(whole), size=seen.st_size, changed=seen.st_mtime_ns, reader=reader())


def told_before(keys: tuple[bytes, ...], told: set[bytes]) -> tuple[bytes, ...]:
    """Return those of the keys that were told before, sorted."""
    return tuple(sorted(told.intersection(keys)))


@lru_cache(maxsize=1)
def reader() -> str:
    """Return what stands for this version of the code, the model data and the price list."""
    digest = blake2b(version("genai-prices").encode(), digest_size=16)
    package = Path(lowwater.__file__).parent
    for part in _PARTS:
        place = package / part
        for path in [place] if place.is_file() else sorted(place.rglob("*.*")):
            digest.update(path.read_bytes() if path.suffix in (".py", ".json") else b"")
    return digest.hexdigest()
