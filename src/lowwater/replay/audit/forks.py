"""What a fork repeats of the session it comes from, told apart: that session made those calls, and was billed for them.

A fork begins with a copy of its parent, calls and counts included. Where the parent's own file is there too, its calls
are told by it; where it is not, they are told once, by the first fork that repeats them, and under the parent's name.
"""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lowwater.logs.recording import Recording
from lowwater.replay.audit.audited import AuditedSession
from lowwater.replay.audit.calls import Call

REPEATED = "repeated"
"""What a session is, of which only a fork tells."""


class Part(Struct, frozen=True, kw_only=True):
    """The calls of one session in a recording, with those around them that others made or told."""

    recording: Recording
    calls: tuple[Call, ...]


def parts_of(recording: Recording, calls: Sequence[Call]) -> Iterator[Part]:
    """Yield the session itself, then the beginning of each other session whose calls it repeats."""
    others = dict.fromkeys(call.made_by for call in calls if call.made_by)
    if not others:
        yield Part(recording=recording, calls=tuple(calls))
        return
    if any(not call.made_by for call in calls):
        own = tuple(replace(call, copied=call.copied or bool(call.made_by)) for call in calls)
        yield Part(recording=recording, calls=own)
    for name in others:
        last = max(at for at, call in enumerate(calls) if call.made_by == name)
        until = calls[last].index + 1
        yield Part(
            recording=replace(
                recording,
                id=name,
                parent="",
                relation=REPEATED,
                messages=recording.messages[:until],
                compactions=tuple(each for each in recording.compactions if each.index < until),
                broken=(),
            ),
            calls=tuple(
                replace(call, copied=call.copied or call.made_by != name) for call in calls[: last + 1]
            ),
        )


def joined(sessions: Iterable[AuditedSession]) -> list[AuditedSession]:
    """Return the sessions, what several files tell of one as one; where its own file is there, under that file's name.

    What could have been saved is estimated on whole sessions, and is not told of one that was put together.
    """
    pieces: dict[tuple[str, str], list[AuditedSession]] = {}
    every = list(sessions)
    for session in every:
        pieces.setdefault((session.agent, session.id), []).append(session)
    found: list[AuditedSession] = []
    for session in every:
        of_one = pieces.pop((session.agent, session.id), [])
        if any(piece.relation == REPEATED for piece in of_one):
            found += _together(of_one)
        else:
            found += of_one
    return found


def _together(pieces: Sequence[AuditedSession]) -> list[AuditedSession]:
    repeated = [piece for piece in pieces if piece.relation == REPEATED]
    whole = [piece for piece in pieces if piece.relation != REPEATED]
    first, *others = [*whole[:1], *repeated]
    if not others:
        return list(pieces)
    times = [piece.ended_at for piece in (first, *others) if piece.ended_at is not None]
    one = replace(
        first,
        rows=tuple(row for piece in (first, *others) for row in piece.rows),
        natives=tuple(native for piece in (first, *others) for native in piece.natives),
        peak_prompt=max(piece.peak_prompt for piece in (first, *others)),
        ended_at=max(times, default=None),
        copied=sum(piece.copied for piece in (first, *others)),
        foreseen=None,
        saving=None,
    )
    return [one, *whole[1:]]
