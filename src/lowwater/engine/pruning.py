"""Carrying out what takes no summary: all edits of a plan, or none of them."""

from collections.abc import Sequence
from math import ceil

from msgspec.structs import replace

from lowwater.compact import dedupe, elide, images, reasoning, shorten
from lowwater.compact.mechanism import applied
from lowwater.compact.propose import wall_limit
from lowwater.engine.work import Result, Work, first_difference, tokens_of
from lowwater.values.events import Phase
from lowwater.values.proposal import Proposal
from lowwater.values.view import Item

_LEAST_SCALE = 0.1


def prune(work: Work, proposals: Sequence[Proposal]) -> Result:
    """Make every edit, or none if together they reclaim too little to count."""
    if not proposals:
        return Result(items=tuple(work.asked.items))
    items: list[Item] = list(work.asked.items)
    done: list[Phase] = []
    for proposal in proposals:
        edited = _edit(work, items, proposal)
        if tokens_of(edited) < tokens_of(items):
            done.append(work.phase(proposal.mechanism, items, edited))
            items = edited
    counts = work.prompt - work.size(items) >= work.asked.limits.minimum_prune
    if not done or not (counts or work.by_hand or work.at_wall):
        return Result(items=tuple(work.asked.items))
    return Result(
        items=tuple(items),
        phases=tuple(done),
        first_changed=first_difference(work.asked.items, items),
    )


def squeeze(work: Work, result: Result, *, fit: int) -> Result:
    """Shorten whatever is left but the users' words until the prompt has at most `fit` tokens; none, if it has no more already."""
    over = work.size(result.items) - fit
    if over <= 0:
        return result
    tokens = tokens_of(result.items) - max(1, ceil(over / max(work.asked.scale, _LEAST_SCALE)))
    items = shorten.squeeze(result.items, work.making, tokens=tokens)
    if tokens_of(items) >= tokens_of(result.items):
        return result
    return replace(
        result,
        items=tuple(items),
        phases=(*result.phases, work.phase(shorten.SQUEEZE, result.items, items)),
        first_changed=first_difference(work.asked.items, items),
    )


def _edit(work: Work, items: Sequence[Item], proposal: Proposal) -> list[Item]:
    match proposal.mechanism:
        case dedupe.NAME:
            return dedupe.apply(items, proposal, work.making)
        case images.NAME:
            return images.apply(items, proposal, work.making)
        case reasoning.NAME:
            return reasoning.apply(items, proposal, work.making)
        case shorten.NAME:
            limit = wall_limit(work.asked.limits, work.asked.scale)
            return shorten.apply(items, proposal, work.making, limit=limit)
        case elide.NAME:
            return elide.apply(items, proposal, work.making)
        case name:
            theirs = next(mechanism for mechanism in work.asked.mechanisms if mechanism.name == name)
            return applied(theirs, items, proposal, work.making)
