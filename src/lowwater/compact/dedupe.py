"""`dedupe`: a result that a later message repeats, replaces or makes stale points to that message instead."""

from collections.abc import Sequence

from lowwater.compact.digest import digest
from lowwater.compact.elide import replace_results
from lowwater.compact.making import Making
from lowwater.compact.offer import offer
from lowwater.compact.placeholder import repeats
from lowwater.compact.results import Result, calls_in, results_in
from lowwater.compact.superseded import Superseded, find_superseded
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
    """Offer those of `results`, all of the view, that lie in the middle and that a later one makes dispensable."""
    middle = zones.middle
    targets: list[Target] = []
    left = 0
    for again in _superseded(results, making):
        result, stays = again.result, _LINE + _digest_tokens(again, making)
        if result.item in middle and stays < result.tokens:
            targets.append(Target(item=result.item, path=result.path, tokens=result.tokens))
            left += stays
    return offer(NAME, items, targets, left=left)


def apply(items: Sequence[Item], proposal: Proposal, making: Making) -> list[Item]:
    """Return the items with the proposal's results replaced by the name of the message that has them.

    What a later change made stale stands nowhere else, and leaves a digest.
    """
    results = results_in(items, range(len(items)), calls_in(items))
    found = {again.result.place: again for again in _superseded(results, making)}

    def text_for(result: Result) -> str:
        again = found.get(result.place)
        return "" if again is None else _pointer(again, making)

    return replace_results(items, proposal, making, text_for)


def _superseded(results: Sequence[Result], making: Making) -> list[Superseded]:
    usable = [result for result in results if not making.preset.protects(result.tool)]
    return find_superseded(usable, making.preset.elide_limit_chars)


def _pointer(again: Superseded, making: Making) -> str:
    result, tokens = again.result, _digest_tokens(again, making)
    line = repeats(
        result.text,
        number=result.number,
        call=result.call,
        by=again.by,
        how=again.how,
        offers_recall=making.offers_recall,
    )
    if tokens <= 0:
        return line
    subject = subject_of(result.call) if result.call else ""
    names = digest(result.text, tool=result.kind, subject=subject, tokens=tokens, tokenizer=making.tokenizer)
    return f"{line}\n{names}" if names else line


def _digest_tokens(again: Superseded, making: Making) -> int:
    if again.how != "changed in" or making.preset.plain_placeholders:
        return 0
    return int(again.result.tokens * making.digest_ratio)
