"""`dedupe`: a result that a later message repeats, replaces or makes stale points to that message instead."""

from collections.abc import Sequence

from lowwater.compact.elide import replace_results
from lowwater.compact.making import Making, Result, calls_in, is_protected, part_tokens, results_in
from lowwater.compact.offer import offer
from lowwater.compact.placeholder import repeats
from lowwater.compact.superseded import Superseded, find_superseded
from lowwater.compact.zones import Zones
from lowwater.values.proposal import Proposal, Target
from lowwater.values.view import Edited, Item, Original

NAME = "dedupe"
_LEAVES = 0.03


def propose(items: Sequence[Item], zones: Zones, making: Making) -> Proposal | None:
    """Offer the results in the middle that a later result, in the tail too, makes dispensable."""
    targets: list[Target] = []
    for again in _superseded(items, making):
        item = items[again.result.item]
        if again.result.item in zones.middle and isinstance(item, Original | Edited):
            tokens = part_tokens(item, again.result.part)
            targets.append(Target(item=again.result.item, path=again.result.path, tokens=tokens))
    return offer(NAME, items, targets, leaves=_LEAVES)


def apply(items: Sequence[Item], proposal: Proposal, making: Making) -> list[Item]:
    """Return the items with repeated results replaced by the name of the message that has them."""
    found = {(again.result.item, again.result.path): again for again in _superseded(items, making)}

    def text_for(result: Result) -> str:
        again = found.get((result.item, result.path))
        if again is None:
            return ""
        return repeats(
            result.part.text,
            number=result.number,
            call=result.call,
            by=again.by,
            how=again.how,
            offers_recall=making.offers_recall,
        )

    return replace_results(items, proposal, making, text_for)


def _superseded(items: Sequence[Item], making: Making) -> list[Superseded]:
    results = results_in(items, range(len(items)), calls_in(items))
    usable = [result for result in results if not is_protected(result.tool, making.preset)]
    return find_superseded(usable, making.preset.elide_limit_chars)
