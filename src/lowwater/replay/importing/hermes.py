"""Hermes' `state.db`: sessions with their sub-agents and branches, those that a compaction split put together again.

Hermes keeps the usage of a session as a sum, not by call; it stands with the call only where there was but one.
"""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path

from msgspec.structs import replace

from lowwater.core.api_calls import Usage, together
from lowwater.core.strict_json import write_json
from lowwater.errors import BadInput
from lowwater.logs.recording import NativeCompaction, RecordedCall, RecordedMessage, Recording
from lowwater.replay.importing.databases import Database, has_columns, opened
from lowwater.replay.importing.gathering import gathered
from lowwater.replay.importing.hermes_compactions import Left, left_by_compactions
from lowwater.replay.importing.hermes_rows import Row, Session, rows_of, sessions_in, system_prompt_of
from lowwater.replay.importing.lines import RecordedFile

_SPLIT, _BRANCHED = "compression", "branched"


class Hermes:
    """All sessions of a database, one lineage in memory at a time."""

    name = "hermes"

    def recognises(self, head: bytes, path: Path) -> bool:
        """Tell by the tables that Hermes makes."""
        return has_columns(head, path, sessions="parent_session_id", messages="tool_calls")

    def read(self, file: RecordedFile) -> Iterator[Recording]:
        """Yield each session with those that continue it."""
        with opened(file.path) as database:
            sessions = {session.id: session for session in sessions_in(database)}
            lineages = list(_lineages(sessions))
            homes = {session.id: lineage[0].id for lineage in lineages for session in lineage}
            for lineage in lineages:
                relation = _relation(lineage[0], sessions)
                for recording in _recording(lineage, relation, database, file):
                    parent = lineage[0].parent
                    yield replace(recording, parent=homes.get(parent, parent), relation=relation)


def _recording(
    lineage: Sequence[Session], relation: str, database: Database, file: RecordedFile
) -> Iterator[Recording]:
    """Yield the session that a lineage is, unless it has no messages."""
    root, rows = lineage[0], list[Row]()
    starts: list[int] = []
    for session in lineage:
        starts.append(len(rows))
        rows.extend(rows_of(database, session.id, file))
    if not rows:
        return
    shared = _shared(rows, root.parent, database, file.path) if relation == "fork" else 0
    left = left_by_compactions(rows, [start for start in starts if 0 < start < len(rows)])
    messages = _messages(rows, left, model=lineage[-1].model or root.model, shared=shared)
    one_call = sum(message.call is not None for message in messages) == 1
    usage = _sum(lineage)
    if usage is not None and one_call and sum(session.calls for session in lineage) == 1:
        messages, usage = [_billed(message, usage) for message in messages], None
    yield replace(
        gathered(
            file,
            id=root.id,
            agent=Hermes.name,
            messages=messages,
            compactions=[NativeCompaction(index=one.start, at=rows[one.start].at) for one in left],
            system=_system(database, lineage),
            started_at=root.started_at,
        ),
        shared=shared,
        usage=usage,
    )


def _messages(rows: Sequence[Row], left: Sequence[Left], *, model: str, shared: int) -> list[RecordedMessage]:
    """Return the rows as messages; what a compaction left, or a branch shares, is no new call."""
    copies = {position for one in left for position in range(one.start, one.end)}
    messages: list[RecordedMessage] = []
    for at, row in enumerate(rows):
        is_new = at not in copies and at >= shared
        answers = row.message.role == "assistant" and is_new
        messages.append(
            RecordedMessage(
                message=row.message,
                at=row.at,
                call=RecordedCall(model=model) if answers else None,
                kind="compact_summary" if at in copies else "",
            )
        )
    return messages


def _lineages(sessions: dict[str, Session]) -> Iterator[list[Session]]:
    """Yield each session with those that continue it after a compaction, in order; a circle is cut open."""
    continued = _continued(sessions)
    behind = {session.id for session in continued.values()}
    done: set[str] = set()
    firsts = [session for session in sessions.values() if session.id not in behind]
    for first in (*firsts, *sessions.values()):
        lineage: list[Session] = []
        session: Session | None = first
        while session is not None and session.id not in done:
            done.add(session.id)
            lineage.append(session)
            session = continued.get(session.id)
        if lineage:
            yield lineage


def _continued(sessions: dict[str, Session]) -> dict[str, Session]:
    """Return which session goes on where a compaction ended one: of several, the one that was itself compacted."""
    found: dict[str, Session] = {}
    for session in sessions.values():
        if not _continues(session, sessions):
            continue
        before = found.get(session.parent)
        if before is None or before.end_reason != _SPLIT or session.end_reason == _SPLIT:
            found[session.parent] = session
    return found


def _continues(session: Session, sessions: dict[str, Session]) -> bool:
    parent = sessions.get(session.parent)
    marked = session.branched or session.delegated or session.source == "tool"
    return parent is not None and parent.end_reason == _SPLIT and not marked


def _relation(session: Session, sessions: dict[str, Session]) -> str:
    """Return what a session is to its parent; a child without a mark is a sub-agent, as in Hermes itself."""
    if not session.parent:
        return ""
    parent = sessions.get(session.parent)
    left_for_it = parent is not None and parent.end_reason in (_BRANCHED, _SPLIT)
    return "fork" if session.branched or (left_for_it and not session.delegated) else "subagent"


def _shared(rows: Sequence[Row], parent: str, database: Database, path: Path) -> int:
    """Return how many of the first messages a branch copied from its parent; what is broken there is told there."""
    with RecordedFile(path) as again:
        pairs = zip(rows, rows_of(database, parent, again), strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0].message == pair[1].message, pairs))


def _billed(message: RecordedMessage, usage: Usage) -> RecordedMessage:
    return replace(message, call=replace(message.call, usage=usage)) if message.call else message


def _sum(lineage: Sequence[Session]) -> Usage | None:
    told = [session.usage for session in lineage if session.usage is not None]
    return together(told) if told else None


def _system(database: Database, lineage: Sequence[Session]) -> bytes:
    """Return the system prompt of the first session that has one."""
    try:
        prompts = (system_prompt_of(database, session.id) for session in lineage)
        prompt = next((prompt for prompt in prompts if prompt), "")
        return write_json(prompt) if prompt else b""
    except BadInput:
        return b""
