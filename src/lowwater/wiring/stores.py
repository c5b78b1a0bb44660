"""Picks where sessions are kept: what was given, what the environment says, or the user's data directory."""

import os
from pathlib import Path

from msgspec import Struct
from platformdirs import user_data_path

from lowwater.core.secrets.redaction import conceal as conceal_secrets
from lowwater.errors import BadInput, DamagedStore
from lowwater.protocols import Store
from lowwater.store import opening
from lowwater.store.indexing import Conceal, as_it_is
from lowwater.store.sqlite.address import SQLITE, sqlite_address
from lowwater.store.sqlite.salvaging import Examined, SalvagedSession, examine, salvage
from lowwater.store.sqlite.store import SqliteStore
from lowwater.wiring.plugins import names_of, store_at

VARIABLE = "LOWWATER_STORE"
FORGETFUL = "memory:"
"""The store of what is not worth keeping."""


def opened_store(given: Store | str | None = None, *, redact: bool = True) -> Store:
    """Return the store that was given, or open the one at an address, else at the default one.

    With `redact`, secrets are kept out of its search index.
    """
    if given is not None and not isinstance(given, str):
        return given
    address = given or default_address()
    return open_store(address) if redact else open_store(address, conceal=as_it_is)


def open_store(address: str, *, conceal: Conceal = conceal_secrets) -> Store:
    """Return the store at `memory:`, `sqlite:///PATH` or `postgresql://…`, or at the address of an installed package's.

    A PATH that begins with a slash (`sqlite:////var/lib/lowwater.db`) is absolute, any other starts in the current folder or,
    with `~/`, at home. Every `memory:` is a store of its own. `conceal` takes secrets out of a text before its words are indexed.
    """
    if opening.is_own(address):
        return opening.open_store(address, conceal=conceal)
    store = store_at(address, conceal=conceal)
    others = tuple(f"{name}:…" for name in names_of("store"))
    return store or opening.open_store(address, conceal=conceal, others=others)


def default_address() -> str:
    """Return the address in LOWWATER_STORE, or else that of a file in the user's data directory."""
    return os.environ.get(VARIABLE, "").strip() or f"{SQLITE}{default_path()}"


def file_at(address: str) -> Path | None:
    """Return the file that a store at this address is, or would be; None if it is none."""
    file = sqlite_address(address)
    return None if file is None else file.path


def default_path() -> Path:
    """Return where the file is that sessions are kept in unless something else is said."""
    return user_data_path("lowwater", appauthor=False) / "sessions.db"


class Verified(Struct, frozen=True, kw_only=True):
    """A kept session, and what is wrong with it; an empty text if nothing is."""

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


def verify(address: str) -> Verification:
    """Read everything that is kept at an address, without changing it, and return what cannot be read."""
    path = file_at(address)
    if path is not None:
        found: Examined = examine(_existing(path))
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
    """Write what is whole in a damaged SQLite store into a new one at `to`; the damaged one is only read."""
    path = _sqlite_only(address, "salvage", "restore a dump of the database, or see PostgreSQL's manual")
    _refuse_existing(to)
    # Nobody relies on the new file before it is whole, so single commits need not wait for the disk.
    store = SqliteStore(to, conceal=conceal_secrets if redact else as_it_is, sync="normal")
    try:
        return salvage(path, store)
    finally:
        store.close()


def backed_up(address: str, to: Path) -> None:
    """Write a copy of a SQLite store, whole and as of one moment, into a new file, while others go on writing."""
    store = SqliteStore(_sqlite_only(address, "backup", "use pg_dump"))
    try:
        _refuse_existing(to)
        store.backup(to)
    finally:
        store.close()


def lost_words(session: SalvagedSession) -> str:
    """Return what is lost of a session, in words; nothing if it is whole."""
    said = (
        (session.lost_messages, "damaged message", "become tombstones"),
        (session.missing_messages, "message", "are gone from the end"),
        (session.lost_entries, "compaction or other entry", "are gone"),
        (session.lost_accounts, "turn record or event", "are gone"),
        (int(session.lost_state), "state", "is gone: rent and cache belief begin anew"),
    )
    return "; ".join(f"{number:,} × {what} ({fate})" for number, what, fate in said if number)


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
