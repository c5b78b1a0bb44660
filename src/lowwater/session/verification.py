"""Checking a store, salvaging a damaged one, and backing one up."""

from pathlib import Path

from msgspec import Struct

from lowwater.errors import BadInput, DamagedStore
from lowwater.protocols import Store
from lowwater.session.factories import file_at, open_store
from lowwater.stores.shared import conceal_nothing, conceal_secrets
from lowwater.stores.sqlite.salvage import SalvagedSession, examine, salvage
from lowwater.stores.sqlite.store import SqliteStore


class Verified(Struct, frozen=True, kw_only=True):
    """A stored session, and what is wrong with it; empty if nothing is."""

    name: str
    messages: int
    problem: str = ""


class Verification(Struct, frozen=True, kw_only=True):
    """What is wrong with a store as a whole, and with each session in it."""

    problems: tuple[str, ...]
    sessions: tuple[Verified, ...]

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems and not any(session.problem for session in self.sessions)


def verify_store(address: str) -> Verification:
    """Read everything in the store at an address, without changing it, and return what cannot be read."""
    path = file_at(address)
    if path is not None:
        found = examine(_existing(path))
        return Verification(
            problems=found.problems,
            sessions=tuple(
                Verified(name=each.name, messages=each.messages, problem=lost_words(each))
                for each in found.sessions
            ),
        )
    store = open_store(address)
    try:
        return Verification(
            problems=(),
            sessions=tuple(
                Verified(name=each.name, messages=each.messages, problem=_problem(store, each.name))
                for each in store.sessions()
            ),
        )
    finally:
        store.close()


def salvaged(address: str, to: Path, *, redact: bool = True) -> list[SalvagedSession]:
    """Write what is intact in a damaged SQLite store into a new one at `to`; the damaged one is only read."""
    path = _sqlite_only(address, "salvage", "restore a dump of the database, or see PostgreSQL's manual")
    _refuse_existing(to)
    # Nobody uses the new file before it is complete, so single commits need not wait for the disk.
    store = SqliteStore(to, conceal=conceal_secrets if redact else conceal_nothing, sync="normal")
    try:
        return salvage(path, store)
    finally:
        store.close()


def backed_up(address: str, to: Path) -> None:
    """Write a consistent copy of a SQLite store into a new file, while others go on writing."""
    store = SqliteStore(_sqlite_only(address, "backup", "use pg_dump"))
    try:
        _refuse_existing(to)
        store.backup(to)
    finally:
        store.close()


def lost_words(session: SalvagedSession) -> str:
    """Return what is lost of a session, in words; empty if nothing is."""
    losses = (
        (session.lost_messages, "damaged message", "become tombstones"),
        (session.missing_messages, "message", "are gone from the end"),
        (session.lost_entries, "compaction or other entry", "are gone"),
        (session.lost_accounts, "turn record or event", "are gone"),
        (int(session.lost_state), "state", "is gone: rent and cache belief begin anew"),
    )
    return "; ".join(f"{number:,} × {what} ({fate})" for number, what, fate in losses if number)


def _problem(store: Store, name: str) -> str:
    try:
        store.read(name)
        store.accounts([name])
    except DamagedStore as error:
        return str(error)
    return ""


def _sqlite_only(address: str, what: str, instead: str) -> Path:
    path = file_at(address)
    if path is None:
        raise BadInput(f"`sessions {what}` is for SQLite files: {instead}")
    return _existing(path)


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise BadInput(f"there is no file {path}: --store or LOWWATER_STORE name another place")
    return path


def _refuse_existing(path: Path) -> None:
    if path.exists():
        raise BadInput(f"there is a file {path} already: choose another name")
