"""Connections to one database: pooled, each used by one thread at a time, never carried into a forked process.

A server that is stopped, or a machine that hangs, keeps its connections open and says nothing on them, so that neither TCP nor
the server's own time-outs help. Whoever waits for an answer therefore asks, after a while of silence, whether the server still
takes connections; if it does not, the connection is closed and the caller is told. The server rolls back what was not committed.
"""

import logging
import os
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from lowwater.errors import UnusableStore
from lowwater.store.postgres.address import Address
from lowwater.store.postgres.failures import translated
from lowwater.store.postgres.schema import Connection, migrate, refuse_newer

MOST = 10
"""Connections of one process; threads beyond that wait for each other."""

PATIENCE = 60.0
"""Seconds to wait for another writer, or for a connection when all are in use."""

PROBE = 1.0
"""Seconds without a connection after which the server is asked whether it is there at all."""

ATTEMPTS = 10
"""How often a transaction is begun that the server gave up because it and another waited for each other."""

# All in one message. What is set holds for the transaction only, so that a server-side pool may stand between.
_BEGIN = """
BEGIN ISOLATION LEVEL {mode};
SET LOCAL search_path = {place};
SET LOCAL lock_timeout = '{patience:.0f}ms';
SET LOCAL idle_in_transaction_session_timeout = '{patience:.0f}ms';
SET LOCAL jit = off;
SELECT number FROM migrated
"""
_READING = "REPEATABLE READ READ ONLY"
_WRITING = "READ COMMITTED READ WRITE"

_SILENCE = logging.NullHandler()
"""What goes wrong reaches the caller as an error; without a handler the pool's warnings would land on the terminal."""

Answer = TypeVar("Answer")


class SilentServer(psycopg.OperationalError):
    """The server did not answer, and takes no new connections either."""


class Attentive(psycopg.Connection[tuple[object, ...]]):
    """A connection that does not wait for ever: what is not answered for `patience` seconds makes it look for the server."""

    patience: float = 10.0

    def wait(self, gen: Generator[Any, Any, Answer], *args: Any, **options: Any) -> Answer:  # noqa: ANN401 - as the driver has it
        """Wait for what the server answers, or raise SilentServer and close the connection."""
        try:
            return super().wait(self._watched(gen), *args, **options)
        except SilentServer:
            self.pgconn.finish()
            raise

    def _watched(self, gen: Generator[Any, Any, Answer]) -> Generator[Any, Any, Answer]:
        """Go on with what the driver does; it says `ready` is 0 several times a second while nothing comes."""
        heard = asked = time.monotonic()
        try:
            state = next(gen)
            while True:
                ready = yield state
                now = time.monotonic()
                if ready:
                    heard = asked = now
                elif now - heard > PATIENCE + self.patience:
                    raise SilentServer(f"the server did not answer for {now - heard:.0f} s")
                elif now - asked > self.patience:
                    self._look_for_server(now - heard)
                    asked = time.monotonic()
                state = gen.send(ready)
        except StopIteration as done:
            answer: Answer = done.value
            return answer

    def _look_for_server(self, silent: float) -> None:
        """Raise SilentServer unless somebody answers at the same address."""
        # The driver leaves the password out of what a connection tells of itself.
        info = make_conninfo(self.info.dsn, password=self.info.password or None)
        try:
            psycopg.connect(info, autocommit=True).close()
        except psycopg.OperationalError:
            raise SilentServer(
                f"the server did not answer for {silent:.0f} s and takes no connection: it is stopped or cannot be reached"
            ) from None


_Pool = ConnectionPool[Attentive]


class Connections:
    """Carries out work in transactions; what fails inside one is rolled back."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._is_closed = False
        self._pools: dict[int, _Pool] = {}
        """By process: what a forked process inherits it neither uses nor closes."""
        logging.getLogger("psycopg.pool").addHandler(_SILENCE)
        with translated(address), self._direct() as connection:
            place = sql.Identifier(migrate(connection, address)).as_string(connection)
        begins = (
            _BEGIN.format(mode=mode, place=place, patience=PATIENCE * 1000) for mode in (_READING, _WRITING)
        )
        self._begin_reading, self._begin_writing = (begin.encode() for begin in begins)

    def reading(self, work: Callable[[Connection], Answer]) -> Answer:
        """Read one consistent state, whatever others write meanwhile."""
        with translated(self._address), self._transaction(self._begin_reading) as connection:
            return work(connection)

    def writing(self, work: Callable[[Connection], Answer]) -> Answer:
        """Write all or nothing; work that got into a deadlock with another's is begun again."""
        for _ in range(ATTEMPTS):
            try:
                with translated(self._address), self._transaction(self._begin_writing) as connection:
                    return work(connection)
            except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure):
                continue
        raise UnusableStore(f"too many write the same to the store {self._address} at once: try again")

    def close(self) -> None:
        """Close what is idle now, and what is in use when it comes back."""
        self._is_closed = True
        own = self._pools.pop(os.getpid(), None)
        if own is not None:
            own.close()

    @contextmanager
    def _transaction(self, begin: bytes) -> Iterator[Connection]:
        pool = self._own_pool()
        connection = self._begun(pool, begin)
        try:
            yield connection
            self._commit(connection)
        except BaseException:
            _roll_back(connection)
            raise
        finally:
            pool.putconn(connection)

    def _begun(self, pool: _Pool, begin: bytes) -> Attentive:
        """Return a connection with a transaction begun; those that broke while they were idle are put away."""
        for _ in range(MOST):
            connection = self._taken(pool)
            try:
                self._begin(connection, begin)
            except BaseException as error:
                _roll_back(connection)
                pool.putconn(connection)
                is_broken = isinstance(error, psycopg.OperationalError) and connection.closed
                if not is_broken or isinstance(error, SilentServer):
                    raise
            else:
                return connection
        raise UnusableStore(
            f"the store {self._address} cannot be used (the server ends every connection): look into its log"
        )

    def _begin(self, connection: Connection, begin: bytes) -> None:
        cursor = connection.execute(begin, prepare=False)
        row = cursor.set_result(-1).fetchone()
        refuse_newer(cast("int", row[0]) if row else 0, self._address)

    def _commit(self, connection: Connection) -> None:
        try:
            connection.execute("COMMIT")
        except psycopg.OperationalError:
            if not connection.closed:
                raise
            raise UnusableStore(
                f"the connection to the store {self._address} broke in the last moment: read the session again to see what was kept"
            ) from None

    def _taken(self, pool: _Pool) -> Attentive:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                return pool.getconn(timeout=PROBE)
            except PoolClosed:
                raise self._closed() from None
            except PoolTimeout:
                # The pool does not say why it has none; if the server is gone, this does.
                self._direct().close()
        raise UnusableStore(
            f"all {MOST} connections to the store {self._address} were in use for {PATIENCE:.0f} s: use fewer threads"
        )

    def _own_pool(self) -> _Pool:
        if self._is_closed:
            raise self._closed()
        pool = self._pools.get(os.getpid())
        if pool is None:
            new = self._opened()
            pool = self._pools.setdefault(os.getpid(), new)
            if pool is not new:
                new.close()
        return pool

    def _closed(self) -> UnusableStore:
        return UnusableStore(f"the store {self._address} was closed: open it again")

    def _opened(self) -> _Pool:
        return ConnectionPool(
            self._address.conninfo,
            connection_class=Attentive,
            kwargs={"autocommit": True},
            configure=self._configure,
            min_size=0,
            max_size=MOST,
            num_workers=1,
            reconnect_timeout=PROBE,
            open=True,
        )

    def _configure(self, connection: Attentive) -> None:
        connection.patience = self._address.patience

    def _direct(self) -> Connection:
        return psycopg.connect(self._address.conninfo, autocommit=True)


def _roll_back(connection: Connection) -> None:
    """Undo what was done; where even that fails the connection is closed, and the server undoes it."""
    try:
        if not connection.closed:
            connection.execute("ROLLBACK")
    except psycopg.Error:
        connection.close()
