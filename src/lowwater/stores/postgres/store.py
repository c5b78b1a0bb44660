"""The store in a PostgreSQL database: `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`."""

from collections.abc import Sequence

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
from lowwater.stores.postgres import queries
from lowwater.stores.postgres.connections import Address, PostgresConnections
from lowwater.stores.postgres.queries import append, copy, delete, pack_append, search
from lowwater.stores.shared import AccountFallback, Conceal, conceal_nothing


class PostgresStore:
    """Keeps sessions in tables that any number of threads, processes and machines may use; missing tables are created.

    The tables are in the schema `lowwater`, or in the first schema of the `search_path` in the address
    (`?options=-csearch_path%3Dmine`).
    """

    def __init__(self, address: str, *, conceal: Conceal = conceal_nothing) -> None:
        self._conceal = conceal
        self._connections = PostgresConnections(Address(address))
        self._accounts = AccountFallback(Address(address))

    def append(self, session: str, expected: int, new: Append, /) -> int:
        """Store an append in one transaction, or raise StaleLedger."""

        def write(new: Append) -> int:
            packed = pack_append(new)
            return self._connections.writing(
                lambda connection: append(connection, session, expected, packed, self._conceal)
            )

        return self._accounts.write(new, write)

    def read(self, session: str, /, *, since: int = 0, until: int | None = None) -> Stored:
        """Return what was appended after `since` and not after `until`."""
        return self._connections.reading(lambda connection: queries.read(connection, session, since, until))

    def outline(self, session: str, /) -> Outline:
        """Return the session without its entries."""
        return self._connections.reading(lambda connection: queries.outline(connection, session))

    def entries(self, session: str, first: int, end: int, /, *, version: int) -> list[Entry]:
        """Return the entries at these positions."""
        return self._connections.reading(
            lambda connection: queries.entries(connection, session, first, end, version)
        )

    def messages(self, session: str, first: int, end: int, /, *, version: int) -> list[Numbered]:
        """Return the messages with these numbers."""
        return self._connections.reading(
            lambda connection: queries.messages(connection, session, first, end, version)
        )

    def copy(self, session: str, to: str, about: About, /) -> int:
        """Create the session `to` with the ledger of this one."""
        return self._connections.writing(lambda connection: copy(connection, session, to, about))

    def delete(self, session: str, /, *others: str) -> bool:
        """Delete sessions; their rows are gone when it returns, their bytes when the server has vacuumed the tables."""
        return sum(self._delete_one(name) for name in (session, *others)) > 0

    def _delete_one(self, session: str) -> bool:
        return self._connections.writing(lambda connection: delete(connection, session))

    def sessions(self) -> list[Listed]:
        """Return all sessions, most recently changed first."""
        return self._connections.reading(queries.sessions)

    def accounts(self, sessions: Sequence[str] | None = None, /) -> list[Account]:
        """Return the turn records and events of these sessions, or of all."""
        return self._connections.reading(lambda connection: queries.accounts(connection, sessions))

    def search(self, words: str, /, *, session: str | None = None, limit: int = 5) -> list[Hit]:
        """Return the messages that match best."""
        return self._connections.reading(lambda connection: search(connection, words, session, limit))

    def record_fingerprint(self, fingerprint: Fingerprint, /) -> None:
        """Record the digests a session was last seen with."""
        self._connections.writing(lambda connection: queries.record_fingerprint(connection, fingerprint))

    def lookup_fingerprints(self, tenant: str, keys: Sequence[bytes], /) -> list[FingerprintMatch]:
        """Return the sessions that were once seen with one of these digests."""
        return self._connections.reading(
            lambda connection: queries.lookup_fingerprints(connection, tenant, keys)
        )

    def secret(self) -> bytes:
        """Return the random bytes that were drawn when the tables were created."""
        return self._connections.reading(queries.secret)

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()
