"""`leaf` and `condense`: the oldest unsummarised chunk becomes a summary; several summaries become one of greater depth."""

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from lowwater.core.mechanisms.mechanism import ProposalRequest, SummaryMechanism, Zones
from lowwater.core.mechanisms.spans import offer_span
from lowwater.core.messages import Span
from lowwater.core.proposals import Proposal
from lowwater.core.view import Item, Summary, is_pin_block

LEAF = "leaf"
CONDENSE = "condense"
FAN_IN = 4
"""How many neighbouring summaries of one depth are merged at least."""


def propose_leaf(items: Sequence[Item], zones: Zones, *, chunk: int, target: int) -> Proposal | None:
    """Propose to summarise the oldest items of the middle that are no summaries: whole groups up to `chunk` tokens, at least one."""
    start = next((at for at in zones.middle if not isinstance(items[at], Summary)), None)
    if start is None:
        return None
    stop, spent = start, 0
    for begin, end in pairwise(cut for cut in zones.cuts if start <= cut <= zones.tail):
        group = items[begin:end]
        spent += sum(item.tokens for item in group)
        if any(isinstance(item, Summary) for item in group) or (stop > start and spent > chunk):
            break
        stop = end
    return offer_span(LEAF, items, Span(start=start, stop=stop), target)


def propose_condense(
    items: Sequence[Item], zones: Zones, *, target: int, fan_in: int = FAN_IN
) -> Proposal | None:
    """Propose to merge the oldest run of at least `fan_in` neighbouring summaries of one depth.

    If the middle consists of summaries only, any two neighbours are merged.
    """
    runs = [run for run in _runs(items, zones, by_depth=True) if len(run) >= fan_in]
    if not runs and all(isinstance(items[at], Summary) for at in zones.middle):
        runs = [run for run in _runs(items, zones, by_depth=False) if len(run) > 1]
    return offer_span(CONDENSE, items, runs[0], target) if runs else None


def depth_of(items: Sequence[Item], span: Span) -> int:
    """Return the depth of a summary of this span: one more than the deepest summary in it."""
    depths = [item.depth for item in items[span.start : span.stop] if isinstance(item, Summary)]
    return 1 + max(depths, default=0)


def _runs(items: Sequence[Item], zones: Zones, *, by_depth: bool) -> Iterator[Span]:
    """Yield the runs of neighbouring summaries in the middle; with `by_depth`, each of one depth."""

    def key(at: int) -> int:
        item = items[at]
        if not isinstance(item, Summary):
            return 0
        return item.depth if by_depth or is_pin_block(item) else 1

    for depth, indexes in groupby(zones.middle, key):
        if depth:
            run = list(indexes)
            yield Span(start=run[0], stop=run[-1] + 1)


def _leaf(request: ProposalRequest, zones: Zones) -> Proposal | None:
    leaf = request.settings.leaf
    chunk, target = request.counted(leaf.leaf_chunk_tokens), request.counted(leaf.leaf_target_tokens)
    return propose_leaf(request.items, zones, chunk=chunk, target=target)


def _condense(request: ProposalRequest, zones: Zones) -> Proposal | None:
    target = request.counted(request.settings.leaf.leaf_target_tokens)
    return propose_condense(request.items, zones, target=target)


def _budget(request: ProposalRequest, _: Sequence[Item]) -> int:
    return request.settings.leaf.leaf_target_tokens


MECHANISMS = (
    SummaryMechanism(
        name=LEAF,
        propose=_leaf,
        budget=_budget,
        sentence="Replace the oldest messages that were never summarised by a summary",
        order=20,
        in_passes=True,
    ),
    SummaryMechanism(
        name=CONDENSE,
        propose=_condense,
        budget=_budget,
        sentence="Merge several summaries into one",
        order=30,
        in_passes=True,
        merges=True,
    ),
)
