"""A run put together: figures by policy, a line for each session, and one session in detail."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from lowwater.logs.importing import Skipped
from lowwater.replay.running.figures import Figures, Pair, figures_of
from lowwater.replay.running.results import Kind, SessionResult


class PolicyReport(Struct, frozen=True, kw_only=True):
    """One policy: played on courses, and by the real engine; None where it was not."""

    policy: str
    course: dict[str, Figures] = field(default_factory=dict)
    """By arm."""
    full: dict[str, Figures] = field(default_factory=dict)


class Report(Struct, frozen=True, kw_only=True):
    """All there is to tell of a run."""

    arms: tuple[str, ...]
    policies: tuple[PolicyReport, ...]
    sessions: tuple[SessionResult, ...]
    """In order, without series."""
    shown: SessionResult | None
    """The session in which compaction can save most, with its series."""
    unread: tuple[Skipped, ...] = ()
    """Files, or rests of files, that gave no session."""

    @property
    def replayed(self) -> tuple[SessionResult, ...]:
        """The sessions that were not skipped."""
        return tuple(each for each in self.sessions if not each.skipped)

    @property
    def left_out(self) -> tuple[SessionResult, ...]:
        """The sessions that were."""
        return tuple(each for each in self.sessions if each.skipped)


class Gathering:
    """Takes results as they come; what it makes of them does not depend on their order."""

    def __init__(self) -> None:
        self._sessions: list[SessionResult] = []
        self._shown: SessionResult | None = None

    def add(self, result: SessionResult) -> None:
        """Take one result; its series are kept only as long as no other session is more worth showing."""
        self._sessions.append(without_series(result))
        if not result.skipped and (self._shown is None or _worth(result) > _worth(self._shown)):
            self._shown = result

    def report(self, policies: Sequence[str], *, unread: Sequence[Skipped] = ()) -> Report:
        """Return the report of all that was taken, the policies in this order."""
        sessions = tuple(sorted(self._sessions, key=lambda each: each.place))
        replayed = [each for each in sessions if not each.skipped]
        arms = tuple(dict.fromkeys(bounds.arm for each in replayed for bounds in each.bounds))
        told = [
            PolicyReport(
                policy=name,
                course=_by_arm(replayed, name, "course", arms),
                full=_by_arm(replayed, name, "full", arms),
            )
            for name in policies
        ]
        return Report(
            arms=arms, policies=tuple(told), sessions=sessions, shown=self._shown, unread=tuple(unread)
        )


def recorded_of(sessions: Iterable[SessionResult]) -> int:
    """Return what sessions cost as they were recorded, as far as that is known."""
    return sum(each.recorded or 0 for each in sessions)


def without_series(result: SessionResult) -> SessionResult:
    """Return a result without what was only for drawing."""
    return replace(
        result,
        times=(),
        outcomes=tuple(replace(outcome, series=None, events=()) for outcome in result.outcomes),
    )


def _worth(result: SessionResult) -> tuple[int, tuple[str, ...]]:
    """Return what the optimum saves in a session, and its place, so that of equals one is always the same."""
    bounds = result.bounds[0]
    return (bounds.never or 0) - (bounds.optimum or 0), result.place


def _by_arm(
    sessions: Iterable[SessionResult], policy: str, kind: Kind, arms: Sequence[str]
) -> dict[str, Figures]:
    pairs: Mapping[str, list[Pair]] = {arm: [] for arm in arms}
    for session in sessions:
        for outcome in session.outcomes:
            if (outcome.policy, outcome.kind) == (policy, kind):
                pairs[outcome.arm].append(Pair(outcome=outcome, bounds=session.bound(outcome.arm)))
    return {arm: figures_of(each) for arm, each in pairs.items() if each}
