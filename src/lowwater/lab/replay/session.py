"""One recorded session under every policy and arm: the work of one task."""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import accumulate

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lowwater.adapters.models import load_registry
from lowwater.core.models.model import Model
from lowwater.errors import BadInput, BadSetting, LowwaterError, defect
from lowwater.lab.audit.calls import Pricing, calls_of
from lowwater.lab.audit.findings import known_sum
from lowwater.lab.audit.session import rows_of
from lowwater.lab.course import Course, recorded_window
from lowwater.lab.peers import DECLARED, PEERS
from lowwater.lab.references.uses import Use, uses_of
from lowwater.lab.replay.live import Part, play_full
from lowwater.lab.replay.on_course import OPTIMUM, Assumed, Bounds, OnCourse, Outcome, SessionResult
from lowwater.lab.replay.script import (
    ARMS,
    ASSUMED,
    NEUTRAL,
    Arm,
    Script,
    course_for,
    gaps_of,
    losses,
    model_named,
    other_beside,
    script_of,
    sheet_of,
)
from lowwater.logs.recording import Recording
from lowwater.settings.fitting import did_you_mean, shown

VERSION = 4
"""What a result means: raised with every change of how one comes about, so that no older one is taken for it."""
_PRICING = Pricing()
MOST_CALLS = 3_000
"""Of longer sessions the first calls are replayed: the optimum takes time by their cube, and memory by their square."""
FULL: Mapping[str, str] = {
    "rent-or-buy": "rent-or-buy",
    "never": "never",
    "threshold-50": "threshold",
    "hermes-classic": "hermes-classic",
    "hermes-runway": "runway",
    "lcm-guarded": "guarded",
    "prune-naive": "prune-naive",
    "hygiene": "hygiene",
}
"""The policies that the real engine has, each with what it calls them there."""
NAMES = (*dict.fromkeys([*DECLARED, *PEERS, *FULL]), OPTIMUM)
"""Every policy of a replay."""
FOUR = ("never", "claude-code", "hermes-classic", "rent-or-buy")


class Options(Struct, frozen=True, kw_only=True):
    """What is asked of every session of a run."""

    model: str = ""
    """A model or a price sheet by name; empty for the one that was recorded."""
    policies: tuple[str, ...] = NAMES
    arms: tuple[Arm, ...] = ARMS
    full: tuple[str, ...] = ("rent-or-buy", "never")
    """Which of the policies the real engine plays too: a call takes it milliseconds, where a course takes microseconds."""
    full_arms: tuple[str, ...] = (NEUTRAL.name,)
    """In which arms it does."""

    @property
    def by_engine(self) -> tuple[str, ...]:
        """The policies that the real engine plays."""
        return tuple(name for name in self.policies if name in self.full and name in FULL)

    def __post_init__(self) -> None:
        for name in (*self.policies, *self.full):
            if name not in NAMES:
                hint = did_you_mean(name, NAMES) or f"; there are {', '.join(NAMES)}"
                raise BadSetting(f"there is no policy {shown(name)} to replay{hint}")


class Task(Struct, frozen=True, kw_only=True):
    """One session and what is asked of it."""

    recording: Recording
    options: Options

    @property
    def key(self) -> str:
        """What tells it from every other task, in any process."""
        recording = self.recording
        hashed = sha256(
            msgspec.msgpack.encode((VERSION, self.options, recording.agent, recording.id, recording.path))
        )
        hashed.update(msgspec.msgpack.encode((recording.model, recording.system, recording.tools)))
        for each in recording.messages:
            hashed.update(each.message.digest)
            hashed.update(msgspec.msgpack.encode((each.at, each.call, each.kind)))
        hashed.update(msgspec.msgpack.encode(recording.compactions))
        return hashed.hexdigest()[:32]


def replay_session(task: Task) -> SessionResult:
    """Return what a session comes to; one that cannot be replayed says why, and stops no other."""
    recording = task.recording
    about = SessionResult(id=recording.id, agent=recording.agent, path=recording.path, key=task.key)
    try:
        about = replace(about, recorded=_recorded(recording))
        return _replayed(task, about)
    except LowwaterError as error:
        return replace(about, skipped=str(error))
    except Exception as error:  # noqa: BLE001 - a report of many sessions outlives a defect in one, and names it
        return replace(about, skipped=defect(error))


def _replayed(task: Task, about: SessionResult) -> SessionResult:
    recording, options = task.recording, task.options
    model, whole = _model(recording, options), script_of(recording)
    assumed: dict[Assumed, bool] = {
        "times": whole.lacks_times,
        "model": not options.model and model.name != _named(recording),
    }
    script = whole.beginning(MOST_CALLS)
    uses = uses_of(script.messages)
    course = course_for(script, uses, model=model.name, recorded=recording.model or model.name)
    bounds: list[Bounds] = []
    outcomes: list[Outcome] = []
    for arm in options.arms:
        lost = losses(arm, script.name, gaps_of(script))
        on_course = OnCourse(course, sheet_of(model), arm=arm.name, lost=lost)
        bounds.append(on_course.bounds())
        outcomes += on_course.outcomes(options.policies)
    for arm in options.arms:
        if arm.name in options.full_arms:
            lost = losses(arm, script.name, gaps_of(script))
            outcomes += _full(script, uses, model, course, options.by_engine, arm=arm.name, lost=lost)
    return replace(
        about,
        model=model.name,
        calls=len(course.turns),
        beyond=len(whole.exchanges) - len(script.exchanges),
        fixed=course.fixed,
        times=tuple(accumulate(gaps_of(script))),
        bounds=tuple(bounds),
        outcomes=tuple(outcomes),
        assumed=tuple(what for what, is_so in assumed.items() if is_so),
    )


def _recorded(recording: Recording) -> int | None:
    """Return what the session's own calls cost as they were recorded; what others made, or nobody priced, is left out."""
    calls = [call for call in calls_of(recording, _PRICING) if not call.made_by]
    return known_sum(row.figures.cost for row in rows_of(calls, [None] * len(calls), lambda _: ""))


def _model(recording: Recording, options: Options) -> Model:
    """Return whose prices and rules count: the one asked for, else the recorded one, else what is assumed.

    The recorded one has the window that its client kept to.
    """
    if options.model:
        return model_named(options.model, load_registry())
    found = load_registry().find(recording.model) if recording.model else None
    if found is None or found.prices is None:
        found = model_named(ASSUMED, load_registry())
    return replace(found, context_length=recorded_window(recording, found.context_length))


def _named(recording: Recording) -> str:
    return load_registry().find(recording.model).name if recording.model else ""


def _full(
    script: Script,
    uses: Sequence[Use],
    model: Model,
    course: Course,
    policies: Sequence[str],
    *,
    arm: str,
    lost: tuple[bool, ...],
) -> Iterator[Outcome]:
    """Yield what policies of the engine come to."""
    for name in policies:
        part = Part(
            policy=FULL[name],
            model=model,
            other=other_beside(model, load_registry()),
            fixed=course.fixed,
            outputs=tuple(turn.output for turn in course.turns),
            lost=lost,
        )
        yield replace(play_full(script, uses, part), policy=name, arm=arm)


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
