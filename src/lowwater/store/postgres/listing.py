"""What sessions are there, and what they did and cost, inside a transaction."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar, cast

from lowwater.core.stored import About, Account, Listed, turns_before
from lowwater.store.postgres.damage import naming
from lowwater.store.postgres.schema import Connection
from lowwater.store.postgres.texts import key_of, told
from lowwater.store.restoring import restore_event, restore_record

ABOUT = "title, source, parent, ended_because, ended_at"
"""The columns of what is told of a session."""

Restored = TypeVar("Restored")


def about(row: Sequence[object]) -> About:
    """Return what is told of a session, from its columns."""
    title, source, parent, because, ended_at = row
    return About(
        title=told(title),
        source=told(source),
        parent=told(parent),
        ended_because=told(because),
        ended_at=cast("float | None", ended_at),
    )


def sessions(connection: Connection) -> list[Listed]:
    """Return all sessions, the one changed last first."""
    return list(_listed(connection, None).values())


def accounts(connection: Connection, names: Sequence[str] | None) -> list[Account]:
    """Return the accounts of these sessions or of all, or raise DamagedStore."""
    listed = _listed(connection, None if names is None else [key_of(name) for name in names])
    ids = list(listed)
    bodies = (
        "SELECT session, version, body FROM {} WHERE session = ANY(%s::bigint[]) ORDER BY session, version"
    )
    records = _grouped(connection.execute(bodies.format("turns").encode(), (ids,), binary=True))
    events = _grouped(
        connection.execute(f"{bodies.format('compaction_events')}, ordinal".encode(), (ids,), binary=True)
    )
    found = []
    for id, session in listed.items():
        with naming(connection, session.name, id):
            found.append(
                Account(
                    session=session,
                    records=_restored(records[id], restore_record),
                    events=_restored(events[id], restore_event),
                    turns_before=turns_before(_versions(records[id]), _versions(events[id])),
                )
            )
    return found


def _listed(connection: Connection, keys: Sequence[bytes] | None) -> dict[int, Listed]:
    rows = connection.execute(
        "SELECT id, name, version, entries, messages, turns, compactions, model, coalesce(opened_at, 0), "  # noqa: S608 - our own names
        f"coalesce(changed_at, 0), {ABOUT} FROM sessions "
        "WHERE %(keys)s::bytea[] IS NULL OR key = ANY(%(keys)s::bytea[]) ORDER BY version DESC".encode(),
        {"keys": None if keys is None else list(keys)},
    )
    return {cast("int", row[0]): _one(row) for row in rows}


def _one(row: Sequence[object]) -> Listed:
    version, entries, messages, turns, compactions = cast("tuple[int, int, int, int, int]", row[2:7])
    opened_at, changed_at = cast("tuple[float, float]", row[8:10])
    return Listed(
        name=told(row[1]),
        version=version,
        entries=entries,
        messages=messages,
        turns=turns,
        compactions=compactions,
        model=told(row[7]),
        opened_at=opened_at,
        changed_at=changed_at,
        about=about(row[10:]),
    )


_Bodies = list[tuple[int, object]]


def _grouped(rows: Iterable[Sequence[object]]) -> dict[int, _Bodies]:
    """Return versions and bodies by session."""
    grouped: dict[int, _Bodies] = defaultdict(list)
    for session, version, body in rows:
        grouped[cast("int", session)].append((cast("int", version), body))
    return grouped


def _versions(bodies: _Bodies) -> list[int]:
    return [version for version, _ in bodies]


def _restored(bodies: _Bodies, restore: Callable[[int, object], Restored]) -> tuple[Restored, ...]:
    return tuple(restore(version, body) for version, body in bodies)
