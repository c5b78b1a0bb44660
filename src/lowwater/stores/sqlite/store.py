"""The store in one SQLite file: `sqlite:///PATH`."""

from collections.abc import Sequence
from pathlib import Path

from lowwater.core.entries import Entry
from lowwater.core.ledger import Numbered
from lowwater.core.stored import (
    About,
    Account,
    Append,
    Fingerprint,
    FingerprintMatch,
    Hit,
    Listed,
    Outline,
    Stored,
)
from lowwater.stores.addresses import Sync
from lowwater.stores.serialization import pack_entry
from lowwater.stores.shared import AccountFallback, Conceal, conceal_nothing
from lowwater.stores.sqlite import queries
from lowwater.stores.sqlite.connections import SqliteConnections
from lowwater.stores.sqlite.queries import (
    SESSIONS_PER_DELETE,
    append,
    copy,
    delete,
    index_new_messages,
    search,
    unindexed,
)


class SqliteStore:
    """Keeps sessions in a file that any number of threads and processes may have open.

    A missing file is created, readable for this user only.
    """

    def __init__(self, path: Path, *, conceal: Conceal = conceal_nothing, sync: Sync = "full") -> None:
        self._connections = SqliteConnections(path, sync=sync)
        self._conceal = conceal
        self._accounts = AccountFallback(path)

    def append(self, session: str, expected: int, new: Append, /) -> int:
        """Store an append in one transaction, or raise StaleLedger."""
        packed = [pack_entry(entry) for entry in new.entries]

        def write(new: Append) -> int:
            with self._connections.writing() as connection:
                return append(connection, session, expected, new, packed, conceal=self._conceal)

        return self._accounts.write(new, write)

    def read(self, session: str, /, *, since: int = 0, until: int | None = None) -> Stored:
        """Return what was appended after `since` and not after `until`."""
        with self._connections.reading() as connection:
            return queries.read(connection, session, since, until)

    def outline(self, session: str, /) -> Outline:
        """Return the session without its entries."""
        with self._connections.reading() as connection:
            return queries.outline(connection, session)

    def entries(self, session: str, first: int, end: int, /, *, version: int) -> list[Entry]:
        """Return the entries at these positions."""
        with self._connections.reading() as connection:
            return queries.entries(connection, session, first, end, version)

    def messages(self, session: str, first: int, end: int, /, *, version: int) -> list[Numbered]:
        """Return the messages with these numbers."""
        with self._connections.reading() as connection:
            return queries.messages(connection, session, first, end, version)

    def copy(self, session: str, to: str, about: About, /) -> int:
        """Create the session `to` with the ledger of this one."""
        with self._connections.writing() as connection:
            return copy(connection, session, to, about)

    def delete(self, session: str, /, *others: str) -> bool:
        """Delete sessions; their bytes are overwritten in the file, and in the log unless somebody is reading from it."""
        names = (session, *others)
        deleted = 0
        for start in range(0, len(names), SESSIONS_PER_DELETE):
            with self._connections.writing() as connection:
                deleted += delete(connection, names[start : start + SESSIONS_PER_DELETE])
        if deleted:
            self._connections.empty_log()
        return deleted > 0

    def sessions(self) -> list[Listed]:
        """Return all sessions, most recently changed first."""
        with self._connections.reading() as connection:
            return queries.sessions(connection)

    def accounts(self, sessions: Sequence[str] | None = None, /) -> list[Account]:
        """Return the turn records and events of these sessions, or of all."""
        with self._connections.reading() as connection:
            return queries.accounts(connection, sessions)

    def search(self, words: str, /, *, session: str | None = None, limit: int = 5) -> list[Hit]:
        """Return the messages that match best, of all that were there when it was called."""
        with self._connections.reading() as connection:
            is_behind = unindexed(connection) != 0
        if is_behind:
            with self._connections.writing() as connection:
                index_new_messages(connection, self._conceal)
        with self._connections.reading() as connection:
            return search(connection, words, session, limit)

    def record_fingerprint(self, fingerprint: Fingerprint, /) -> None:
        """Record the digests a session was last seen with."""
        with self._connections.writing() as connection:
            queries.record_fingerprint(connection, fingerprint)

    def lookup_fingerprints(self, tenant: str, keys: Sequence[bytes], /) -> list[FingerprintMatch]:
        """Return the sessions that were once seen with one of these digests."""
        with self._connections.reading() as connection:
            return queries.lookup_fingerprints(connection, tenant, keys)

    def secret(self) -> bytes:
        """Return the random bytes that were drawn when the file was created."""
        with self._connections.reading() as connection:
            return queries.secret(connection)

    def backup(self, to: Path) -> None:
        """Write a copy of the whole store into a file that does not exist yet, or raise BadInput; others may go on writing."""
        self._connections.backup(to)

    def adopt(self, secret: bytes, trails: Sequence[tuple[str, tuple[object, ...]]]) -> None:
        """Take over from another file what the gateway recognises sessions by: its secret, and its fingerprints by session."""
        with self._connections.writing() as connection:
            queries.adopt(connection, secret, trails)

    def close(self) -> None:
        """Close the file."""
        self._connections.close()
