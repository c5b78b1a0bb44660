"""The store that forgets with its process: `memory:`."""

from collections.abc import Sequence
from threading import Lock

from msgspec import Struct

from lowwater.errors import StaleLedger, UnusableStore
from lowwater.values.entries import Appended, Entry
from lowwater.values.stored import Listed, Stored
from lowwater.values.turn_record import TurnRecord


class _Append(Struct, frozen=True, kw_only=True):
    version: int
    entries: tuple[Entry, ...]
    record: TurnRecord | None


class MemoryStore:
    """Keeps sessions in this process only."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._sessions: dict[str, list[_Append]] | None = {}
        self._newest = 0

    def append(
        self, session: str, expected: int, entries: Sequence[Entry], record: TurnRecord | None = None, /
    ) -> int:
        """Keep entries and record, or raise StaleLedger."""
        with self._lock:
            appends = self._open().get(session, [])
            found = _version(appends)
            if found != expected:
                raise StaleLedger(session, expected=expected, found=found)
            if not entries and record is None:
                return found
            self._newest += 1
            new = _Append(version=self._newest, entries=tuple(entries), record=record)
            self._open().setdefault(session, appends).append(new)
            return self._newest

    def read(self, session: str, /, *, since: int = 0, until: int | None = None) -> Stored:
        """Return what was appended after `since` and not after `until`."""
        with self._lock:
            appends = list(self._open().get(session, ()))
        if since and all(append.version != since for append in appends):
            raise StaleLedger(session, expected=since, found=_version(appends))
        upto = [append for append in appends if until is None or append.version <= until]
        records = _outdated([append.record for append in appends if append.record is not None])
        by_then = sum(append.record is not None for append in upto)
        return Stored(
            version=_version(upto),
            entries=tuple(entry for append in upto if append.version > since for entry in append.entries),
            record=records[by_then - 1] if by_then else None,
        )

    def records(self, session: str, /) -> list[TurnRecord]:
        """Return all records, oldest first."""
        with self._lock:
            appends = self._open().get(session, [])
            return _outdated([append.record for append in appends if append.record is not None])

    def sessions(self) -> list[Listed]:
        """Return all sessions, the one changed last first."""
        with self._lock:
            newest_first = sorted(self._open().items(), key=lambda item: -_version(item[1]))
            return [_listed(name, appends) for name, appends in newest_first]

    def delete(self, session: str, /) -> bool:
        """Forget a session; return whether there was one."""
        with self._lock:
            return self._open().pop(session, None) is not None

    def close(self) -> None:
        """Forget everything."""
        with self._lock:
            self._sessions = None

    def _open(self) -> dict[str, list[_Append]]:
        if self._sessions is None:
            raise UnusableStore("the store was closed: open another")
        return self._sessions


def _version(appends: Sequence[_Append]) -> int:
    return appends[-1].version if appends else 0


def _outdated(records: Sequence[TurnRecord]) -> list[TurnRecord]:
    return [*(record.outdated() for record in records[:-1]), *records[-1:]]


def _listed(name: str, appends: Sequence[_Append]) -> Listed:
    entries = [entry for append in appends for entry in append.entries]
    records = [append.record for append in appends if append.record is not None]
    times = [happened.at for append in (appends[0], appends[-1]) for happened in _happened(append)]
    return Listed(
        name=name,
        version=_version(appends),
        entries=len(entries),
        messages=sum(len(entry.messages) for entry in entries if isinstance(entry, Appended)),
        turns=len(records),
        opened_at=times[0],
        changed_at=times[-1],
    )


def _happened(append: _Append) -> list[Entry | TurnRecord]:
    return [*append.entries, *([append.record] if append.record is not None else [])]
