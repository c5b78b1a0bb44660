"""The tables, and how older ones become newer ones: numbered steps forward, never back.

A session is a row, found by a digest of its name, and a run of appends; an append has a version and says how many entries there
were then. An entry says how many messages, and how many tokens of them, came before it. Content is kept once for all sessions and
`messages` says which session has it under which number. `turns` and `compaction_events` have in columns what a person asks about,
and whole what a program reads.
"""

from typing import cast

import psycopg
from psycopg import sql

from lowwater.errors import NewerSchema, UnusableStore
from lowwater.store.postgres.address import SCHEMA, Address

Connection = psycopg.Connection[tuple[object, ...]]

LOCK = 0x4C57_5452
"""The advisory lock of whoever changes tables; the letters LWTR."""

_FIRST = (
    "CREATE TABLE migrated (number integer NOT NULL)",
    "INSERT INTO migrated VALUES (0)",
    # A number that was given once is not given again, even when all that had it is gone.
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
    # A long text has several parts, for a row takes 1 MB of terms only.
    """CREATE TABLE search (
        content bigint NOT NULL, part integer NOT NULL, terms tsvector NOT NULL, PRIMARY KEY (content, part))""",
    "CREATE INDEX search_by_terms ON search USING gin (terms)",
)

_TRAILS = (
    # The lists that clients of a gateway keep, as digests; `newest` are those that a session was last seen with.
    """CREATE TABLE trails (
        tenant text NOT NULL, key bytea NOT NULL, session bigint NOT NULL, hint text NOT NULL, newest boolean NOT NULL,
        PRIMARY KEY (tenant, key, session))""",
    "CREATE INDEX trails_by_session ON trails (session, newest)",
    "CREATE TABLE secret (body bytea NOT NULL)",
    "INSERT INTO secret (body) VALUES (uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))",
)

_CHANGES = (
    # A compaction may be told by what it changed since the one before, which no older Lowwater can read.
    "COMMENT ON TABLE entries IS 'body: a digest, and the entry in msgpack'",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (_FIRST, _TRAILS, _CHANGES)
"""What leads from each schema to the next; the number of the schema is how many were carried out."""


def migrate(connection: Connection, address: Address) -> str:
    """Make the tables or bring them up to this version and return the schema they are in.

    Raise NewerSchema or UnusableStore where that cannot be done, and leave them as they are.
    """
    _refuse_encoding(connection, address)
    place = _place(connection, address)
    if _number(connection, address, place) < len(MIGRATIONS):
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            _step(connection, address, place)
    return place


def refuse_newer(schema: int, address: Address) -> None:
    """Raise NewerSchema if another process has brought the tables beyond this version."""
    if schema > len(MIGRATIONS):
        raise NewerSchema(
            f"the store {address} has schema {schema} and this Lowwater knows {len(MIGRATIONS)}: use a newer Lowwater"
        )


def _place(connection: Connection, address: Address) -> str:
    """Return the schema that the address names, or ours."""
    if not address.has_schema:
        return SCHEMA
    row = connection.execute("SHOW search_path").fetchone()
    return str(row[0] if row else "").split(",")[0].strip().strip('"')


def _step(connection: Connection, address: Address, place: str) -> None:
    """Carry out what another process has not done while this one waited."""
    done = _number(connection, address, place)
    if not connection.execute("SELECT FROM pg_namespace WHERE nspname = %s", (place,)).fetchall():
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(place)))
    connection.execute(sql.SQL("SET LOCAL search_path = {}").format(sql.Identifier(place)))
    if done:
        # Those who are writing finish first.
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

    The catalogue is asked, and not `to_regclass`: that remembers that there was no such table.
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
            f"the store {address} has the encoding {row[0] if row else ''}: make a database with the encoding UTF8"
        )
