"""`dedupe`: a result that a later message repeats, replaces or makes stale points to that message instead."""

from collections.abc import Sequence

from lowwater.compact.digest import digest
from lowwater.compact.elide import replace_results
from lowwater.compact.making import Making
from lowwater.compact.offer import offer
from lowwater.compact.placeholder import repeats
from lowwater.compact.results import Result
from lowwater.compact.superseded import CHANGED, find_superseded
from lowwater.compact.zones import Zones
from lowwater.values.proposal import Proposal, Target
from lowwater.values.tools import subject_of
from lowwater.values.view import Item

NAME = "dedupe"
_LINE = 35
"""Tokens of the line that points to another message."""


def propose(
    items: Sequence[Item], zones: Zones, results: Sequence[Result], making: Making
) -> Proposal | None:
    """Offer those of `results`, all that are not protected, that lie in the middle and that a later one makes dispensable."""
    middle = zones.middle
    found = [
        again
        for again in find_superseded(results, making.preset.elide_limit_chars)
        if again.result.item in middle
    ]
    targets = [
        Target(
            item=again.result.item,
            path=again.result.path,
            tokens=again.result.tokens,
            how=again.how,
            by=again.by,
        )
        for again in found
    ]
    left = sum(min(target.tokens, _LINE + _digest_tokens(target, making)) for target in targets)
    return offer(NAME, items, targets, left=left)


def apply(items: Sequence[Item], proposal: Proposal, making: Making) -> list[Item]:
    """Return the items with the proposal's results replaced by the name of the message that has them.

    What a later change made stale stands nowhere else, and leaves a digest.
    """
    targets = {(target.item, target.path): target for target in proposal.targets}
    return replace_results(
        items, proposal, making, lambda result: _pointer(result, targets[result.place], making)
    )


def _pointer(result: Result, target: Target, making: Making) -> str:
    line = repeats(
        result.text,
        number=result.number,
        call=result.call,
        by=target.by,
        how=target.how,
        offers_recall=making.offers_recall,
    )
    tokens = _digest_tokens(target, making)
    if tokens <= 0:
        return line
    subject = subject_of(result.call) if result.call else ""
    names = digest(result.text, tool=result.kind, subject=subject, tokens=tokens, tokenizer=making.tokenizer)
    return f"{line}\n{names}" if names else line


def _digest_tokens(target: Target, making: Making) -> int:
    if target.how != CHANGED or making.preset.plain_placeholders:
        return 0
    return int(target.tokens * making.digest_ratio)
