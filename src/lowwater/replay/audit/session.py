"""One recorded session audited."""

from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from lowwater.logs.recording import Recording
from lowwater.replay.audit.audited import AuditedSession, DayOf, Native, NotEstimated, Saving
from lowwater.replay.audit.calls import Call
from lowwater.replay.audit.causes import misses_of
from lowwater.replay.audit.foreseen import foreseen_bill
from lowwater.replay.audit.natives import natives_of
from lowwater.replay.audit.rows import row_of_sum, rows_of
from lowwater.replay.audit.sized import Sizes, sizes_of

TAIL = 20_000
"""Tokens at the end of a prompt that an estimated compaction leaves alone."""
_PLACES = 5


def audit_session(recording: Recording, calls: Sequence[Call], *, day_of: DayOf) -> AuditedSession:
    """Return what one session consumed and cost, why its cache missed, and what compaction did or could have done."""
    misses = misses_of(calls)
    sizes = sizes_of(recording, calls, tail=TAIL)
    natives = natives_of(recording, calls, misses, ratio=sizes.ratio, day_of=day_of)
    estimate = _estimate(sizes, calls, tuple(natives))
    times = [at for call in calls for at in (call.asked, call.answered) if at is not None and not call.copied]
    own = [call for call in calls if not call.copied]
    summed = recording.usage if own and not any(call.billed for call in own) else None
    return AuditedSession(
        id=recording.id,
        agent=recording.agent,
        path=recording.path,
        model=_main_model(own) or recording.model,
        parent=recording.parent,
        relation=recording.relation,
        started_at=min(times, default=recording.started_at),
        ended_at=max(times, default=None),
        rows=(row_of_sum(summed, own, day_of),) if summed else rows_of(calls, misses, day_of),
        peak_prompt=max((call.usage.prompt for call in own if call.usage), default=0),
        natives=estimate.natives,
        foreseen=foreseen_bill(calls),
        saving=estimate.saving,
        not_estimated=estimate.why_not,
        broken=len(recording.broken),
        broken_at=tuple(line.place for line in recording.broken[:_PLACES]),
        copied=len(calls) - len(own),
    )


class _Estimate(Struct, frozen=True, kw_only=True):
    natives: tuple[Native, ...]
    saving: Saving | None = None
    why_not: NotEstimated | None = None


@lru_cache(maxsize=1)
def numpy_version() -> str:
    """Return the version of numpy that estimates would use; empty if it cannot be imported."""
    try:
        import numpy as np  # noqa: PLC0415 - an extra
    except ImportError:
        return ""
    return np.__version__


def _estimate(sizes: Sizes, calls: Sequence[Call], natives: tuple[Native, ...]) -> _Estimate:
    """Return what could be saved, and the compactions beside rent-or-buy; or why neither is estimated.

    Of a session that goes on from another, what could be saved is told with the other.
    """
    if not sizes.course.turns:
        return _Estimate(natives=natives, why_not="no_sizes")
    if not numpy_version():
        return _Estimate(natives=natives, why_not="numpy")
    from lowwater.replay.audit.saving import calls_earlier, saving_of, sheet_of  # noqa: PLC0415 - needs numpy

    sheet = sheet_of(calls)
    if sheet is None:
        return _Estimate(natives=natives, why_not="no_prices")
    summaries = [native.call for native in natives if native.kind == "summary"]
    prunes = [native.call for native in natives if native.kind == "prune"]
    told = tuple(
        replace(
            native,
            earlier=calls_earlier(sizes.course, sheet, since=_before(summaries, native), turn=native.call),
        )
        for native in natives
    )
    if any(call.copied for call in calls):
        return _Estimate(natives=told, why_not="copied")
    saving = saving_of(sizes.course, sheet, summaries, prunes)
    return _Estimate(natives=told, saving=saving, why_not="too_large" if saving is None else None)


def _before(summaries: Sequence[int], native: Native) -> int:
    """Return the call after the last summary before a compaction, or the first."""
    return max((call for call in summaries if call < native.call), default=0)


def _main_model(calls: Sequence[Call]) -> str:
    names = [call.model.name for call in calls]
    return max(sorted(set(names)), key=names.count, default="")
