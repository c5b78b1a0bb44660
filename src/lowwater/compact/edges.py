"""Where a summary could end: how much of the middle it takes decides what stays to be written again behind it."""

from collections.abc import Sequence

from lowwater.compact import summarize
from lowwater.compact.propose import Asked, survey
from lowwater.compact.zones import Zones
from lowwater.values.proposal import Proposal
from lowwater.values.view import Item

_SHARES = (1.0, 0.85, 0.7, 0.5)
"""Of the tokens between head and tail; the first is all of them."""


def summaries(asked: Asked) -> list[Proposal]:
    """Return summaries of the middle up to several legal cuts, the longest first."""
    items = tuple(asked.items)
    zones = survey(asked).zones
    compression = asked.settings.compression
    offers: list[Proposal] = []
    for tail in _tails(items, zones):
        offer = summarize.propose(
            items,
            Zones(head=zones.head, tail=tail, cuts=zones.cuts),
            ratio=compression.summary_ratio,
            least=compression.summary_min_tokens,
            most=summarize.usual(items[zones.head : zones.tail], most=asked.counted(asked.limits.summary)),
        )
        if offer is not None:
            offers.append(offer)
    return offers


def _tails(items: Sequence[Item], zones: Zones) -> list[int]:
    """Return the legal cuts nearest to each share of the middle, without repetition."""
    whole = sum(items[at].tokens for at in zones.middle)
    cuts = [cut for cut in zones.cuts if zones.head < cut <= zones.tail]
    reached: dict[int, int] = {}
    spent = 0
    for at in zones.middle:
        spent += items[at].tokens
        reached[at + 1] = spent
    nearest = [min(cuts, key=lambda cut: abs(reached[cut] - share * whole)) for share in _SHARES if cuts]
    return list(dict.fromkeys(nearest))
