"""The store in a PostgreSQL database: `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from lowwater.core.stored import Hit
from lowwater.stores.postgres.connections import Address, PostgresConnections
from lowwater.stores.postgres.queries import PostgresQueries
from lowwater.stores.shared import Conceal, conceal_nothing
from lowwater.stores.sql import SqlStore

_log = logging.getLogger("lowwater")
Result = TypeVar("Result")
INDEXED_AT_ONCE = 1_000
"""How many messages one transaction indexes again."""


class PostgresStore(SqlStore[PostgresQueries]):
    """Keeps sessions in tables that any number of threads, processes and machines may use; missing tables are created.

    The tables are in the schema `lowwater`, or in the first schema of the `search_path` in the address
    (`?options=-csearch_path%3Dmine`).
    """

    def __init__(self, address: str, *, conceal: Conceal = conceal_nothing) -> None:
        self._address = Address(address)
        super().__init__(self._address, conceal)
        self._connections = PostgresConnections(self._address)
        self._is_indexed = False

    @contextmanager
    def _reading(self) -> Iterator[PostgresQueries]:
        with self._connections.reading() as connection:
            yield PostgresQueries(connection)

    def _write(self, work: Callable[[PostgresQueries], Result]) -> Result:
        return self._connections.writing(lambda connection: work(PostgresQueries(connection)))

    def delete(self, session: str, /, *others: str) -> bool:
        """Delete sessions; their rows are gone when it returns, their bytes when the server has vacuumed the tables."""
        return sum(self._delete_one(name) for name in (session, *others)) > 0

    def _delete_one(self, session: str) -> bool:
        return self._write(lambda queries: queries.delete(session))

    def search(self, words: str, /, *, session: str | None = None, limit: int = 5) -> list[Hit]:
        """Return the messages that match best; what an older Lowwater has indexed is indexed again first."""
        if not self._is_indexed:
            self._index_again()
        with self._reading() as queries:
            return queries.search(words, session, limit)

    def _index_again(self) -> None:
        with self._reading() as queries:
            left = queries.contents_to_index_again()
        if left > INDEXED_AT_ONCE:
            _log.info("%s: indexing %s messages for search", self._address, f"{left:,}")
        while left:
            self._write(lambda queries: queries.index_again(self._conceal, INDEXED_AT_ONCE))
            with self._reading() as queries:
                left = queries.contents_to_index_again()
        self._is_indexed = True

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()
