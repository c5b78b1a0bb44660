"""Content that all sessions share: kept once, gone with the last session that holds it.

Whoever relies on content locks its row against deletion until the messages that name it are committed; whoever deletes first
locks the rows for itself, and looks for such messages only then. So neither can miss the other. Both lock in the order of keys.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import cast

from lowwater.store.packing import Content
from lowwater.store.postgres.schema import Connection
from lowwater.store.postgres.words import rows_of

AT_ONCE = 500
"""Messages written in one statement."""


def keep_contents(
    connection: Connection, contents: Iterable[Content], words: Callable[[Content], str]
) -> dict[bytes, int]:
    """Return where each content is, by its key; what is new is written and indexed, what is known stays as it is."""
    wanted = {content.key: content for content in contents}
    keys = sorted(wanted)
    ids: dict[bytes, int] = {}
    for start in range(0, len(keys), AT_ONCE):
        missing = keys[start : start + AT_ONCE]
        while missing:
            ids |= _locked(connection, missing)
            new = _inserted(connection, [wanted[key] for key in missing if key not in ids])
            _index(connection, {id: words(wanted[key]) for key, id in new.items()})
            ids |= new
            # What another process wrote or deleted between the two.
            missing = [key for key in missing if key not in ids]
    return ids


def lock_contents(connection: Connection, session: int) -> list[int]:
    """Return where the content of a session is, locked for deletion."""
    rows = connection.execute(
        "SELECT id FROM contents WHERE id IN (SELECT content FROM messages WHERE session = %s) ORDER BY key FOR UPDATE",
        (session,),
    )
    return [cast("int", id) for (id,) in rows]


def delete_orphans(connection: Connection, locked: Sequence[int]) -> None:
    """Delete those of the locked contents that no session holds any more."""
    connection.execute(
        "WITH orphans AS (DELETE FROM contents WHERE id = ANY(%s::bigint[]) "
        "AND NOT EXISTS (SELECT FROM messages WHERE content = contents.id) RETURNING id) "
        "DELETE FROM search USING orphans WHERE content = orphans.id",
        (list(locked),),
    )


def _locked(connection: Connection, keys: Sequence[bytes]) -> dict[bytes, int]:
    rows = connection.execute(
        "SELECT key, id FROM contents WHERE key = ANY(%s::bytea[]) ORDER BY key FOR KEY SHARE", (list(keys),)
    )
    return dict(cast("Iterable[tuple[bytes, int]]", rows))


def _inserted(connection: Connection, contents: Sequence[Content]) -> dict[bytes, int]:
    if not contents:
        return {}
    rows = connection.execute(
        "INSERT INTO contents (key, body) SELECT * FROM unnest(%s::bytea[], %s::bytea[]) "
        "ON CONFLICT (key) DO NOTHING RETURNING key, id",
        ([content.key for content in contents], [content.body for content in contents]),
    )
    return dict(cast("Iterable[tuple[bytes, int]]", rows))


def _index(connection: Connection, words: dict[int, str]) -> None:
    rows = [(id, part, terms) for id, text in words.items() for part, terms in enumerate(rows_of(text))]
    for start in range(0, len(rows), AT_ONCE):
        contents, parts, terms = zip(*rows[start : start + AT_ONCE], strict=True)
        connection.execute(
            "INSERT INTO search (content, part, terms) SELECT content, part, terms::tsvector "
            "FROM unnest(%s::bigint[], %s::integer[], %s::text[]) AS new (content, part, terms)",
            (list(contents), list(parts), list(terms)),
        )
