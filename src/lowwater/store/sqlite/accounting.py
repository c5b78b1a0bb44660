"""What sessions did and cost, inside a transaction."""

import sqlite3
from collections.abc import Sequence

from lowwater.core.stored import Account, Listed, turns_before
from lowwater.store.restoring import restore_event, restore_record
from lowwater.store.sqlite.reading import naming
from lowwater.store.sqlite.rows import ListedRow, Session, all_sessions


def sessions(connection: sqlite3.Connection) -> list[Listed]:
    """Return all sessions, the one changed last first."""
    return [row.listed for row in all_sessions(connection)]


def accounts(connection: sqlite3.Connection, names: Sequence[str] | None) -> list[Account]:
    """Return the accounts of these sessions or of all, the one changed last first, or raise DamagedStore."""
    wanted = None if names is None else set(names)
    return [
        _account(connection, row)
        for row in all_sessions(connection)
        if wanted is None or row.listed.name in wanted
    ]


def _account(connection: sqlite3.Connection, row: ListedRow) -> Account:
    turns = connection.execute(
        "SELECT version, body FROM turns WHERE session = ? ORDER BY version", (row.id,)
    ).fetchall()
    events = connection.execute(
        "SELECT version, body FROM compaction_events WHERE session = ? ORDER BY version, ordinal", (row.id,)
    ).fetchall()
    with naming(connection, Session(name=row.listed.name, id=row.id)):
        return Account(
            session=row.listed,
            records=tuple(restore_record(version, body) for version, body in turns),
            events=tuple(restore_event(version, body) for version, body in events),
            turns_before=turns_before([version for version, _ in turns], [version for version, _ in events]),
        )
