"""Finding messages by their words, inside a transaction."""

from typing import cast

from lowwater.core.stored import Hit
from lowwater.store.postgres.schema import Connection
from lowwater.store.postgres.sessions import find
from lowwater.store.postgres.texts import told
from lowwater.store.postgres.words import queries_of

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
