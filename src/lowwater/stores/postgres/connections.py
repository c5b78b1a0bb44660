"""One PostgreSQL database: its address, its tables and migrations, pooled transactions, and its errors as ours."""

import logging
import os
import re
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from lowwater.errors import BadInput, BadSetting, DamagedStore, NewerSchema, StoreFailed, UnusableStore

Connection = psycopg.Connection[tuple[object, ...]]
QueryResult = TypeVar("QueryResult")


# The address

_DEFAULTS = {
    "application_name": "lowwater",
    "connect_timeout": "10",
    "client_encoding": "UTF8",
    # A dead machine, or a firewall that dropped the connection, is noticed within a minute even by an idle reader.
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
_FOREVER = 1e9
"""Seconds, for a connect_timeout of 0, which means no limit in libpq."""
# With an unescaped @ or / in a password, the driver would take a part of it for a host name, and show it in errors.
_SHAPE = re.compile(r"postgres(ql)?://([^@/?#]*@)?[^@/?#]*(/[^@/?#]*)?(\?[^@#]*)?")


class Address:
    """The address of a database; printed without the password, so that messages can show it."""

    def __init__(self, address: str) -> None:
        """Read `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`, or raise BadSetting without repeating any of it."""
        given = _given(address)
        options = str(given.get("options", ""))
        self.has_schema = "search_path" in options
        self.conninfo = make_conninfo(address, **{**_DEFAULTS, **given})
        self.patience = float(given.get("connect_timeout") or _DEFAULTS["connect_timeout"]) or _FOREVER
        """Seconds without an answer after which the server is probed."""
        self._password = str(given.get("password", ""))
        user = f"{given['user']}@" if "user" in given else ""
        port = f":{given['port']}" if "port" in given else ""
        self._shown = f"postgresql://{user}{given.get('host', '')}{port}/{given.get('dbname', '')}"

    def __repr__(self) -> str:
        return self._shown

    def without_password(self, text: str) -> str:
        """Return the text with the password, if it occurs in it, replaced by `…`."""
        return text.replace(self._password, "…") if self._password else text


def _given(address: str) -> dict[str, str]:
    try:
        if _SHAPE.fullmatch(address):
            return {name: str(value) for name, value in conninfo_to_dict(address).items()}
    except psycopg.ProgrammingError:
        pass
    raise BadSetting(
        "the address of the PostgreSQL store cannot be read: write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, "
        "and escape special characters of a password (@ as %40)"
    )


# Transactions on pooled connections

MOST_CONNECTIONS = 10
"""Connections of one process; further threads wait for one."""
PATIENCE = 60.0
"""Seconds to wait for another writer, or for a connection when all are in use."""
PROBE = 1.0
"""Seconds without a free connection after which the server itself is probed."""
ATTEMPTS = 10
"""How often a transaction is tried that the server aborts because of a deadlock."""
# One message. Settings are LOCAL to the transaction, so that a transaction pooler such as PgBouncer may be used.
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
"""Without a handler the pool's warnings would be printed on the terminal; the caller gets them as errors anyway."""


class SilentServer(psycopg.OperationalError):
    """The server does not answer, and accepts no new connection either."""


class WatchedConnection(psycopg.Connection[tuple[object, ...]]):
    """A connection that does not wait for ever: after `patience` seconds without an answer it probes the server."""

    patience: float = 10.0

    def wait(self, gen: Generator[Any, Any, QueryResult], *args: Any, **options: Any) -> QueryResult:  # noqa: ANN401 - as the driver has it
        """Wait for the server's answer, or close the connection and raise SilentServer."""
        try:
            return super().wait(self._watched(gen), *args, **options)
        except SilentServer:
            self.pgconn.finish()
            raise

    def _watched(self, gen: Generator[Any, Any, QueryResult]) -> Generator[Any, Any, QueryResult]:
        """Run the driver's generator and watch the time; while nothing arrives, it is sent `ready=0` several times a second."""
        answered_at = probed_at = time.monotonic()
        try:
            state = next(gen)
            while True:
                ready = yield state
                now = time.monotonic()
                if ready:
                    answered_at = probed_at = now
                elif now - answered_at > PATIENCE + self.patience:
                    raise SilentServer(f"the server did not answer for {now - answered_at:.0f} s")
                elif now - probed_at > self.patience:
                    self._probe_server(now - answered_at)
                    probed_at = time.monotonic()
                state = gen.send(ready)
        except StopIteration as done:
            answer: QueryResult = done.value
            return answer

    def _probe_server(self, silent: float) -> None:
        """Raise SilentServer unless the server accepts a new connection."""
        # `info.dsn` is without the password.
        info = make_conninfo(self.info.dsn, password=self.info.password or None)
        try:
            psycopg.connect(info, autocommit=True).close()
        except psycopg.OperationalError:
            raise SilentServer(
                f"the server did not answer for {silent:.0f} s and accepts no connection: it is stopped or cannot be reached"
            ) from None


_Pool = ConnectionPool[WatchedConnection]


class PostgresConnections:
    """Runs work in transactions, from any thread; what fails inside one is rolled back."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._is_closed = False
        self._pools: dict[int, _Pool] = {}
        """By process id: a forked process neither uses nor closes its parent's connections."""
        logging.getLogger("psycopg.pool").addHandler(_SILENCE)
        with translated(address), self._direct() as connection:
            place = sql.Identifier(migrate(connection, address)).as_string(connection)
        begins = (
            _BEGIN.format(mode=mode, place=place, patience=PATIENCE * 1000) for mode in (_READING, _WRITING)
        )
        self._begin_reading, self._begin_writing = (begin.encode() for begin in begins)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a transaction that sees one consistent state, whatever others write meanwhile."""
        with translated(self._address), self._transaction(self._begin_reading) as connection:
            yield connection

    def writing(self, work: Callable[[Connection], QueryResult]) -> QueryResult:
        """Run `work` in a transaction that writes all or nothing; after a deadlock it is run again."""
        for _ in range(ATTEMPTS):
            try:
                with translated(self._address), self._transaction(self._begin_writing) as connection:
                    return work(connection)
            except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure):
                continue
        raise UnusableStore(f"too many processes write to the store {self._address} at once: try again")

    def close(self) -> None:
        """Close the idle connections now, and those in use when they are given back."""
        self._is_closed = True
        own = self._pools.pop(os.getpid(), None)
        if own is not None:
            own.close()

    @contextmanager
    def _transaction(self, begin: bytes) -> Iterator[Connection]:
        pool = self._own_pool()
        connection = self._take_begun(pool, begin)
        try:
            yield connection
            self._commit(connection)
        except BaseException:
            _roll_back(connection)
            raise
        finally:
            pool.putconn(connection)

    def _take_begun(self, pool: _Pool, begin: bytes) -> WatchedConnection:
        """Return a connection in a new transaction; connections that broke while idle are discarded."""
        for _ in range(MOST_CONNECTIONS):
            connection = self._take(pool)
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
            f"the store {self._address} cannot be used (the server ends every connection): look at its log"
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
                f"the connection to the store {self._address} broke during a commit: read the session again to see whether it was stored"
            ) from None

    def _take(self, pool: _Pool) -> WatchedConnection:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                return pool.getconn(timeout=PROBE)
            except PoolClosed:
                raise self._closed() from None
            except PoolTimeout:
                # The pool does not say why it has none. If the server is gone, connecting directly raises the reason.
                self._direct().close()
        raise UnusableStore(
            f"all {MOST_CONNECTIONS} connections to the store {self._address} were in use for {PATIENCE:.0f} s: use fewer threads"
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
            connection_class=WatchedConnection,
            kwargs={"autocommit": True},
            configure=self._configure,
            min_size=0,
            max_size=MOST_CONNECTIONS,
            num_workers=1,
            reconnect_timeout=PROBE,
            open=True,
        )

    def _configure(self, connection: WatchedConnection) -> None:
        connection.patience = self._address.patience

    def _direct(self) -> Connection:
        return psycopg.connect(self._address.conninfo, autocommit=True)


def _roll_back(connection: Connection) -> None:
    """Roll back; if even that fails, close the connection, and the server rolls back."""
    try:
        if not connection.closed:
            connection.execute("ROLLBACK")
    except psycopg.Error:
        connection.close()


# Errors

_SERVER = "check that the server runs and can be reached, then try again"
_ADDRESS = "check user, password and database in its address, and whether the server accepts connections"
_REFUSED = "FATAL:  "
"""What precedes the reason when a server refuses a connection; the driver gives no error code for that."""
_ADVICE = {
    "08": _SERVER,
    "25006": "this server is read-only; use the address of the primary",
    "25P03": "this process was suspended in the middle of a transaction; try again",
    "3F000": "its tables are gone; open it again",
    "42501": "give the user the right to create and use tables there",
    "42P01": "its tables are gone; open it again",
    "53100": "make room on the server's disk",
    "53": "the server is out of resources; raise its limits, or use fewer processes",
    "55P03": "another process holds the session for too long; end that process",
    "57": _SERVER,
    "58": "check the server's disk",
}
"""By the SQLSTATE of an error, or by its class: the first two characters."""
_DAMAGED = ("XX001", "XX002")


@contextmanager
def translated(address: Address) -> Iterator[None]:
    """Turn failures of the server into UnusableStore and DamagedStore; other errors are bugs and pass through."""
    try:
        yield
    except psycopg.Error as error:
        raise _as_ours(address, error) or error from None
    except UnicodeEncodeError as error:
        raise BadInput(
            f"a name with half a character (a lone surrogate) cannot be stored: {error.reason}"
        ) from None


def _as_ours(address: Address, error: psycopg.Error) -> StoreFailed | None:
    """Return the error to raise instead, without the password; None if it is a bug."""
    said = address.without_password(error.diag.message_primary or str(error).partition("\n")[0])
    if error.sqlstate in _DAMAGED:
        return DamagedStore(
            f"the store {address} is damaged ({said}): restore a copy, or choose another place"
        )
    advice = _advice(error, said)
    _, _, reason = said.rpartition(_REFUSED)
    return UnusableStore(f"the store {address} cannot be used ({reason}): {advice}") if advice else None


def _advice(error: psycopg.Error, said: str) -> str | None:
    if error.sqlstate is not None:
        return _ADVICE.get(error.sqlstate) or _ADVICE.get(error.sqlstate[:2])
    if not isinstance(error, psycopg.OperationalError):
        return None
    return _ADDRESS if _REFUSED in said else _SERVER


# Tables and migrations

SCHEMA = "lowwater"
"""The schema of the tables unless the address names another."""
LOCK = 0x4C57_5452
"""The advisory lock that a migration holds: the letters LWTR."""
_FIRST = (
    "CREATE TABLE migrated (number integer NOT NULL)",
    "INSERT INTO migrated VALUES (0)",
    # A version is never given twice, even after everything that had it was deleted.
    "CREATE SEQUENCE versions",
    """CREATE TABLE sessions (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key bytea NOT NULL UNIQUE, name text NOT NULL,
        version bigint NOT NULL DEFAULT 0, entries bigint NOT NULL DEFAULT 0, messages bigint NOT NULL DEFAULT 0,
        tokens bigint NOT NULL DEFAULT 0, turns bigint NOT NULL DEFAULT 0, compactions bigint NOT NULL DEFAULT 0,
        model text NOT NULL DEFAULT '', opened_at double precision, changed_at double precision, title text NOT NULL,
        source text NOT NULL, parent text NOT NULL, ended_at double precision, ended_because text NOT NULL,
        carried bytea)""",
    """CREATE TABLE appends (
        session bigint NOT NULL, version bigint NOT NULL, entries bigint NOT NULL, PRIMARY KEY (session, version))""",
    """CREATE TABLE entries (
        session bigint NOT NULL, position bigint NOT NULL, version bigint NOT NULL, at double precision NOT NULL,
        kind text NOT NULL, messages bigint NOT NULL, tokens bigint NOT NULL, body bytea NOT NULL,
        PRIMARY KEY (session, position))""",
    """CREATE INDEX landmarks ON entries (session, position) INCLUDE (kind, at, messages, tokens)
        WHERE kind <> 'appended'""",
    """CREATE TABLE contents (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key bytea NOT NULL UNIQUE, body bytea NOT NULL)""",
    """CREATE TABLE messages (
        session bigint NOT NULL, number bigint NOT NULL, content bigint NOT NULL, tokens bigint NOT NULL,
        PRIMARY KEY (session, number))""",
    "CREATE INDEX messages_by_content ON messages (content)",
    """CREATE TABLE turns (
        session bigint NOT NULL, version bigint NOT NULL, at double precision NOT NULL, model text NOT NULL,
        uncached bigint, cache_read bigint, cache_write bigint, cache_write_long bigint, output bigint,
        cost bigint, untouched bigint, removed bigint NOT NULL, decision text NOT NULL, body bytea NOT NULL,
        PRIMARY KEY (session, version))""",
    """CREATE TABLE compaction_events (
        session bigint NOT NULL, version bigint NOT NULL, ordinal integer NOT NULL, at double precision NOT NULL,
        kind text NOT NULL, reason text NOT NULL, model text, mode text, mechanisms text, number bigint,
        tokens_before bigint NOT NULL, tokens_after bigint NOT NULL, reclaimed bigint NOT NULL,
        ratio double precision, items_before bigint, items_after bigint, first_changed bigint, disturbed bigint,
        summary_tokens bigint, summarizer text, score double precision, seconds double precision, cost bigint,
        price bigint, saves bigint, payback double precision, rejected bigint NOT NULL, body bytea NOT NULL,
        PRIMARY KEY (session, version, ordinal))""",
    # A long text has several parts, because a tsvector takes at most 1 MB.
    """CREATE TABLE search (
        content bigint NOT NULL, part integer NOT NULL, terms tsvector NOT NULL, PRIMARY KEY (content, part))""",
    "CREATE INDEX search_by_terms ON search USING gin (terms)",
)
_TRAILS = (
    # Fingerprints: digests of the message lists that a gateway's clients keep. `newest` are those a session was last seen with.
    """CREATE TABLE trails (
        tenant text NOT NULL, key bytea NOT NULL, session bigint NOT NULL, hint text NOT NULL, newest boolean NOT NULL,
        PRIMARY KEY (tenant, key, session))""",
    "CREATE INDEX trails_by_session ON trails (session, newest)",
    "CREATE TABLE secret (body bytea NOT NULL)",
    "INSERT INTO secret (body) VALUES (uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))",
)
_CHANGES = (
    # From this schema on, a compaction may be stored as its difference from the one before, which older versions cannot read.
    "COMMENT ON TABLE entries IS 'body: a digest, and the entry in msgpack'",
)
_RECALL: tuple[str, ...] = ()
"""From this schema on, turn records say how recall was used, which older versions of Lowwater cannot read."""
_PARTS = (
    # From this schema on, the parts of names in camel case are in the index, too. One row: contents with an id above `done` and
    # up to `upto` have to be indexed again, which the next search does.
    "CREATE TABLE reindexed (done bigint NOT NULL, upto bigint NOT NULL)",
    "INSERT INTO reindexed (done, upto) SELECT 0, coalesce(max(id), 0) FROM contents",
)
MIGRATIONS: tuple[tuple[str, ...], ...] = (_FIRST, _TRAILS, _CHANGES, _RECALL, _PARTS)
"""The statements from each schema to the next; a schema's number is how many of these were carried out."""


def migrate(connection: Connection, address: Address) -> str:
    """Create or migrate the tables, and return the schema they are in.

    Raises NewerSchema or UnusableStore if that is impossible, and changes nothing then.
    """
    _refuse_encoding(connection, address)
    place = _place(connection, address)
    if _number(connection, address, place) < len(MIGRATIONS):
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            _step(connection, address, place)
    return place


def refuse_newer(schema: int, address: Address) -> None:
    """Raise NewerSchema if a newer Lowwater has migrated the tables."""
    if schema > len(MIGRATIONS):
        raise NewerSchema(
            f"the store {address} has schema {schema} and this Lowwater knows {len(MIGRATIONS)}: use a newer Lowwater"
        )


def _place(connection: Connection, address: Address) -> str:
    """Return the schema that the address names, or the default."""
    if not address.has_schema:
        return SCHEMA
    row = connection.execute("SHOW search_path").fetchone()
    return str(row[0] if row else "").split(",")[0].strip().strip('"')


def _step(connection: Connection, address: Address, place: str) -> None:
    """Carry out the migrations that no other process has done while this one waited for the lock."""
    done = _number(connection, address, place)
    if not connection.execute("SELECT FROM pg_namespace WHERE nspname = %s", (place,)).fetchall():
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(place)))
    connection.execute(sql.SQL("SET LOCAL search_path = {}").format(sql.Identifier(place)))
    if done:
        # Wait for the transactions that are under way: each has read this table.
        connection.execute("LOCK TABLE migrated IN ACCESS EXCLUSIVE MODE")
    try:
        for number in range(done, len(MIGRATIONS)):
            for statement in MIGRATIONS[number]:
                connection.execute(statement.encode())
            connection.execute("UPDATE migrated SET number = %s", (number + 1,))
    except psycopg.errors.DuplicateTable as error:
        raise UnusableStore(
            f"the store {address} has another program's tables ({error.diag.message_primary}): choose another schema or database"
        ) from None


def _number(connection: Connection, address: Address, place: str) -> int:
    """Return how many migrations were carried out.

    The catalogue is queried, and not `to_regclass`, which caches that there was no such table.
    """
    has_any = "SELECT FROM pg_tables WHERE schemaname = %s AND tablename = 'migrated'"
    if not connection.execute(has_any, (place,)).fetchall():
        return 0
    number_of = sql.SQL("SELECT number FROM {}").format(sql.Identifier(place, "migrated"))
    row = connection.execute(number_of).fetchone()
    number = cast("int", row[0]) if row else 0
    refuse_newer(number, address)
    return number


def _refuse_encoding(connection: Connection, address: Address) -> None:
    row = connection.execute("SHOW server_encoding").fetchone()
    if row != ("UTF8",):
        raise UnusableStore(
            f"the store {address} has the encoding {row[0] if row else ''}: create a database with the encoding UTF8"
        )
