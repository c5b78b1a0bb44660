"""A session's own row, inside a transaction."""

import sqlite3

from msgspec import Struct

from lowwater.core.stored import About, Listed


class Session(Struct, frozen=True, kw_only=True):
    """What is known of a session without looking at what it is made of; one that is not there has the id 0."""

    name: str
    id: int = 0
    version: int = 0
    entries: int = 0
    messages: int = 0
    tokens: int = 0
    about: About = About()
    carried: object = None
    """Sealed; None if nothing was given."""


class ListedRow(Struct, frozen=True, kw_only=True):
    """A session as a list shows it, and its id."""

    id: int
    listed: Listed


_ABOUT = "title, source, parent, ended_at, ended_because"


def find(connection: sqlite3.Connection, name: str) -> Session:
    """Return the session of this name, or an empty one."""
    row = connection.execute(
        f"SELECT {_ABOUT}, id, version, entries, messages, tokens, "  # noqa: S608  # our own names
        "(SELECT body FROM carried WHERE session = id) FROM sessions WHERE name = ?",
        (name,),
    ).fetchone()
    if row is None:
        return Session(name=name)
    about, (id, version, entries, messages, tokens, carried) = _about(row[:5]), row[5:]
    return Session(
        name=name,
        id=id,
        version=version,
        entries=entries,
        messages=messages,
        tokens=tokens,
        about=about,
        carried=carried,
    )


def all_sessions(connection: sqlite3.Connection) -> list[ListedRow]:
    """Return all sessions, the one changed last first."""
    rows = connection.execute(
        f"SELECT {_ABOUT}, id, name, version, entries, messages, turns, compactions, model, "  # noqa: S608  # our own names
        "coalesce(opened_at, 0.0), coalesce(changed_at, 0.0) FROM sessions ORDER BY version DESC"
    )
    fields = Listed.__struct_fields__
    return [
        ListedRow(id=row[5], listed=Listed(about=_about(row[:5]), **dict(zip(fields, row[6:], strict=False))))
        for row in rows
    ]


def _about(row: tuple[str, str, str, float | None, str]) -> About:
    title, source, parent, ended_at, ended_because = row
    return About(title=title, source=source, parent=parent, ended_at=ended_at, ended_because=ended_because)
