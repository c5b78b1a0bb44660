"""What an audit found, in a person's words: causes of misses, kinds of spending, names of sessions."""

from pathlib import PurePath

from lowwater.cli.kept_words import on_one_line
from lowwater.lab.audit.findings import AuditedSession, Cause

CAUSE_WORDS: dict[Cause, str] = {
    "first": "first call of a session",
    "compaction": "the client compacted",
    "model_changed": "the model changed",
    "expired": "the cache had expired",
    "start_changed": "system, tools or first message changed",
    "prefix_edited": "earlier messages were edited or dropped",
    "uncached": "the session recorded no use of a cache",
    "boundary": "ends of stored prefixes",
    "evicted": "evicted, or unknown",
}
"""Each in at most 40 columns."""

SPENDING_WORDS = {
    "reads": "cache reads",
    "writes": "cache writes",
    "uncached": "plain input",
    "output": "output",
}


def session_name(session: AuditedSession) -> str:
    """Return how a session is told from others on one line: the folder it lies in and the start of its id."""
    folder = PurePath(session.path).parent.name
    name = on_one_line(session.id, 60)
    short = name[:8] if len(name) > 24 else name
    kind = f" ({session.relation})" if session.relation else ""
    return f"{on_one_line(folder, 60)}/{short}{kind}" if folder else f"{short}{kind}"


def from_the_end(text: str, columns: int) -> str:
    """Return a text that takes at most so many characters: its end, which tells sessions of one folder apart."""
    return text if len(text) <= columns else f"…{text[-(columns - 1) :]}"
