"""The quality ceiling: no prompt above `max_view_tokens`, whatever the policy (docs/specification.md: A)."""

from msgspec.structs import replace

from lowwater.decide.offers import INTO_TAIL, SQUEEZE, expected_after, middle_edits, summaries, useful
from lowwater.decide.prune_first import Trigger, prune_first
from lowwater.decide.reasons import because
from lowwater.decide.wall import expected_with_squeeze, fitting_plan
from lowwater.values.decision import Compact, Decision, Keep
from lowwater.values.limits import TURNS_BETWEEN
from lowwater.values.settings import Settings
from lowwater.values.situation import Situation

_TRIES = 2
"""Compactions in a row that may end above the ceiling before it is left alone for some turns: the first may fall short of its plan."""


def above_ceiling(now: Situation, settings: Settings) -> Decision | None:
    """Compact what is larger than the user wants the model to see, into head and tail if the middle does not do.

    Where even that does not help, it is tried again after some turns, and every decision in between says so.
    """
    ceiling = settings.compression.max_view_tokens
    if ceiling is None:
        return None
    now = replace(now, limits=replace(now.limits, ceiling=ceiling))
    if now.prompt <= now.limits.most:
        return None
    plan = () if _in_vain(now, ceiling) else fitting_plan(now)
    return _in_the_middle(now, ceiling) or _into_tail(now, ceiling) if plan else _out_of_reach(now, ceiling)


def _in_vain(now: Situation, ceiling: int) -> bool:
    past = now.past
    return past.fruitless >= _TRIES and past.floor > ceiling and past.turns_since < TURNS_BETWEEN


def _in_the_middle(now: Situation, ceiling: int) -> Compact | None:
    """Prune, and summarise if that is not enough; None if that would leave no room for some turns of growth."""
    limits = now.limits
    usual = tuple(offer for offer in now.proposals if offer.mechanism not in INTO_TAIL)
    wanted = prune_first(replace(now, proposals=usual), _trigger(now, ceiling))
    if not isinstance(wanted, Compact) or now.past.fruitless > 0:
        return None
    if expected_after(now, wanted.proposals) > limits.roomy:
        return None
    return replace(wanted, proposals=(*wanted.proposals, *useful(now, SQUEEZE)), fit=limits.roomy)


def _into_tail(now: Situation, ceiling: int) -> Compact:
    plan, trigger = fitting_plan(now), _trigger(now, ceiling)
    reason = because(
        "ceiling-into-tail",
        prompt=now.prompt,
        ceiling=ceiling,
        middle=expected_after(now, (*middle_edits(now), *summaries(now))),
        enough=trigger.enough,
        expected=expected_with_squeeze(now, plan),
    )
    return replace(trigger.compact(plan, reason), fit=now.limits.roomy)


def _trigger(now: Situation, ceiling: int) -> Trigger:
    limits = now.limits
    enough = min(limits.target, max(0, ceiling - limits.runway), limits.roomy)
    return Trigger(limit="ceiling max_view_tokens", at=ceiling + 1, enough=enough)


def _out_of_reach(now: Situation, ceiling: int) -> Keep:
    return Keep(because=because("ceiling-out-of-reach", prompt=now.prompt, ceiling=ceiling))
