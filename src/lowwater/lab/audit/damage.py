"""What a client's own compactions made the agent read or do again, beside stretches of other sessions without a compaction.

A stretch is the 30 calls after a compaction, fewer if the session ends or is compacted again. Its calls repeat what `repeats`
finds was read or done before the compaction. Work goes on at its first call that changes something. Each stretch is compared
with the same number of calls at up to five comparable places: in sessions of the same client and model, those in the same
folder if there are any, before their first compaction, where the prompt was about as long, about as many calls had been made,
and a user message came right before or not. (Compared across projects, compactions seem to do harm that is only the difference
between the projects.)
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import log
from pathlib import Path
from random import Random

from msgspec import Struct

from lowwater.core.wording import counted
from lowwater.lab.audit.calls import AuditedCall
from lowwater.lab.audit.findings import AuditedSession, DayOf, Stretch, sum_of_known
from lowwater.lab.audit.repeats import CallActions, actions_of
from lowwater.logs.recording import Recording

WINDOW = 30
"""Most calls of a stretch."""
_EVERY = 10
"""Every so many calls of a session there is a place to compare with."""

# Stretches of one session


def stretches_of(
    recording: Recording, calls: Sequence[AuditedCall], *, day_of: DayOf, with_contents: bool = False
) -> Iterator[Stretch]:
    """Yield the stretches after the session's compactions, and those to compare others with."""
    compacted = [at for at, call in enumerate(calls) if call.compaction is not None]
    first = compacted[0] if compacted else len(calls)
    others = range(_EVERY, first, _EVERY)
    if not compacted and not others:
        return
    actions = actions_of(recording, [call.index for call in calls])
    for at in sorted({*compacted, *others}):
        if calls[at].copied or not at:
            continue
        end = next((later for later in compacted if later > at), len(calls))
        yield _stretch(calls, actions, at, min(end, at + WINDOW), day_of, with_contents=with_contents)


def _stretch(
    calls: Sequence[AuditedCall],
    actions: Sequence[CallActions],
    start: int,
    end: int,
    day_of: DayOf,
    *,
    with_contents: bool,
) -> Stretch:
    first, before = calls[start], calls[start - 1].usage
    repeats = [[each for each in one.repeats if each.first < start] for one in actions[start:end]]
    whole = [len(found) == one.tools for found, one in zip(repeats, actions[start:end], strict=True)]
    costs = [call.cost for call in calls[start + 1 : end] or calls[start:end]]
    known = [cost for cost in costs if cost is not None]
    compaction = first.compaction
    return Stretch(
        call=start,
        calls=end - start,
        is_compaction=compaction is not None,
        version=compaction.version if compaction else "",
        day="" if first.at is None else day_of(first.at),
        prompt=before.prompt if before else 0,
        begins_turn=first.begins_turn,
        repeating=tuple(at for at, found in enumerate(repeats) if found),
        only_repeating=tuple(at for at, found in enumerate(repeats) if found and whole[at]),
        works=next((at for at, one in enumerate(actions[start:end]) if one.changes), None),
        call_cost=sum(known) // len(known) if compaction and known else None,
        subjects=tuple(each.subject for found in repeats for each in found) if with_contents else (),
    )


# All sessions


class Interval(Struct, frozen=True, kw_only=True):
    """Nine in ten resamples of the compactions give a mean between these."""

    low: float
    high: float


class DamageLine(Struct, frozen=True, kw_only=True):
    """The compactions of one client, or of one version of it; means are per compaction."""

    client: str
    version: str
    """Empty for all versions."""
    compactions: int
    repeating: int
    """Compactions after which something is read or done again."""
    matched: int
    """Compactions with at least one comparable place; what follows, except sums of dollars, is about them."""
    repeating_share: float | None
    repeating_elsewhere: float | None
    """The share of comparable stretches in which something from before them is read or done again."""
    repeated: float | None
    """Calls that do nothing but repeat."""
    repeated_elsewhere: float | None
    repeated_more: Interval | None
    """The interval of the difference; None if there are too few compactions."""
    until_work: float | None
    """Calls before the first that changes something."""
    until_work_elsewhere: float | None
    until_work_more: Interval | None
    repeated_cost: int | None
    """What the calls that do nothing but repeat cost, in nano-dollars."""
    extra_cost: int | None
    """What the calls until work went on cost beyond those elsewhere, at what a call cost after the compaction."""

    @property
    def name(self) -> str:
        """The client with its version."""
        return f"{self.client} {self.version}".strip()


FEWEST = 10
"""With fewer compactions, there is no interval."""
_RESAMPLES = 1_000
_COMPARED = 5
_NEAREST = 200
"""How many places with the most similar prompt are compared by position."""
_MOST_TIMES = 3.0
"""A comparable place has at most so many times the prompt and the calls, and at least this part of them."""


class _Compared(Struct, frozen=True, kw_only=True):
    """One compaction and the means over the places it is compared with."""

    client: str
    stretch: Stretch
    others: int
    repeating: float = 0.0
    repeated: float = 0.0
    until_work: float = 0.0


def damage_by_client(sessions: Sequence[AuditedSession]) -> list[DamageLine]:
    """Return a line for each client and one for each of its versions, those with the most compactions first."""
    compared = list(_compared(sessions))
    clients = _grouped(compared, lambda one: one.client)
    lines: list[DamageLine] = []
    for client, of_client in clients.items():
        versions = _grouped(of_client, lambda one: one.stretch.version)
        lines.append(_line(client, "", of_client))
        lines += (_line(client, version, found) for version, found in versions.items() if version)
    return lines


def _grouped(compared: Iterable[_Compared], key: Callable[[_Compared], str]) -> dict[str, list[_Compared]]:
    groups: dict[str, list[_Compared]] = {}
    for one in compared:
        groups.setdefault(key(one), []).append(one)
    return {name: groups[name] for name in sorted(groups, key=lambda name: (-len(groups[name]), name))}


def _compared(sessions: Sequence[AuditedSession]) -> Iterator[_Compared]:
    places: dict[tuple[object, ...], list[_Place]] = {}
    for session in sessions:
        for stretch in session.stretches:
            if not stretch.is_compaction and stretch.prompt:
                place = _Place(prompt=stretch.prompt, session=session.id, stretch=stretch)
                for kind in _kinds(session, stretch):
                    places.setdefault(kind, []).append(place)
    for of_kind in places.values():
        of_kind.sort(key=lambda place: (place.prompt, place.session, place.stretch.call))
    for session in sessions:
        for stretch in session.stretches:
            if stretch.is_compaction:
                alike = (places.get(kind, []) for kind in _kinds(session, stretch))
                yield next(
                    (one for found in alike if (one := _compare(session, stretch, found)).others),
                    _Compared(client=session.agent, stretch=stretch, others=0),
                )


def _kinds(session: AuditedSession, stretch: Stretch) -> Iterator[tuple[object, ...]]:
    """Yield what comparable places have in common: with the folder, where clients keep the logs of one project, then without."""
    alike = (session.agent, session.model, stretch.begins_turn)
    yield (*alike, Path(session.path).parent)
    yield alike


class _Place(Struct, frozen=True, kw_only=True):
    prompt: int
    session: str
    stretch: Stretch


def _compare(session: AuditedSession, stretch: Stretch, places: Sequence[_Place]) -> _Compared:
    near = sorted(_near(session, stretch, places), key=lambda one: one[0])[:_COMPARED]
    if not near:
        return _Compared(client=session.agent, stretch=stretch, others=0)
    others, calls = [place.stretch for _, place in near], stretch.calls
    return _Compared(
        client=session.agent,
        stretch=stretch,
        others=len(others),
        repeating=sum(bool(_within(other.repeating, calls)) for other in others) / len(others),
        repeated=sum(_within(other.only_repeating, calls) for other in others) / len(others),
        until_work=sum(_until_work(other, calls) for other in others) / len(others),
    )


def _near(
    session: AuditedSession, stretch: Stretch, places: Sequence[_Place]
) -> Iterator[tuple[float, _Place]]:
    """Yield comparable places with their distances; those in the same session count as nearer."""
    if not stretch.prompt:
        return
    middle = bisect_left(places, stretch.prompt, key=lambda place: place.prompt)
    enough = [
        place
        for place in places[max(0, middle - _NEAREST) : middle + _NEAREST]
        if place.stretch.calls >= stretch.calls
    ]
    for place in enough:
        ratios = (place.prompt / stretch.prompt, place.stretch.call / stretch.call)
        if all(1 / _MOST_TIMES <= ratio <= _MOST_TIMES for ratio in ratios):
            distance = sum(abs(log(ratio)) for ratio in ratios)
            yield distance / 2 if place.session == session.id else distance, place


def _within(offsets: Sequence[int], calls: int) -> int:
    return sum(at < calls for at in offsets)


def _until_work(stretch: Stretch, calls: int) -> int:
    return min(calls, stretch.calls if stretch.works is None else stretch.works)


def _line(client: str, version: str, compared: Sequence[_Compared]) -> DamageLine:
    matched = [one for one in compared if one.others]
    repeated = [len(one.stretch.only_repeating) for one in matched]
    until = [_until_work(one.stretch, one.stretch.calls) for one in matched]
    more = [own - one.until_work for own, one in zip(until, matched, strict=True)]
    return DamageLine(
        client=client,
        version=version,
        compactions=len(compared),
        repeating=sum(bool(one.stretch.repeating) for one in compared),
        matched=len(matched),
        repeating_share=_mean([bool(one.stretch.repeating) for one in matched]),
        repeating_elsewhere=_mean([one.repeating for one in matched]),
        repeated=_mean(repeated),
        repeated_elsewhere=_mean([one.repeated for one in matched]),
        repeated_more=interval_of([own - one.repeated for own, one in zip(repeated, matched, strict=True)]),
        until_work=_mean(until),
        until_work_elsewhere=_mean([one.until_work for one in matched]),
        until_work_more=interval_of(more),
        repeated_cost=sum_of_known(
            None if cost is None else cost * len(one.stretch.only_repeating)
            for one in compared
            for cost in (one.stretch.call_cost,)
        ),
        extra_cost=sum_of_known(
            None if one.stretch.call_cost is None else round(extra * one.stretch.call_cost)
            for extra, one in zip(more, matched, strict=True)
        ),
    )


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def interval_of(values: Sequence[float]) -> Interval | None:
    """Return the interval of the mean by resampling, the same at every run; None if there are too few values."""
    if len(values) < FEWEST:
        return None
    random = Random(len(values))  # noqa: S311 - resampling, not secrecy
    means = sorted(sum(random.choices(values, k=len(values))) / len(values) for _ in range(_RESAMPLES))
    return Interval(low=means[_RESAMPLES // 20], high=means[-1 - _RESAMPLES // 20])


class RepeatedSubject(Struct, frozen=True, kw_only=True):
    """A path or command that was read or done again after a compaction."""

    session: str
    call: int
    """The number of the call after the compaction."""
    subject: str


def repeated_subjects(sessions: Iterable[AuditedSession]) -> list[RepeatedSubject]:
    """Return what was repeated after compactions, if the audit kept it."""
    return [
        RepeatedSubject(session=session.id, call=stretch.call, subject=subject)
        for session in sessions
        for stretch in session.stretches
        if stretch.is_compaction
        for subject in stretch.subjects
    ]


def damage_says(line: DamageLine) -> str:
    """Return a sentence on the calls of one client's compactions beyond those elsewhere."""
    if line.until_work is None or line.until_work_elsewhere is None:
        return f"{line.name}: no place in the recordings is comparable."
    repeated, until = line.repeated_more, line.until_work_more
    if repeated is None or until is None:
        return (
            f"{line.name}: {counted(line.matched, 'compaction')} that can be compared with other places, too few to tell a "
            "difference from chance."
        )
    return (
        f"{line.name}: something was read or done again after {line.repeating_share:.0%} of its compactions, and after "
        f"{line.repeating_elsewhere:.0%} of comparable places without one. Per compaction, "
        f"{_beyond(repeated, 'calls that only repeat')}, and {_beyond(until, 'calls until work goes on')} (90% intervals)."
    )


def _beyond(more: Interval, what: str) -> str:
    """Say how many more or fewer calls there are than at comparable places."""
    if more.low <= 0 <= more.high:
        return f"{what} differ by {more.low:+.1f} to {more.high:+.1f}, which may be chance".replace("-", "−")
    if more.low > 0:
        return f"there are {more.low:.1f} to {more.high:.1f} more {what}"
    return f"there are {-more.high:.1f} to {-more.low:.1f} fewer {what}"


DAMAGE_MEANS = (
    f"This is about the {WINDOW} calls after each compaction. A call repeats if it reads a file again although nothing it shows has "
    "changed, runs a command again with the same answer and no change between, or makes an edit or a plan again. Work goes on at the first call that "
    "changes something. The second figure of each pair is for comparable places without a compaction: same client and model, "
    f"similar prompt and number of calls. What is in doubt counts as new, and after fewer than {FEWEST} compactions most differences are chance."
)
DAMAGE_COLUMNS = (
    '"Calls lost" do nothing but repeat, and cost that much in all; "extra" is what the calls until work went on cost beyond '
    "those elsewhere."
)
