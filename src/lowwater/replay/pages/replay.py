"""The page of `lowwater replay --html`: what each policy would have cost and lost, beside the optimum."""

from collections import Counter
from collections.abc import Iterator, Sequence
from time import time

from lowwater.adapters.models import load_registry
from lowwater.core.models.model import Model
from lowwater.core.wording import counted
from lowwater.replay.pages.document import Document, Tile, written
from lowwater.replay.pages.naming import OURS
from lowwater.replay.pages.replay_data import MOST_SESSIONS, ArmData, PolicyRow, ReplayData, data_of
from lowwater.replay.pages.timelines import MOST_POINTS, Timeline, timeline_of
from lowwater.replay.pages.words import listed, money, share, times
from lowwater.replay.running.report import Report
from lowwater.replay.running.results import MATTERS
from lowwater.replay.running.script import PAUSE
from lowwater.replay.running.sheets import ASSUMED

_MOST_PRICES = 12
_MOST_REASONS = 3


def replay_page(report: Report, *, timelines: Sequence[Timeline] = (), made_at: float | None = None) -> str:
    """Return a report as one HTML file that needs no network; contents of messages are not in it.

    `timelines` are the sessions to be drawn call by call (`Timelines`); without any, it is the one the report has.
    """
    drawn = timelines or ((timeline_of(report.shown),) if report.shown is not None else ())
    data = data_of(report, drawn)
    first = data.arms[0] if data.arms else None
    return written(
        Document(
            report="replay",
            headline=_headline(first),
            lead=_lead(report),
            tiles=tuple(_tiles(first)) if first else (),
            texts=_texts(report, data),
            notes=tuple(_notes(report, data)),
            models=_models(report),
            made_at=time() if made_at is None else made_at,
            data=data,
        )
    )


def _ours(arm: ArmData) -> PolicyRow | None:
    return next((row for row in arm.policies if row.name == OURS), None)


def _others(arm: ArmData) -> list[PolicyRow]:
    """Return the other policies of the same kind that can be compared in dollars, the cheapest first."""
    found = [
        row
        for row in arm.policies
        if not row.is_ours
        and not row.is_optimum
        and row.kind == "course"
        and row.with_rework
        and not row.unfit
    ]
    return sorted(found, key=lambda row: row.with_rework or 0)


def _headline(arm: ArmData | None) -> str:
    if arm is None:
        return "No session could be replayed"
    ours, others = _ours(arm), _others(arm)
    if ours is None or ours.with_rework is None or ours.summed is None:
        return f"{counted(len(arm.policies) - 1, 'policy')} beside the cheapest schedule possible"
    within = f"Rent-or-buy comes within {share(ours.summed - 1)} of the cheapest schedule possible"
    dearer = [row.with_rework or 0 for row in others if (row.with_rework or 0) > ours.with_rework]
    if not dearer:
        return within
    least, most = (
        f"{cost / ours.with_rework - 1:.0%}".replace("%", " %") for cost in (dearer[0], dearer[-1])
    )
    more = least if least == most else f"{least} to {most}"
    who = "the others cost" if len(dearer) == len(others) else f"{len(dearer)} of {len(others)} others cost"
    return f"{within}; {who} {more} more"


def _lead(report: Report) -> str:
    done = report.replayed
    calls = sum(each.calls for each in done)
    models = listed(_by_use(report)[:3])
    agents = listed(sorted({each.agent for each in done}))
    said = f"{counted(len(done), 'recorded session')} with {counted(calls, 'call')}"
    by = f" of {agents}" if agents else ""
    return f"{said}{by}, played again under every policy at the prices of {models or 'no model'}, against the schedule that hindsight finds."


def _tiles(arm: ArmData) -> Iterator[Tile]:
    ours, others = _ours(arm), _others(arm)
    best = next((row for row in arm.policies if row.is_optimum), None)
    if ours is not None and ours.with_rework is not None:
        note = f"{money(ours.cost or 0)} for calls and summaries, the rest rework"
        yield Tile(name="Rent-or-buy", figure=money(ours.with_rework), note=note, is_ours=True)
        mean = f"mean where compaction matters; p95 {times(ours.p95)}"
        yield Tile(name="Cost ÷ optimum", figure=times(ours.mean), note=mean, is_ours=True)
    if best is not None and best.with_rework is not None:
        yield Tile(name="Optimum", figure=money(best.with_rework), note="with hindsight, rework included")
    if others:
        yield Tile(name="Next cheapest", figure=money(others[0].with_rework or 0), note=others[0].name)
        yield Tile(name="Dearest", figure=money(others[-1].with_rework or 0), note=others[-1].name)
    engine = next((row for row in arm.policies if row.is_ours and row.reach is not None), None)
    if engine is not None:
        note = f"of later uses in view ({share(engine.in_view)}) or one recall away, real engine"
        yield Tile(name="Within reach", figure=share(engine.reach), note=note)


def _texts(report: Report, data: ReplayData) -> dict[str, str]:
    matter = sum(each.bounds[0].matters for each in report.replayed)
    compared = data.arms[0].compared if data.arms else 0
    done = len(report.replayed)
    missing = counted(done - compared, "session")
    verb = "does" if done - compared == 1 else "do"
    left = f" Left out: {missing} that {verb} not fit under every policy." if done > compared else ""
    listing = (
        f"The {MOST_SESSIONS:,} of {done:,} in which compaction saves most are listed. "
        if done > MOST_SESSIONS
        else ""
    )
    return {
        "ranges_says": (
            f"Compaction matters in {matter:,} of {counted(done, 'session')}: without it they cost more than {MATTERS:.2f} times the "
            "optimum. The dot is the mean over these, the band reaches to the 95th percentile, the thin line to the worst "
            "session (with an arrow: beyond the scale). Filled dots have the optimum's own actions and cannot cost less than 1; hollow ones have others."
        ),
        "cumulated_says": (
            f"Rework included, over {counted(compared, 'session')}, from the shortest to the longest: what long sessions add is on the right.{left}"
        ),
        "timelines_says": _timelines_says(done, data.timelines),
        "sessions_says": f"{listing}Costs include rework. A name that is underlined opens the session above.",
    }


def _timelines_says(done: int, timelines: Sequence[Timeline]) -> str:
    if not timelines:
        return ""
    thin = sum(len(each.at) < each.calls for each in timelines)
    which = (
        f"The {len(timelines):,} of {counted(done, 'session')} in which compaction saves most can be chosen."
        if len(timelines) < done
        else "Every session can be chosen."
    )
    thinned = (
        f" Long ones are thinned to about {MOST_POINTS} calls; an event stands at the next call drawn."
        if thin
        else ""
    )
    return f"{which}{thinned}"


def _notes(report: Report, data: ReplayData) -> Iterator[str]:
    yield (
        "Measured: each recorded session, its messages and the times of its calls, played again against a simulated provider with the "
        "model's prices and cache rules. The answers are those recorded: a policy changes what a call costs, not what it says."
    )
    yield (
        "Played in numbers, a session is what each call added, at the prices of the default cache lifetime and without surcharges for long "
        "prompts or busy hours."
    )
    yield (
        "Rework is what it costs to get back what a later call demonstrably used and the view no longer had: one recall each, a read "
        "of the prompt and a write of the content."
    )
    yield (
        "The optimum is the cheapest schedule of prunes and summaries with hindsight, by dynamic programming. Policies with the same "
        "actions cannot cost less, which is asserted on every session; policies with other actions can."
    )
    yield "Policies named after other programs are models of them, played on the session in numbers; they are not those programs."
    if any(row.kind == "full" for arm in data.arms for row in arm.policies):
        yield (
            "“Real engine” is Lowwater itself on the real messages. Only there is recall measured: by a handle that is visible in the view, "
            "or by a search worded with text at hand; elsewhere what left the view counts as gone."
        )
    yield "Estimated: token counts where a model has no public tokenizer, the system prompt and tools where they were not recorded, and the size of summaries on the course."
    if len(data.arms) > 1:
        yield "The unkind cache loses prefixes early and sends some calls to the wrong machine, by draws that are the same for all policies."
    cut = [each.beyond for each in report.replayed if each.beyond]
    if cut:
        yield (
            f"{counted(len(cut), 'session')} of very many calls, played up to a limit: {counted(sum(cut), 'call')} beyond it are left "
            "out under every policy alike."
        )
    assumed = Counter(what for each in report.replayed for what in each.assumed)
    if assumed["times"]:
        yield f"{counted(assumed['times'], 'session')} without times: played with {PAUSE:.0f} seconds between calls."
    if assumed["model"]:
        yield f"{counted(assumed['model'], 'session')} without a model whose prices are known: charged as {ASSUMED}."
    skipped = Counter(each.skipped for each in report.sessions if each.skipped)
    for why, count in skipped.most_common(_MOST_REASONS):
        yield f"{counted(count, 'session')} could not be replayed: {why}."
    rest = sum(skipped.values()) - sum(count for _, count in skipped.most_common(_MOST_REASONS))
    if rest:
        yield f"{counted(rest, 'session')} more could not be replayed, for other reasons."


def _by_use(report: Report) -> list[str]:
    """Return the models that sessions were replayed with, the most used first."""
    calls: Counter[str] = Counter()
    for each in report.replayed:
        calls[each.model] += each.calls
    return [model for model, _ in calls.most_common()]


def _models(report: Report) -> tuple[Model, ...]:
    registry = load_registry()
    found = {(model := registry.find(name)).name: model for name in _by_use(report)[:_MOST_PRICES]}
    return tuple(found.values())
