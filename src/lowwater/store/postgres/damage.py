"""Which version a session can be read up to where something in it is damaged, inside a transaction."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from lowwater.store.postgres.schema import Connection
from lowwater.store.restoring import Hurt


@contextmanager
def naming(connection: Connection, session: str, id: int) -> Iterator[None]:
    """Turn damage into DamagedStore, with the session's name and the version before it."""
    try:
        yield
    except Hurt as hurt:
        raise hurt.reported(session, version_by(connection, id, hurt.version - 1)) from hurt


def version_by(connection: Connection, id: int, until: int) -> int:
    """Return the newest version of a session that is not after `until`, 0 if there is none."""
    row = connection.execute(
        "SELECT max(version) FROM appends WHERE session = %s AND version <= %s", (id, until)
    ).fetchone()
    return cast("int | None", row and row[0]) or 0
