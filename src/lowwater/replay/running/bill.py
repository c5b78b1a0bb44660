"""The bill of one session: what it costs under a few policies, and what it costs at least."""

from collections.abc import Sequence

from msgspec import Struct

from lowwater.errors import BadInput
from lowwater.logs.recording import Recording
from lowwater.replay.running.arms import NEUTRAL
from lowwater.replay.running.on_course import OPTIMUM
from lowwater.replay.running.results import Outcome
from lowwater.replay.running.session import Options, Task, replay_session

FOUR = ("never", "claude-code", "hermes-classic", "rent-or-buy")


class BillLine(Struct, frozen=True, kw_only=True):
    """One policy; money in nano-dollars."""

    policy: str
    cost: int
    """Calls and summaries."""
    rework: int
    over_optimum: float
    """With rework, of both."""
    compactions: int
    summary_calls: int
    peak: int
    """The largest prompt."""

    @property
    def total(self) -> int:
        """All it costs, rework included."""
        return self.cost + self.rework


def bill_of(recording: Recording, *, model: str, policies: Sequence[str] = FOUR) -> tuple[BillLine, ...]:
    """Return the session's bill under policies and under the optimum, on its course, the dearest first.

    A policy under which it does not fit the window is left out. Raises BadInput if the session cannot be replayed.
    """
    options = Options(model=model, policies=(*policies, OPTIMUM), arms=(NEUTRAL,), full=())
    result = replay_session(Task(recording=recording, options=options))
    if result.skipped:
        raise BadInput(result.skipped)
    least = result.bounds[0].optimum
    if least is None:
        raise BadInput("no schedule makes it fit the window")
    lines = [_line(each, least) for each in result.outcomes if each.fits]
    return tuple(sorted(lines, key=lambda line: (-line.total, line.policy == OPTIMUM)))


def _line(outcome: Outcome, least: int) -> BillLine:
    return BillLine(
        policy=outcome.policy,
        cost=outcome.cost,
        rework=outcome.rework,
        over_optimum=outcome.total / least,
        compactions=outcome.cadence.events,
        summary_calls=outcome.cadence.summary_calls,
        peak=outcome.peak_view,
    )
