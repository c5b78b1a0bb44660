"""Plans on sale: edits from each place where they could start, and summaries up to each place where one could end."""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lowwater.compact import native
from lowwater.compact.rework import chances_of_use
from lowwater.economics.bill import nano_dollars
from lowwater.engine.pricing import LEAST_SUMMARY, Pricing
from lowwater.values.market import Bargain, best_of
from lowwater.values.proposal import Proposal, Target
from lowwater.values.situation import scaled

EDITING = ("dedupe", "elide", "reasoning", "images")
_LEAST_SHARE = 100
"""What removes less than one part in so many of the prompt is not on sale: rewrites come in batches."""
_CUTS = 48
"""Places to start editing that are priced, evenly by what they remove."""
_LOST = {"elide": 0.15, "dedupe": 0.02, "reasoning": 0.0, "images": 0.3}
"""Of the later uses of what an edit removes, the share that is no longer in the view (`make bench-recall`)."""
_LOST_WITHOUT_DIGEST = 0.8
_LOST_BY_SUMMARY = 0.5


class _Piece(Struct, frozen=True, kw_only=True):
    """One part that an edit would replace, in the model's tokens and nano-dollars."""

    offer: int
    """The index of the proposal it belongs to."""
    target: Target
    removes: int
    rent: int
    rework: int


class _Sums(Struct, kw_only=True):
    """What pieces come to together."""

    removes: int = 0
    rent: int = 0
    rework: int = 0

    def add(self, piece: _Piece) -> None:
        self.removes += piece.removes
        self.rent += piece.rent
        self.rework += piece.rework


def put_on_sale(
    edits: Sequence[Proposal],
    summaries: Sequence[Proposal],
    pricing: Pricing,
    *,
    digests: bool,
    lost: Mapping[str, float] = {},
) -> list[Bargain]:
    """Return the best plan of edits alone, and the best with a summary; those that remove next to nothing are not on sale.

    `lost` has the share of later uses that mechanisms which are not ours lose, by name.
    """
    lost = {**_LOST, **lost, **({} if digests else {"elide": _LOST_WITHOUT_DIGEST})}
    chances = chances_of_use(pricing.items)
    pieces = sorted(
        _pieces(edits, pricing, chances, lost=lost), key=lambda piece: piece.target.item, reverse=True
    )
    starts = pricing.starts()
    replacing = [_summary(offer, edits, pieces, pricing, starts, chances=chances) for offer in summaries]
    found = (
        _prune(edits, pieces, pricing, starts),
        best_summary([plan for plan in replacing if plan is not None]),
    )
    least = pricing.prompt // _LEAST_SHARE
    return [bargain for bargain in found if bargain is not None and bargain.removes > least]


def _pieces(
    edits: Sequence[Proposal], pricing: Pricing, chances: Sequence[float], *, lost: Mapping[str, float]
) -> list[_Piece]:
    """Return the parts worth replacing once everything behind them is written again anyway."""
    pieces: list[_Piece] = []
    for at, edit in enumerate(edits):
        whole = sum(target.tokens for target in edit.targets)
        for target in edit.targets:
            removes = scaled(edit.removes * target.tokens // max(whole, 1), pricing.scale)
            tokens = scaled(target.tokens, pricing.scale)
            piece = _Piece(
                offer=at,
                target=target,
                removes=removes,
                rent=pricing.rent(pricing.items[target.item], removes),
                rework=pricing.rework(lost[edit.mechanism] * chances[target.item], tokens),
            )
            written = removes * pricing.prices.cache_write // 1_000
            if piece.rework <= written + piece.rent:
                pieces.append(piece)
    return pieces


def _prune(
    edits: Sequence[Proposal], pieces: Sequence[_Piece], pricing: Pricing, starts: Sequence[int]
) -> Bargain | None:
    """Return the best plan to edit everything from some item on; `pieces` are the last first."""
    step = max(1, sum(piece.removes for piece in pieces) // _CUTS)
    sums, due, cuts = _Sums(), step, list[tuple[int, Bargain]]()
    for at, piece in enumerate(pieces):
        sums.add(piece)
        ended = at + 1 == len(pieces)
        if not ended and (sums.removes < due or pieces[at + 1].target.item == piece.target.item):
            continue
        due = sums.removes + step
        cuts.append((at + 1, _priced(sums, starts, piece.target.item, pricing)))
    if not cuts:
        return None
    taken, best = max(cuts, key=lambda cut: cut[1].rank)
    return replace(best, plan=_plan(edits, pieces[:taken], pricing))


def _summary(
    offer: Proposal,
    edits: Sequence[Proposal],
    pieces: Sequence[_Piece],
    pricing: Pricing,
    starts: Sequence[int],
    *,
    chances: Sequence[float],
) -> Bargain | None:
    """Return the plan to summarise a span, with all edits behind it, which is written again anyway.

    A summary that takes no call is written already, and paid.
    """
    span = offer.span
    assert span is not None
    replaced = starts[span.stop] - starts[span.start]
    removes = scaled(offer.removes, pricing.scale)
    cost = cost_of_summary(offer, pricing, starts)
    if cost is None:
        return None
    # Behind a block of the provider's own nothing is edited: thinking there stays good only if all of it is as it was.
    apart = offer.mechanism == native.NAME
    behind = [] if apart else [piece for piece in pieces if piece.target.item >= span.stop]
    sums = _Sums()
    for piece in behind:
        sums.add(piece)
    share = removes / max(replaced, 1)
    for at in range(span.start, span.stop):
        tokens = starts[at + 1] - starts[at]
        sums.rent += pricing.rent(pricing.items[at], round(share * tokens))
        sums.rework += pricing.rework(_LOST_BY_SUMMARY * chances[at], tokens)
    sums.removes += removes
    bargain = _priced(sums, starts, span.start, pricing, summary_cost=cost)
    return replace(bargain, plan=(*_plan(edits, behind, pricing), offer))


def cost_of_summary(
    offer: Proposal, pricing: Pricing, starts: Sequence[int], *, summary: int | None = None
) -> int | None:
    """Return what the cheapest call costs that an offer needs, in nano-dollars; None if there is none that fits.

    `summary` is how many of the model's tokens it writes, if that is known better than from what the offer removes.
    """
    span = offer.span
    assert span is not None
    if not offer.calls:
        return 0
    replaced = starts[span.stop] - starts[span.start]
    tokens = replaced - scaled(offer.removes, pricing.scale) if summary is None else summary
    if offer.mechanism == native.NAME:
        call = pricing.native_call(upto=starts[span.stop], summary=max(LEAST_SUMMARY, tokens))
        return None if call is None else call.cost or 0
    calls = pricing.summary_calls(replaced=replaced, summary=max(LEAST_SUMMARY, tokens))
    return (calls[0][0].cost or 0) if calls else None


def best_summary(plans: Sequence[Bargain]) -> Bargain | None:
    """Return the best of several summaries; if one that is written already is due, nobody is asked for much the same.

    Another goes before it only if the rent on what it removes beyond it has reached the difference in price.
    """
    ready = next((plan for plan in plans if plan.is_due and not any(step.calls for step in plan.plan)), None)
    if ready is None:
        return best_of(plans)
    better = [plan for plan in plans if plan.rent - plan.price > ready.rent - ready.price]
    return best_of(better) or ready


def _priced(
    sums: _Sums, starts: Sequence[int], item: int, pricing: Pricing, *, summary_cost: int = 0
) -> Bargain:
    """Return what it takes to remove so much from an item on."""
    first_changed, outlook = starts[item], pricing.outlook
    purchase = pricing.purchase(first_changed=first_changed, removes=sums.removes, summary_cost=summary_cost)
    kept = min(first_changed, pricing.warmth.expected(first_changed))
    price, saves = purchase.price + sums.rework, nano_dollars(sums.removes * pricing.prices.cache_read)
    usual = price + pricing.usually_above(starts[pricing.tail])
    return Bargain(
        plan=(),
        removes=sums.removes,
        kept=kept,
        rewritten=max(0, pricing.prompt - sums.removes - kept),
        rent=sums.rent,
        price=price,
        summary=summary_cost,
        rework=sums.rework,
        saves=saves,
        worth=pricing.calls * saves - price,
        is_ripe=outlook is not None and outlook.is_ripe(saves=saves, price=price, usual=usual),
        wait=0
        if outlook is None
        else outlook.wait(saves=saves, price=pricing.risk(price, first_changed=first_changed)),
    )


def _plan(edits: Sequence[Proposal], pieces: Sequence[_Piece], pricing: Pricing) -> tuple[Proposal, ...]:
    """Return the proposals restricted to these pieces, in the order of `edits`."""
    plan: list[Proposal] = []
    for at, edit in enumerate(edits):
        targets = [piece.target for piece in reversed(pieces) if piece.offer == at]
        if not targets:
            continue
        whole = sum(target.tokens for target in edit.targets)
        removes = edit.removes * sum(target.tokens for target in targets) // max(whole, 1)
        first = min(target.item for target in targets)
        behind = sum(item.tokens for item in pricing.items[first:])
        plan.append(
            replace(
                edit,
                removes=removes,
                first_changed=first,
                survives=max(0, behind - removes),
                targets=tuple(targets),
            )
        )
    return tuple(plan)
