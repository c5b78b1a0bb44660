"""A report as JSON for programs; dollars are dollars, shares are of one."""

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from lowwater.replay.running.figures import NANO, Figures
from lowwater.replay.running.report import PolicyReport, Report, recorded_of
from lowwater.replay.running.results import SessionResult


def told(report: Report) -> dict[str, Any]:
    """Return what there is to tell of a run: `policies` by name, lists of `sessions`, of those `skipped`, of files `unread`.

    What stands directly under a policy is the first arm on courses, where the optimum bounds it, or by the real engine if
    it has no course; `recall` is the strict measure, by the real engine, wherever that played.
    """
    return {
        "policies": {each.policy: _policy(each, report.arms) for each in report.policies if _main(each)},
        "sessions": [_session(each) for each in report.sessions],
        "skipped": {
            "sessions": len(report.left_out),
            "of_sessions": len(report.sessions),
            "recorded_usd": _dollars(recorded_of(report.left_out)),
            "of_recorded_usd": _dollars(recorded_of(report.sessions)),
            "each": [
                {
                    "id": each.id,
                    "path": each.path,
                    "why": each.skipped,
                    "recorded_usd": _dollars(each.recorded),
                }
                for each in report.left_out
            ],
        },
        "unread": [
            {"path": each.path, "why": each.why, "broken_lines": len(each.broken)} for each in report.unread
        ],
    }


def _main(policy: PolicyReport) -> Mapping[str, Figures]:
    return policy.course or policy.full


def _policy(policy: PolicyReport, arms: tuple[str, ...]) -> dict[str, Any]:
    figures = _main(policy)[arms[0]]
    strict = policy.full.get(arms[0], figures)
    return {
        **structs.asdict(figures),
        "recall": strict.recall,
        "played": "course" if policy.course else "full",
        "arms": {arm: each for arm, each in _main(policy).items() if arm != arms[0]},
        "full": dict(policy.full) or None,
    }


def _session(session: SessionResult) -> dict[str, Any]:
    about = {
        name: getattr(session, name) for name in ("id", "agent", "path", "model", "calls", "beyond", "fixed")
    } | {"recorded_usd": _dollars(session.recorded), "assumed": session.assumed}
    if session.skipped:
        return {**about, "skipped": session.skipped}
    first = session.bounds[0]
    return {
        **about,
        "optimum_usd": _dollars(first.optimum),
        "relaxed_usd": _dollars(first.relaxed),
        "never_usd": _dollars(first.never),
        "matters": first.matters,
        "outcomes": [
            {
                "policy": each.policy,
                "kind": each.kind,
                "arm": each.arm,
                "fits": each.fits,
                "cost_usd": _dollars(each.cost),
                "cost_with_rework_usd": _dollars(each.total),
                "uses": each.recall.uses,
                "in_view": each.recall.in_view,
                "one_recall": each.recall.one_recall,
            }
            for each in session.outcomes
        ],
    }


def _dollars(nano: int | None) -> float | None:
    return None if nano is None else nano / NANO
