"""What is on offer, by the families that policies think in, and what a plan made of it would leave."""

from collections.abc import Sequence

from lowwater.values.groups import Span
from lowwater.values.proposal import Proposal
from lowwater.values.situation import Situation

MIDDLE_EDITS = ("dedupe", "elide", "reasoning", "images")
PRUNING = (*MIDDLE_EDITS, "shorten")
"""Edits that take no call of a model. Outputs inside the tail are offered for shortening only at the wall or a ceiling."""
SQUEEZE = "squeeze"
"""The last step at the wall or a ceiling: whatever is left is shortened, but for the users' words."""
INTO_TAIL = frozenset({"shorten", "summarize_all", SQUEEZE})
"""What reaches into the protected start and end; offered only where the prompt does not fit."""


def useful(now: Situation, *mechanisms: str) -> tuple[Proposal, ...]:
    """Return the offers of these mechanisms that would make the view smaller, in the order of the mechanisms."""
    return tuple(offer for offer in now.offers(*mechanisms) if now.scaled(offer.removes) > 0)


def edits_of_others(now: Situation) -> tuple[Proposal, ...]:
    """Return the useful offers of mechanisms that are not ours: they edit parts of the middle."""
    others = (offer.mechanism for offer in now.proposals if offer.span is None)
    return useful(now, *(name for name in dict.fromkeys(others) if name not in (*PRUNING, SQUEEZE)))


def middle_edits(now: Situation) -> tuple[Proposal, ...]:
    """Return the useful offers that take no call of a model and leave head and tail alone."""
    return (*edits_of_others(now), *useful(now, *MIDDLE_EDITS))


def pruning(now: Situation) -> tuple[Proposal, ...]:
    """Return the useful offers that take no call of a model."""
    return (*edits_of_others(now), *useful(now, *PRUNING))


def summaries(now: Situation) -> tuple[Proposal, ...]:
    """Return the offers to replace the middle by text: as a whole, or else by chunks."""
    return useful(now, "summarize") or useful(now, "leaf", "condense")


def expected_after(now: Situation, plan: Sequence[Proposal]) -> int:
    """Return the size of the prompt that a plan should leave.

    What is edited inside a span that is replaced as well is counted once.
    """
    spans = [offer.span for offer in plan if offer.span is not None]
    edits = [offer for offer in plan if offer.span is None]
    replaced = sum(offer.removes for offer in plan if offer.span is not None)
    beside = sum(_outside(offer, spans) for offer in edits)
    counted = max(replaced + beside, sum(offer.removes for offer in edits))
    return max(0, now.prompt - now.scaled(counted))


def _outside(edit: Proposal, spans: Sequence[Span]) -> int:
    """Return what an edit removes outside of `spans`; one without targets is taken to lie inside them."""
    if not spans:
        return edit.removes
    whole = sum(target.tokens for target in edit.targets)
    outside = sum(
        target.tokens
        for target in edit.targets
        if not any(span.start <= target.item < span.stop for span in spans)
    )
    return edit.removes * outside // whole if whole > 0 else 0
