"""Everything that is read and written inside a transaction."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar, cast

from msgspec import MsgspecError, Struct
from msgspec.structs import asdict
from psycopg.errors import UndefinedColumn, UndefinedTable

from lowwater.core.entries import Compacted, Entry
from lowwater.core.ledger import Numbered
from lowwater.core.stored import (
    About,
    Account,
    Append,
    Fingerprint,
    FingerprintMatch,
    Hit,
    Landmark,
    Listed,
    Outline,
    Stored,
    turns_before,
)
from lowwater.errors import BadInput, StaleLedger
from lowwater.stores.packing import (
    Broken,
    Content,
    Packed,
    digest,
    pack,
    pack_event,
    pack_record,
    pack_since,
    seal,
)
from lowwater.stores.postgres.connections import Connection
from lowwater.stores.shared import (
    EVENT_COLUMNS,
    TURN_COLUMNS,
    Conceal,
    Growth,
    Held,
    Hurt,
    Row,
    UnwritableAccounts,
    Value,
    base_at,
    event_values,
    folded_terms,
    growth_of,
    landmark,
    phrases_in,
    restore_carried,
    restore_entries,
    restore_event,
    restore_messages,
    restore_record,
    turn_values,
    words_of,
)

_ESCAPED = re.compile(r"\\([\\0])")


def stored(text: str) -> str:
    r"""Return the text with `\0` for a zero and two backslashes for one."""
    return text.replace("\\", "\\\\").replace("\x00", "\\0")


def told(text: object) -> str:
    """Return the text that was stored."""
    return _ESCAPED.sub(lambda found: "\x00" if found[1] == "0" else "\\", str(text))


def key_of(name: str) -> bytes:
    """Return what a session is found by, whatever its name, or raise UnicodeEncodeError; names may be too long for an index."""
    return digest(name.encode())


AT_ONCE = 1_000
"""Terms in one row: a row may have 1 MB and remembers 256 places of a term, so a long text has several rows."""

OVERLAP = 16
"""Terms that a row repeats of the one before, so that a word of so many characters is found across them."""

LONGEST = 200
"""Characters of a term that count; the index takes 2 KB."""


def rows_of(words: str) -> Iterator[str]:
    """Yield the terms of a text with their places, as PostgreSQL writes a `tsvector`."""
    terms = folded_terms(words)
    for start in range(0, len(terms), AT_ONCE):
        row = terms[max(start - OVERLAP, 0) : start + AT_ONCE]
        yield " ".join(f"{term[:LONGEST]}:{place}" for place, term in enumerate(row, start=1))


def queries_of(words: str) -> list[str]:
    """Return each word of a search as PostgreSQL writes a `tsquery`; terms are letters and digits, so none needs quotes."""
    queries = (" <-> ".join(term[:LONGEST] for term in folded_terms(phrase)) for phrase in phrases_in(words))
    return list(dict.fromkeys(query for query in queries if query))


CONTENTS_AT_ONCE = 500
"""Messages written in one statement."""


def keep_contents(
    connection: Connection, contents: Iterable[Content], words: Callable[[Content], str]
) -> dict[bytes, int]:
    """Return where each content is, by its key; what is new is written and indexed, what is known stays as it is."""
    wanted = {content.key: content for content in contents}
    keys = sorted(wanted)
    ids: dict[bytes, int] = {}
    for start in range(0, len(keys), CONTENTS_AT_ONCE):
        missing = keys[start : start + CONTENTS_AT_ONCE]
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
    for start in range(0, len(rows), CONTENTS_AT_ONCE):
        contents, parts, terms = zip(*rows[start : start + CONTENTS_AT_ONCE], strict=True)
        connection.execute(
            "INSERT INTO search (content, part, terms) SELECT content, part, terms::tsvector "
            "FROM unnest(%s::bigint[], %s::integer[], %s::text[]) AS new (content, part, terms)",
            (list(contents), list(parts), list(terms)),
        )


class Session(Struct, frozen=True, kw_only=True):
    """A session as a transaction finds it; one that is not there has the id 0."""

    id: int = 0
    version: int = 0
    entries: int = 0
    messages: int = 0
    tokens: int = 0


def find(connection: Connection, session: str, lock: str = "") -> Session:
    """Return the session's row, locked if asked to (`FOR UPDATE`, `FOR SHARE`)."""
    query = f"SELECT id, version, entries, messages, tokens FROM sessions WHERE key = %s {lock}"  # noqa: S608 - our own words
    row = connection.execute(query.encode(), (key_of(session),)).fetchone()
    if row is None:
        return Session()
    id, version, entries, messages, tokens = cast("tuple[int, int, int, int, int]", row)
    return Session(id=id, version=version, entries=entries, messages=messages, tokens=tokens)


def begin(connection: Connection, session: str, about: About) -> Session:
    """Return a new session that has nothing yet, or raise StaleLedger if there is one; who else is about to begin it is waited for."""
    while True:
        row = connection.execute(
            "INSERT INTO sessions (key, name, title, source, parent, ended_because, ended_at) "
            "VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT (key) DO NOTHING RETURNING id",
            (key_of(session), stored(session), *_told(about)),
        ).fetchone()
        if row is not None:
            return Session(id=cast("int", row[0]))
        there = find(connection, session)
        if there.id:
            raise StaleLedger(session, expected=0, found=there.version)


def next_version(connection: Connection, id: int, entries: int) -> int:
    """Give a session of this id a version that no append had before; it leads to so many entries.

    The session's row is locked, so its versions grow in the order they are committed.
    """
    row = connection.execute(
        "INSERT INTO appends (session, version, entries) VALUES (%s, nextval('versions'), %s) RETURNING version",
        (id, entries),
    ).fetchone()
    assert row is not None
    return cast("int", row[0])


def grow(connection: Connection, id: int, version: int, growth: Growth) -> None:
    """Bring the figures of a session up to date."""
    model = None if growth.model is None else stored(growth.model)
    connection.execute(
        "UPDATE sessions SET version = %(version)s, entries = entries + %(entries)s, messages = messages + %(messages)s, "
        "tokens = tokens + %(tokens)s, turns = turns + %(turns)s, compactions = compactions + %(compactions)s, "
        "model = coalesce(%(model)s, model), opened_at = least(opened_at, %(first)s), "
        "changed_at = greatest(changed_at, %(last)s) WHERE id = %(id)s",
        {**asdict(growth), "model": model, "version": version, "id": id},
    )


def carry(connection: Connection, id: int, carried: bytes | None) -> None:
    """Keep what a session carries, unless there is nothing new."""
    if carried is not None:
        connection.execute("UPDATE sessions SET carried = %s WHERE id = %s", (seal(carried), id))


def describe(connection: Connection, id: int, about: About | None) -> None:
    """Keep what is told of a session, unless there is nothing new."""
    if about is not None:
        connection.execute(
            "UPDATE sessions SET title = %s, source = %s, parent = %s, ended_because = %s, ended_at = %s WHERE id = %s",
            (*_told(about), id),
        )


def _told(about: About) -> tuple[str | float | None, ...]:
    texts = (about.title, about.source, about.parent, about.ended_because)
    return (*map(stored, texts), about.ended_at)


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


def read(connection: Connection, session: str, since: int, until: int | None) -> Stored:
    """Return what a session has between two versions, or raise StaleLedger or DamagedStore."""
    now = _seen(connection, session, since)
    last = now.version if until is None else version_by(connection, now.id, until)
    first, end = _length(connection, now.id, since), _length(connection, now.id, last)
    with naming(connection, session, now.id):
        entries = tuple(_entries(connection, now.id, first, end))
        carried, about = _besides(connection, session, now)
    return Stored(version=last, entries=entries, carried=carried, about=about)


def outline(connection: Connection, session: str) -> Outline:
    """Return a session without its entries, or raise DamagedStore."""
    now = find(connection, session)
    with naming(connection, session, now.id):
        carried, about = _besides(connection, session, now)
    return Outline(
        version=now.version,
        entries=now.entries,
        messages=now.messages,
        tokens=now.tokens,
        landmarks=tuple(_landmarks(connection, now.id)),
        carried=carried,
        about=about,
    )


def entries(connection: Connection, session: str, first: int, end: int, version: int) -> list[Entry]:
    """Return the entries at these positions, or raise StaleLedger or DamagedStore."""
    now = _seen(connection, session, version)
    with naming(connection, session, now.id):
        return list(_entries(connection, now.id, max(first, 0), min(end, now.entries)))


def messages(connection: Connection, session: str, first: int, end: int, version: int) -> list[Numbered]:
    """Return the messages with these numbers, or raise StaleLedger or DamagedStore."""
    now = _seen(connection, session, version)
    numbers = range(max(first, 1), min(end, now.messages + 1))
    rows = connection.execute(
        "SELECT number, tokens, key, body FROM messages JOIN contents ON contents.id = content "
        "WHERE session = %s AND number >= %s AND number < %s ORDER BY number",
        (now.id, numbers.start, numbers.stop),
        binary=True,
    )
    with naming(connection, session, now.id):
        return list(restore_messages(numbers, map(_held, rows), _brought(connection, now.id)))


def _seen(connection: Connection, session: str, version: int) -> Session:
    """Return a session that had this version, an empty one for 0, or raise StaleLedger."""
    now = find(connection, session)
    if version and version_by(connection, now.id, version) != version:
        raise StaleLedger(session, expected=version, found=now.version)
    return now


def _besides(connection: Connection, session: str, now: Session) -> tuple[bytes, About]:
    """Return what a session carries and what is told of it."""
    row = connection.execute(
        f"SELECT carried, {ABOUT} FROM sessions WHERE id = %s".encode(),  # noqa: S608 - our own names
        (now.id,),
        binary=True,
    ).fetchone()
    if row is None:
        return b"", About()
    return restore_carried(session, row[0]), about(row[1:])


def _brought(connection: Connection, id: int) -> Callable[[int], int]:
    """Return what tells with which version a message came."""

    def version_of(number: int) -> int:
        row = connection.execute(
            "SELECT version FROM entries WHERE session = %s AND messages < %s ORDER BY position DESC LIMIT 1",
            (id, number),
        ).fetchone()
        return cast("int", row[0]) if row else 0

    return version_of


def _length(connection: Connection, id: int, version: int) -> int:
    """Return how many entries a session had at one of its versions."""
    row = connection.execute(
        "SELECT entries FROM appends WHERE session = %s AND version = %s", (id, version)
    ).fetchone()
    return cast("int", row[0]) if row else 0


def _landmarks(connection: Connection, id: int) -> Iterator[Landmark]:
    rows = connection.execute(
        "SELECT position, kind, at, messages, tokens FROM entries "
        "WHERE session = %s AND kind <> 'appended' ORDER BY position",
        (id,),
    )
    return (landmark(*row) for row in cast("Iterable[tuple[int, str, float, int, int]]", rows))


def _entries(connection: Connection, id: int, first: int, end: int) -> Iterator[Entry]:
    rows = connection.execute(
        "SELECT version, position, body FROM entries "
        "WHERE session = %s AND position >= %s AND position < %s ORDER BY position",
        (id, first, end),
        binary=True,
    )
    found = (
        Row(version=cast("int", version), position=cast("int", position), sealed=body)
        for version, position, body in rows
    )
    return restore_entries(
        found, lambda keys: _contents(connection, keys), lambda position: entry_body(connection, id, position)
    )


def entry_body(connection: Connection, id: int, position: int) -> object:
    """Return the stored bytes of one entry, None if there is none."""
    row = connection.execute(
        "SELECT body FROM entries WHERE session = %s AND position = %s", (id, position), binary=True
    ).fetchone()
    return row[0] if row else None


def _contents(connection: Connection, keys: Sequence[bytes]) -> Iterable[tuple[bytes, object]]:
    rows = connection.execute(
        "SELECT key, body FROM contents WHERE key = ANY(%s::bytea[])", (list(keys),), binary=True
    )
    return cast("Iterable[tuple[bytes, object]]", rows)


def _held(row: Sequence[object]) -> Held:
    number, tokens, key, body = row
    return Held(number=cast("int", number), tokens=cast("int", tokens), key=key, body=body)


MOST_RANKED = 1_000
"""Texts that are ranked by how often and how closely they have the words, which means to read them."""

# How rare a word is among all texts PostgreSQL does not know: it is counted here, and decides which texts are worth ranking.
_SEARCH = """
WITH wanted AS (
    SELECT query, place FROM unnest(%(queries)s::text[]::tsquery[]) WITH ORDINALITY AS given (query, place)),
found AS MATERIALIZED (
    SELECT DISTINCT place, content FROM wanted JOIN search ON terms @@ query),
texts AS (
    SELECT greatest(
        (SELECT reltuples FROM pg_class WHERE oid = 'contents'::regclass),
        (SELECT count(DISTINCT content) FROM found)) AS number),
rarity AS (
    SELECT place, ln(1 + number / count(*)) AS weight FROM found, texts GROUP BY place, number),
likely AS (
    SELECT content FROM found JOIN rarity USING (place) {within}
    GROUP BY content ORDER BY sum(weight) DESC, content DESC LIMIT %(ranked)s),
ranked AS (
    SELECT content, place, max(ts_rank(terms, query, 1)) AS rank
    FROM likely JOIN search USING (content) JOIN wanted ON terms @@ query GROUP BY content, place),
scored AS (
    SELECT content, sum(rank * weight) AS score FROM ranked JOIN rarity USING (place) GROUP BY content)
SELECT name, number, messages.tokens, score
FROM scored JOIN messages USING (content) JOIN sessions ON sessions.id = messages.session {of}
ORDER BY score DESC, version DESC, number DESC LIMIT %(limit)s
"""
_IN_ALL = _SEARCH.format(within="", of="").encode()
_IN_ONE = _SEARCH.format(
    within="WHERE content IN (SELECT content FROM messages WHERE session = %(session)s)",
    of="WHERE sessions.id = %(session)s",
).encode()


def search(connection: Connection, words: str, session: str | None, limit: int) -> list[Hit]:
    """Return the messages that match best, best first."""
    queries = queries_of(words)
    if not queries or limit <= 0:
        return []
    # The server takes reading all texts for cheap, because they lie beside their rows.
    connection.execute("SET LOCAL enable_seqscan = off")
    rows = connection.execute(
        _IN_ALL if session is None else _IN_ONE,
        {
            "queries": queries,
            "session": None if session is None else find(connection, session).id,
            "ranked": max(MOST_RANKED, limit),
            "limit": limit,
        },
    )
    return [
        Hit(
            session=told(name),
            number=cast("int", number),
            tokens=cast("int", tokens),
            score=cast("float", score),
        )
        for name, number, tokens, score in rows
    ]


def record_fingerprint(connection: Connection, fingerprint: Fingerprint) -> None:
    """Note what a session was seen with, if it is kept; its row is locked, so that one fingerprint is the newest."""
    session = find(connection, fingerprint.session, "FOR UPDATE")
    if not session.id:
        return
    connection.execute("UPDATE trails SET newest = false WHERE session = %s AND newest", (session.id,))
    connection.execute(
        "INSERT INTO trails (tenant, key, session, hint, newest) SELECT %s, key, %s, %s, true FROM unnest(%s::bytea[]) AS key "
        "ON CONFLICT (tenant, key, session) DO UPDATE SET hint = excluded.hint, newest = true",
        (
            stored(fingerprint.tenant),
            session.id,
            stored(fingerprint.hint),
            list(dict.fromkeys(fingerprint.keys)),
        ),
    )


def lookup_fingerprints(connection: Connection, tenant: str, keys: Sequence[bytes]) -> list[FingerprintMatch]:
    """Return the sessions that were seen with one of these keys."""
    rows = connection.execute(
        "SELECT trails.key, name, hint, newest FROM trails JOIN sessions ON sessions.id = trails.session "
        "WHERE tenant = %s AND trails.key = ANY(%s::bytea[])",
        (stored(tenant), list(keys)),
    )
    return [
        FingerprintMatch(
            key=bytes(cast("bytes", key)), session=told(name), hint=told(hint), newest=bool(newest)
        )
        for key, name, hint, newest in rows
    ]


def secret(connection: Connection) -> bytes:
    """Return the bytes that were drawn when the tables were made."""
    row = connection.execute("SELECT body FROM secret").fetchone()
    assert row is not None
    return bytes(cast("bytes", row[0]))


def _insert(table: str, *columns: str) -> bytes:
    marks = ", ".join(["%s"] * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})".encode()  # noqa: S608 - our own names


_INSERT_TURN = _insert("turns", "session", "version", *TURN_COLUMNS, "body")
_INSERT_EVENT = _insert("compaction_events", "session", "version", "ordinal", *EVENT_COLUMNS, "body")


class Ready(Struct, frozen=True, kw_only=True):
    """An append with its entries packed, once for all attempts to write it."""

    new: Append
    entries: tuple[Packed, ...]
    contents: tuple[Content, ...]
    growth: Growth


def ready(new: Append) -> Ready:
    """Return the append ready to be written, or raise BadInput or IllegalEntry."""
    entries = tuple(pack(entry) for entry in new.entries)
    contents = tuple(content for packed in entries for content in packed.contents)
    return Ready(new=new, entries=entries, contents=contents, growth=growth_of(new, contents))


def append(connection: Connection, session: str, expected: int, ready: Ready, conceal: Conceal) -> int:
    """Write what is new, and return the new version, or raise StaleLedger."""
    now = find(connection, session, "FOR UPDATE")
    if now.version != expected:
        raise StaleLedger(session, expected=expected, found=now.version)
    if ready.new == Append():
        return expected
    if not now.id:
        now = begin(connection, session, About())
    version = next_version(connection, now.id, now.entries + len(ready.entries))
    ids = keep_contents(connection, ready.contents, lambda content: words_of(content.message, conceal))
    entries = _told_by_changes(connection, now, ready.entries)
    try:
        with connection.pipeline():
            _write_entries(connection, now, version, entries)
            _write_messages(connection, now, ready.contents, ids)
            _write_account(connection, now.id, version, ready.new)
            carry(connection, now.id, ready.new.carried)
            describe(connection, now.id, ready.new.about)
            grow(connection, now.id, version, ready.growth)
    except (UndefinedTable, UndefinedColumn) as error:
        if ready.new.record is None and not ready.new.events:
            raise
        # The driver takes the statements behind the failed one for prepared, and the server has none of them.
        connection.close()
        # Which statement it was is not told: without the accounts it fails again if it was another.
        raise UnwritableAccounts(error.diag.message_primary or type(error).__name__) from error
    return version


def _told_by_changes(connection: Connection, now: Session, packed: Sequence[Packed]) -> Sequence[Packed]:
    """Return the entries with compactions told by what they change; one whose predecessor is damaged is written in full."""
    if not any(isinstance(one.entry, Compacted) for one in packed):
        return packed
    row = connection.execute(
        "SELECT position FROM entries WHERE session = %s AND kind = 'compacted' ORDER BY position DESC LIMIT 1",
        (now.id,),
    ).fetchone()
    base = None
    if row:
        with suppress(Broken, MsgspecError):
            base = base_at(cast("int", row[0]), lambda position: entry_body(connection, now.id, position))
    return pack_since(packed, now.entries, base)


def _write_entries(connection: Connection, now: Session, version: int, entries: Sequence[Packed]) -> None:
    if not entries:
        return
    messages, tokens = [now.messages], [now.tokens]
    for packed in entries:
        messages.append(messages[-1] + len(packed.contents))
        tokens.append(tokens[-1] + sum(content.tokens for content in packed.contents))
    connection.execute(
        "INSERT INTO entries (session, position, version, at, kind, messages, tokens, body) "
        "SELECT %s, %s + place - 1, %s, at, kind, messages, tokens, body "
        "FROM unnest(%s::double precision[], %s::text[], %s::bigint[], %s::bigint[], %s::bytea[]) "
        "WITH ORDINALITY AS new (at, kind, messages, tokens, body, place)",
        (
            now.id,
            now.entries,
            version,
            [packed.entry.at for packed in entries],
            [packed.kind for packed in entries],
            messages[:-1],
            tokens[:-1],
            [seal(packed.body) for packed in entries],
        ),
    )


def _write_messages(
    connection: Connection, now: Session, contents: Sequence[Content], ids: dict[bytes, int]
) -> None:
    if not contents:
        return
    connection.execute(
        "INSERT INTO messages (session, number, content, tokens) SELECT %s, %s + place, content, tokens "
        "FROM unnest(%s::bigint[], %s::bigint[]) WITH ORDINALITY AS new (content, tokens, place)",
        (
            now.id,
            now.messages,
            [ids[content.key] for content in contents],
            [content.tokens for content in contents],
        ),
    )


def _write_account(connection: Connection, id: int, version: int, new: Append) -> None:
    if new.record is not None:
        whole = seal(pack_record(new.record))
        connection.execute(_INSERT_TURN, (id, version, *_readable(turn_values(new.record)), whole))
    for ordinal, event in enumerate(new.events):
        whole = seal(pack_event(event))
        connection.execute(_INSERT_EVENT, (id, version, ordinal, *_readable(event_values(event)), whole))


def _readable(values: Iterable[Value]) -> Iterable[Value]:
    return (stored(value) if isinstance(value, str) else value for value in values)


def copy(connection: Connection, session: str, to: str, about: About) -> int:
    """Begin the session `to` with the ledger of `session`, and return its version, or raise StaleLedger or BadInput."""
    new = begin(connection, to, about)
    # Until the copy is committed its original holds the content, so the original must stay.
    of = find(connection, session, "FOR SHARE")
    if not of.id:
        raise BadInput(f"there is no session {session!r} to copy")
    version = next_version(connection, new.id, of.entries)
    ids = {"of": of.id, "to": new.id, "version": version}
    connection.execute(
        "INSERT INTO entries (session, position, version, at, kind, messages, tokens, body) "
        "SELECT %(to)s, position, %(version)s, at, kind, messages, tokens, body FROM entries WHERE session = %(of)s",
        ids,
    )
    connection.execute(
        "INSERT INTO messages (session, number, content, tokens) "
        "SELECT %(to)s, number, content, tokens FROM messages WHERE session = %(of)s",
        ids,
    )
    connection.execute(
        "UPDATE sessions SET version = %(version)s, entries = original.entries, messages = original.messages, "
        "tokens = original.tokens, compactions = original.compactions, model = original.model, "
        "carried = original.carried, "
        "opened_at = (SELECT min(at) FROM entries WHERE session = %(of)s), "
        "changed_at = (SELECT max(at) FROM entries WHERE session = %(of)s) "
        "FROM sessions AS original WHERE sessions.id = %(to)s AND original.id = %(of)s",
        ids,
    )
    return version


_OWNED = (
    b"DELETE FROM entries WHERE session = %s",
    b"DELETE FROM messages WHERE session = %s",
    b"DELETE FROM turns WHERE session = %s",
    b"DELETE FROM compaction_events WHERE session = %s",
    b"DELETE FROM appends WHERE session = %s",
    b"DELETE FROM trails WHERE session = %s",
    b"DELETE FROM sessions WHERE id = %s",
)


def delete(connection: Connection, session: str) -> bool:
    """Remove a session with the content that no other one holds; return whether there was one."""
    now = find(connection, session, "FOR UPDATE")
    if not now.id:
        return False
    locked = lock_contents(connection, now.id)
    for statement in _OWNED:
        connection.execute(statement, (now.id,))
    delete_orphans(connection, locked)
    return True
