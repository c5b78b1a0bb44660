"""The tables, and how older files become newer ones: numbered steps forward, never back.

A session is a row and a run of appends; an append has a version and says how many entries there were then. An entry says how many
messages, and how many tokens of them, came before it. Content is kept once for all sessions and `messages` says which session
has it under which number. `turns` and `compaction_events` have in columns what a person asks about, and whole what a program reads.
"""

import sqlite3

from lowwater.errors import NewerSchema, UnusableStore

APPLICATION = 0x4C57_5452
"""Tells the file from other programs' databases; the letters LWTR."""

_FIRST = (
    """CREATE TABLE sessions (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, version INTEGER NOT NULL DEFAULT 0,
        entries INTEGER NOT NULL DEFAULT 0, messages INTEGER NOT NULL DEFAULT 0, tokens INTEGER NOT NULL DEFAULT 0,
        turns INTEGER NOT NULL DEFAULT 0, compactions INTEGER NOT NULL DEFAULT 0, model TEXT NOT NULL DEFAULT '',
        opened_at REAL, changed_at REAL, title TEXT NOT NULL, source TEXT NOT NULL, parent TEXT NOT NULL,
        ended_at REAL, ended_because TEXT NOT NULL)""",
    # Rewritten seldom: beside the figures above, which change with every append, it would be rewritten with them.
    "CREATE TABLE carried (session INTEGER PRIMARY KEY, body BLOB NOT NULL)",
    # One row. What of the contents is not in the index has a higher id than `indexed`; versions are the appends' own by now.
    "CREATE TABLE counters (version INTEGER NOT NULL, indexed INTEGER NOT NULL)",
    "INSERT INTO counters (version, indexed) VALUES (0, 0)",
    """CREATE TABLE appends (
        session INTEGER NOT NULL, version INTEGER NOT NULL, entries INTEGER NOT NULL,
        PRIMARY KEY (session, version)) WITHOUT ROWID""",
    """CREATE TABLE entries (
        session INTEGER NOT NULL, position INTEGER NOT NULL, version INTEGER NOT NULL, at REAL NOT NULL,
        kind TEXT NOT NULL, messages INTEGER NOT NULL, tokens INTEGER NOT NULL, body BLOB NOT NULL,
        PRIMARY KEY (session, position)) WITHOUT ROWID""",
    """CREATE INDEX landmarks ON entries (session, position, kind, at, messages, tokens)
        WHERE kind <> 'appended'""",
    "CREATE TABLE contents (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, body BLOB NOT NULL)",
    """CREATE TABLE messages (
        session INTEGER NOT NULL, number INTEGER NOT NULL, content INTEGER NOT NULL, tokens INTEGER NOT NULL,
        PRIMARY KEY (session, number)) WITHOUT ROWID""",
    "CREATE INDEX messages_by_content ON messages (content)",
    """CREATE TABLE turns (
        session INTEGER NOT NULL, version INTEGER NOT NULL, at REAL NOT NULL, model TEXT NOT NULL,
        uncached INTEGER, cache_read INTEGER, cache_write INTEGER, cache_write_long INTEGER, output INTEGER,
        cost INTEGER, untouched INTEGER, removed INTEGER NOT NULL, decision TEXT NOT NULL, body BLOB NOT NULL,
        PRIMARY KEY (session, version)) WITHOUT ROWID""",
    """CREATE TABLE compaction_events (
        session INTEGER NOT NULL, version INTEGER NOT NULL, ordinal INTEGER NOT NULL, at REAL NOT NULL,
        kind TEXT NOT NULL, reason TEXT NOT NULL, model TEXT, mode TEXT, mechanisms TEXT, number INTEGER,
        tokens_before INTEGER NOT NULL, tokens_after INTEGER NOT NULL, reclaimed INTEGER NOT NULL, ratio REAL,
        items_before INTEGER, items_after INTEGER, first_changed INTEGER, disturbed INTEGER, summary_tokens INTEGER,
        summarizer TEXT, score REAL, seconds REAL, cost INTEGER, price INTEGER, saves INTEGER, payback REAL,
        rejected INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (session, version, ordinal)) WITHOUT ROWID""",
    # It keeps its own text: only so can a row be taken out again without knowing how its text was made.
    "CREATE VIRTUAL TABLE search USING fts5 (text, tokenize = 'unicode61 remove_diacritics 2')",
    f"PRAGMA application_id = {APPLICATION}",
)

_TRAILS = (
    # The lists that clients of a gateway keep, as digests; `newest` are those that a session was last seen with.
    """CREATE TABLE trails (
        tenant TEXT NOT NULL, key BLOB NOT NULL, session INTEGER NOT NULL, hint TEXT NOT NULL, newest INTEGER NOT NULL,
        PRIMARY KEY (tenant, key, session)) WITHOUT ROWID""",
    "CREATE INDEX trails_by_session ON trails (session, newest)",
    "CREATE TABLE secret (body BLOB NOT NULL)",
    "INSERT INTO secret (body) VALUES (randomblob(32))",
)

_VERSIONS = (
    # SQLite gives an append the number after the highest one. A counter beside it would be one more page of every commit.
    "ALTER TABLE appends RENAME TO old_appends",
    "CREATE TABLE appends (version INTEGER PRIMARY KEY, session INTEGER NOT NULL, entries INTEGER NOT NULL)",
    "INSERT INTO appends (version, session, entries) SELECT version, session, entries FROM old_appends ORDER BY version",
    # A version that was given once is not given again, even when all that had it is gone.
    "INSERT OR IGNORE INTO appends (version, session, entries) SELECT version, 0, 0 FROM counters WHERE version > 0",
    "DROP TABLE old_appends",
    "ALTER TABLE counters DROP COLUMN version",
)

_IN_LOG = (
    # Whether commits may be in the write-ahead log only: see `sqlite.connections`. Besides, a compaction may be told by what it
    # changed since the one before, which no older Lowwater can read.
    "ALTER TABLE counters ADD COLUMN in_log INTEGER NOT NULL DEFAULT 0",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (_FIRST, _TRAILS, _VERSIONS, _IN_LOG)
"""What leads from each schema to the next; the number of the schema is how many were carried out."""


def migrate(connection: sqlite3.Connection, path: object) -> None:
    """Bring the file up to this version's schema, or raise NewerSchema or UnusableStore and leave it as it is."""
    if _schema(connection, path) == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have done it while this one waited.
        for number in range(_schema(connection, path), len(MIGRATIONS)):
            for statement in MIGRATIONS[number]:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number + 1}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def refuse_newer(connection: sqlite3.Connection, path: object) -> None:
    """Raise NewerSchema if another process has brought the file beyond this version since it was opened."""
    (schema,) = connection.execute("PRAGMA user_version").fetchone()
    if schema > len(MIGRATIONS):
        raise NewerSchema(
            f"the store {path} has schema {schema} and this Lowwater knows {len(MIGRATIONS)}: use a newer Lowwater"
        )


def _schema(connection: sqlite3.Connection, path: object) -> int:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if tables and application != APPLICATION:
        raise UnusableStore(f"the store {path} is another program's database: choose another file")
    refuse_newer(connection, path)
    (schema,) = connection.execute("PRAGMA user_version").fetchone()
    return int(schema)
