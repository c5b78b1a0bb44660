"""Carrying out what takes no summary: all edits of a plan, or none of them."""

from collections.abc import Sequence

from lowwater.compact import dedupe, elide, images, reasoning, shorten
from lowwater.compact.mechanism import applied
from lowwater.compact.propose import wall_limit
from lowwater.engine.work import Result, Work, first_difference, tokens_of
from lowwater.values.events import Phase
from lowwater.values.proposal import Proposal
from lowwater.values.view import Item


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
