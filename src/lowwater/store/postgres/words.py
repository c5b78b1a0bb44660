"""The terms of a message as rows of the full-text index, and of a search as queries."""

from collections.abc import Iterator

from lowwater.store.indexing import folded_terms, phrases_in

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
