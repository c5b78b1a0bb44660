"""What stands beside the real peers: their models on the session's course, and the cheapest schedule of hindsight."""

from msgspec import Struct
from msgspec.structs import replace

from bench.peers.worker import WINDOW
from bench.real_peers_cases import Case
from lowwater.core.models.model import Model
from lowwater.lab.peers import PEERS, play_course
from lowwater.lab.replay.course_replay import OPTIMUM, CourseReplay, PolicyOutcome
from lowwater.lab.replay.script import course_for, sheet_of
from lowwater.lab.schedules import Tally


class Modelled(Struct, frozen=True, kw_only=True):
    """What a model of a policy comes to; money in nano-dollars."""

    cost: int
    """Calls and summaries."""
    rework: int = 0
    summaries: int = 0
    compactions: int = 0
    peak: int = 0
    in_view: int = 0


class Beside:
    """One session's course under one price sheet."""

    def __init__(self, case: Case, model: Model) -> None:
        self._course = course_for(case.script, case.uses, model=model.name, recorded=case.model or model.name)
        self._sheet = sheet_of(model)
        on_course = CourseReplay(
            self._course, self._sheet, arm="neutral", lost=(False,) * len(self._course.turns)
        )
        declared = on_course.outcomes((OPTIMUM, "never", "rent-or-buy"))
        self._declared = {outcome.policy: outcome for outcome in declared}

    @property
    def optimum(self) -> Modelled | None:
        """The cheapest schedule, None if no schedule fits the window."""
        return self.of(OPTIMUM)

    def of(self, name: str) -> Modelled | None:
        """Return what the policy of this name comes to, None if it does not fit the window or there is none.

        Peers are played in the window that the real ones are told, so that both start where the first measurement let them.
        """
        if name in self._declared:
            return _modelled(self._declared[name])
        if name not in PEERS:
            return None
        sheet = replace(self._sheet, window=WINDOW)
        cold = Tally(self._course, sheet).cold
        played = play_course(self._course, sheet, PEERS[name], cold=cold, believed=cold)
        if not played.fits:
            return None
        return Modelled(
            cost=played.spent,
            rework=played.total - played.spent,
            summaries=sum(event.summaries for event in played.events),
            compactions=len(played.events),
            peak=max(call.prompt for call in played.calls),
            in_view=played.in_view,
        )


def _modelled(outcome: PolicyOutcome) -> Modelled | None:
    if not outcome.fits:
        return None
    return Modelled(
        cost=outcome.cost,
        rework=outcome.rework,
        summaries=outcome.cadence.summary_calls,
        compactions=outcome.cadence.events,
        peak=outcome.peak_view,
        in_view=outcome.recall.in_view,
    )
