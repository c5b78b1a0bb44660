"""Replays one recorded session under every policy and arm."""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import accumulate

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lowwater.adapters.models import load_registry
from lowwater.core.models.model import Model
from lowwater.errors import BadInput, BadSetting, LowwaterError, defect
from lowwater.lab.audit.calls import ModelPrices, audited_calls
from lowwater.lab.audit.findings import sum_of_known
from lowwater.lab.audit.session import rows_of
from lowwater.lab.course import Course, recorded_window
from lowwater.lab.peers import DECLARED, PEERS
from lowwater.lab.references.uses import LaterUse, uses_of
from lowwater.lab.replay.as_recorded import (
    AS_RECORDED,
    client_compactions,
    play_as_recorded,
    recorded_lifetime,
)
from lowwater.lab.replay.course_replay import (
    OPTIMUM,
    Assumed,
    Bounds,
    CourseReplay,
    PolicyOutcome,
    SessionResult,
)
from lowwater.lab.replay.engine_bound import EngineBound
from lowwater.lab.replay.live import CONFIGURATIONS, SHIPPED, Configuration, EngineRun, play_with_engine
from lowwater.lab.replay.script import (
    ARMS,
    ASSUMED,
    NEUTRAL,
    Arm,
    ReplayScript,
    cache_losses,
    course_for,
    gaps_of,
    model_named,
    script_of,
    sheet_of,
)
from lowwater.logs.recording import Recording
from lowwater.settings.coercion import did_you_mean, shown

VERSION = 10
"""The version of results, part of their keys: raise it with every change of how results are computed."""
_PRICING = ModelPrices()
MAX_REPLAYED_CALLS = 3_000
"""Only this many calls of a session are replayed: the optimum takes cubic time and quadratic memory."""
ENGINE_POLICIES: Mapping[str, str] = {
    "rent-or-buy": "rent-or-buy",
    "never": "never",
    "threshold-50": "threshold",
    "hermes-classic": "hermes-classic",
    "hermes-runway": "runway",
    "lcm-guarded": "guarded",
    "prune-naive": "prune-naive",
    "hygiene": "hygiene",
}
"""The policies that the real engine can play, with their names in the engine."""
POLICY_NAMES = (*dict.fromkeys([*DECLARED, *PEERS, *ENGINE_POLICIES]), OPTIMUM)
"""Every policy of a replay."""
BILLED_POLICIES = ("never", "claude-code", "hermes-classic", "rent-or-buy")


class ReplayOptions(Struct, frozen=True, kw_only=True):
    """The options of a run, the same for every session."""

    model: str = ""
    """The name of a model or a price sheet; empty for the recorded model."""
    policies: tuple[str, ...] = POLICY_NAMES
    arms: tuple[Arm, ...] = ARMS
    full: tuple[str, ...] = ("rent-or-buy", "never")
    """The policies that the real engine plays as well; it takes milliseconds per call, a course microseconds."""
    full_arms: tuple[str, ...] = (NEUTRAL.name,)
    """The arms in which the real engine plays."""
    configuration: str = SHIPPED.name
    """How the real engine is set up."""

    @property
    def by_engine(self) -> tuple[str, ...]:
        """The policies that the real engine plays."""
        return tuple(name for name in self.policies if name in self.full and name in ENGINE_POLICIES)

    @property
    def reported(self) -> tuple[str, ...]:
        """The names of all outcomes: the policies, and the recorded session beside those that the real engine plays."""
        return (*self.policies, AS_RECORDED) if self.by_engine else self.policies

    def __post_init__(self) -> None:
        for name in (*self.policies, *self.full):
            _require("policy", name, POLICY_NAMES)
        _require("configuration", self.configuration, tuple(CONFIGURATIONS))


def _require(what: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        hint = did_you_mean(name, known) or f"; there are {', '.join(known)}"
        raise BadSetting(f"there is no {what} {shown(name)} to replay{hint}")


class ReplayTask(Struct, frozen=True, kw_only=True):
    """One session to replay, with the options."""

    recording: Recording
    options: ReplayOptions

    @property
    def key(self) -> str:
        """A key that identifies the task in any process."""
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


def replay_session(task: ReplayTask) -> SessionResult:
    """Return the result of a session; errors become its `skipped`, so that one session does not stop the run."""
    recording = task.recording
    about = SessionResult(id=recording.id, agent=recording.agent, path=recording.path, key=task.key)
    try:
        about = replace(about, recorded=_recorded_bill(recording))
        return _replay(task, about)
    except LowwaterError as error:
        return replace(about, skipped=str(error))
    except Exception as error:  # noqa: BLE001 - a report of many sessions outlives a defect in one, and names it
        return replace(about, skipped=defect(error))


def _replay(task: ReplayTask, about: SessionResult) -> SessionResult:
    recording, options = task.recording, task.options
    model, whole = _model(recording, options), script_of(recording)
    assumed: dict[Assumed, bool] = {
        "times": whole.lacks_times,
        "model": not options.model and model.name != _recorded_model(recording),
    }
    script = whole.beginning(MAX_REPLAYED_CALLS)
    uses = uses_of(script.messages)
    course = course_for(script, uses, model=model.name, recorded=recording.model or model.name)
    bounds: list[Bounds] = []
    outcomes: list[PolicyOutcome] = []
    for arm in options.arms:
        lost = cache_losses(arm, script.name, gaps_of(script))
        on_course = CourseReplay(course, sheet_of(model), arm=arm.name, lost=lost)
        plays = bool(options.by_engine) and arm.name in options.full_arms
        engine = EngineBound(script, course, model, lost=lost).least() if plays else None
        bounds.append(on_course.bounds(engine=engine))
        outcomes += on_course.outcomes(options.policies)
    for arm in options.arms:
        if arm.name in options.full_arms:
            lost = cache_losses(arm, script.name, gaps_of(script))
            outcomes += _engine_outcomes(
                script,
                uses,
                model,
                course,
                options.by_engine,
                configuration=CONFIGURATIONS[options.configuration],
                arm=arm.name,
                lost=lost,
            )
    if options.by_engine and NEUTRAL in options.arms and NEUTRAL.name in options.full_arms:
        recorded = play_as_recorded(
            script,
            uses,
            client_compactions(recording),
            model=model,
            outputs=tuple(turn.output for turn in course.turns),
            fixed=course.fixed,
            cache_ttl=recorded_lifetime(recording),
        )
        outcomes.append(replace(recorded, arm=NEUTRAL.name))
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


def _recorded_bill(recording: Recording) -> int | None:
    """Return the recorded cost of the session's own calls; calls copied from other sessions, or without a price, are left out."""
    calls = [call for call in audited_calls(recording, _PRICING) if not call.made_by]
    return sum_of_known(row.figures.cost for row in rows_of(calls, [None] * len(calls), lambda _: ""))


def _model(recording: Recording, options: ReplayOptions) -> Model:
    """Return the model whose prices and cache rules apply: the one in the options, else the recorded one, else the assumed one.

    Unless the options name the model, its window is the one that the recording client used.
    """
    if options.model:
        return model_named(options.model, load_registry())
    found = load_registry().find(recording.model) if recording.model else None
    if found is None or found.prices is None:
        found = model_named(ASSUMED, load_registry())
    return replace(found, context_length=recorded_window(recording, found.context_length))


def _recorded_model(recording: Recording) -> str:
    return load_registry().find(recording.model).name if recording.model else ""


def _engine_outcomes(
    script: ReplayScript,
    uses: Sequence[LaterUse],
    model: Model,
    course: Course,
    policies: Sequence[str],
    *,
    configuration: Configuration,
    arm: str,
    lost: tuple[bool, ...],
) -> Iterator[PolicyOutcome]:
    """Yield the outcomes of policies played by the real engine."""
    for name in policies:
        run = EngineRun(
            policy=ENGINE_POLICIES[name],
            model=model,
            configuration=configuration,
            fixed=course.fixed,
            outputs=tuple(turn.output for turn in course.turns),
            lost=lost,
        )
        yield replace(play_with_engine(script, uses, run), policy=name, arm=arm)


class BillLine(Struct, frozen=True, kw_only=True):
    """The bill of one policy; money in nano-dollars."""

    policy: str
    cost: int
    """Cost of calls and summaries."""
    rework: int
    over_optimum: float
    """Cost ÷ optimum, including rework on both sides."""
    compactions: int
    summary_calls: int
    peak: int
    """The largest prompt."""

    @property
    def total(self) -> int:
        """The total cost, including rework."""
        return self.cost + self.rework


def bill_of(
    recording: Recording, *, model: str, policies: Sequence[str] = BILLED_POLICIES
) -> tuple[BillLine, ...]:
    """Return the bill of a session on its course under each policy and the optimum, the most expensive first.

    Policies under which the session does not fit the window are left out. Raises BadInput if it cannot be replayed.
    """
    options = ReplayOptions(model=model, policies=(*policies, OPTIMUM), arms=(NEUTRAL,), full=())
    result = replay_session(ReplayTask(recording=recording, options=options))
    if result.skipped:
        raise BadInput(result.skipped)
    least = result.bounds[0].optimum
    if least is None:
        raise BadInput("no schedule makes it fit the window")
    lines = [_bill_line(each, least) for each in result.outcomes if each.fits]
    return tuple(sorted(lines, key=lambda line: (-line.total, line.policy == OPTIMUM)))


def _bill_line(outcome: PolicyOutcome, least: int) -> BillLine:
    return BillLine(
        policy=outcome.policy,
        cost=outcome.cost,
        rework=outcome.rework,
        over_optimum=outcome.total / least,
        compactions=outcome.cadence.events,
        summary_calls=outcome.cadence.summary_calls,
        peak=outcome.peak_view,
    )
