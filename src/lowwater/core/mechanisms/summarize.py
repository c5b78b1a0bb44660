"""`summarize`: the whole middle is replaced by one structured summary, which updates earlier ones.

`summarize_all`, for prompts that do not fit, replaces all but the newest exchanges that fit beside it, at least the last one, and, if
it is not too large, the head.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from lowwater.core.mechanisms.edits import newest_user
from lowwater.core.mechanisms.mechanism import (
    ProposalRequest,
    SummaryMechanism,
    Zones,
    smallest_head,
    smallest_tail,
    survey,
)
from lowwater.core.mechanisms.spans import offer_span
from lowwater.core.messages import Span
from lowwater.core.proposals import Proposal
from lowwater.core.summary.index import expected_tokens, tokens_of_indexes
from lowwater.core.view import Item, Summary, is_pin_block

NAME = "summarize"
EVERYTHING = "summarize_all"
_SHARES = (1.0, 0.85, 0.7, 0.5)
"""How much of the middle the summaries that are priced replace."""
_USUAL = 3_000
"""Tokens that a model usually writes, whatever its limit: of 72 summaries in recorded sessions, the median is 2,709 and the 90th percentile 4,142."""


def propose(request: ProposalRequest, zones: Zones) -> Proposal | None:
    """Propose to summarise the middle; it may become as long as the settings allow."""
    return _propose(NAME, request, zones, most=request.counted(request.limits.summary))


def propose_everything(request: ProposalRequest, zones: Zones) -> Proposal | None:
    """Propose to summarise all but the newest exchanges that fit beside the summary and, if it is not too large, the head.

    What is being worked on stays as it is, as far as there is room: a name in an index is worth less than one in its place.
    """
    smallest = with_small_head(request, smallest_tail(request.items, zones))
    # Where bytes are the limit, tokens do not tell what fits.
    kept = smallest if request.too_large else _with_tail_that_fits(request, smallest, least=zones.tail)
    return _propose(EVERYTHING, request, kept, most=request.counted(request.limits.summary))


def _with_tail_that_fits(request: ProposalRequest, zones: Zones, *, least: int) -> Zones:
    """Return zones whose tail begins as early as it can behind `least`, if head, summary, index and tail leave room for several turns."""
    items, room = request.items, request.counted(request.room)
    head = sum(item.tokens for item in items[: zones.head])
    for cut in sorted((at for at in zones.cuts if max(least, zones.head) < at <= zones.tail), reverse=True):
        replaced = items[zones.head : cut]
        beside = _length(request, replaced, most=request.counted(request.limits.summary))
        beside += expected_tokens(replaced) if request.context.offers_recall else 0
        tail = sum(item.tokens for item in items[cut:])
        if head + beside + tail > room:
            break
        zones = replace(zones, tail=cut)
    return zones


def propose_wider(request: ProposalRequest, zones: Zones) -> Proposal | None:
    """Propose to summarise between a head and a tail that are smaller than usual; the summary has the length expected of a model's."""
    most = usual(request.items[zones.head : zones.tail], most=request.counted(request.limits.summary))
    return _propose(EVERYTHING, request, zones, most=most)


def with_small_head(request: ProposalRequest, zones: Zones) -> Zones:
    """Return the zones; a large head shrinks to the smallest one allowed."""
    head = sum(item.tokens for item in request.items[: zones.head])
    return smallest_head(request.items, zones) if head > 2 * request.longest_result else zones


def propose_priced(request: ProposalRequest) -> list[Proposal]:
    """Return proposals to summarise the middle up to several legal cuts, the longest span first; for policies that compare prices."""
    zones = survey(request).zones
    request = replace(request, items=tuple(request.items))
    offers: list[Proposal] = []
    for tail in _tails(request.items, zones):
        cut = Zones(head=zones.head, tail=tail, cuts=zones.cuts)
        most = usual(request.items[zones.head : tail], most=request.counted(request.limits.summary))
        offer = _propose(NAME, request, cut, most=most)
        offers += [offer] if offer is not None else []
    return offers


def _tails(items: Sequence[Item], zones: Zones) -> list[int]:
    """Return the legal cuts nearest to each share of the middle, without duplicates."""
    whole = sum(items[at].tokens for at in zones.middle)
    cuts = [cut for cut in zones.cuts if zones.head < cut <= zones.tail]
    tokens_up_to: dict[int, int] = {}
    total = 0
    for at in zones.middle:
        total += items[at].tokens
        tokens_up_to[at + 1] = total
    nearest = [min(cuts, key=lambda cut: abs(tokens_up_to[cut] - share * whole)) for share in _SHARES if cuts]
    return list(dict.fromkeys(nearest))


def _propose(name: str, request: ProposalRequest, zones: Zones, *, most: int) -> Proposal | None:
    """Propose to summarise the middle, earlier summaries included.

    None if everything in it is a summary already, or the user's newest message, which would be repeated behind the summary.
    """
    items = request.items
    newest = newest_user(items)
    if all(isinstance(items[at], Summary) or at == newest for at in zones.middle):
        return None
    span = Span(start=zones.head, stop=zones.tail)
    replaced = items[zones.head : zones.tail]
    index = expected_tokens(replaced) if request.context.offers_recall else 0
    return offer_span(name, items, span, _length(request, replaced, most=most), index_tokens=index)


def largest(request: ProposalRequest, replaced: Sequence[Item]) -> int:
    """Return how long the summary of these items may be."""
    return _length(request, replaced, most=request.counted(request.limits.summary))


def expected(request: ProposalRequest, zones: Zones) -> int:
    """Return the expected length of a summary of everything before the tail, in counted tokens."""
    replaced = request.items[: zones.tail]
    return _length(request, replaced, most=usual(replaced, most=request.counted(request.limits.summary)))


def _length(request: ProposalRequest, replaced: Sequence[Item], *, most: int) -> int:
    compression = request.settings.compression
    return budget(replaced, ratio=compression.summary_ratio, least=compression.summary_min_tokens, most=most)


def budget(middle: Sequence[Item], *, ratio: float, least: int, most: int) -> int:
    """Return how long the summary of these items may be: a share of them, within bounds.

    An earlier summary among them counts in full, so that it does not shrink with every update.
    """
    known = _summarised(middle)
    raw = sum([item.tokens for item in middle if not isinstance(item, Summary)])
    return min(max(known + int(ratio * raw), least), most)


def usual(middle: Sequence[Item], *, most: int) -> int:
    """Return the expected length of a model's summary of these items: at least that of what it updates, at most `most`."""
    return min(most, max(_USUAL, _summarised(middle)))


def _summarised(items: Sequence[Item]) -> int:
    """Return how many tokens the summaries among these items have, without their indexes."""
    summaries = [item for item in items if isinstance(item, Summary) and not is_pin_block(item)]
    return sum(item.tokens for item in summaries) - tokens_of_indexes(summaries)


MECHANISMS = (
    SummaryMechanism(
        name=NAME,
        propose=propose,
        budget=largest,
        sentence="Replace the messages between the protected start and end by one summary",
        order=10,
    ),
    SummaryMechanism(
        name=EVERYTHING,
        propose=propose_everything,
        budget=largest,
        sentence="Replace everything but the protected start and the newest exchanges that fit beside it by one summary",
        reach="everywhere",
        order=40,
    ),
)
