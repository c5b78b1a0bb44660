"""Which decisions do not depend on what the mechanisms offer, so that most turns need not ask them."""

from lowwater.decide.reasons import Code
from lowwater.values.decision import Decision, Keep
from lowwater.values.situation import Situation

_BEFORE_OFFERS: frozenset[Code] = frozenset(
    {
        "disabled",
        "policy-never",
        "below-threshold",
        "below-hygiene",
        "too-few-messages",
        "too-little-raw",
        "budget-headroom",
        "cache-aware",
        "rent-cannot-be-due",
        "rent-rests",
        "undone",
    }
)


def is_settled(decision: Decision, now: Situation) -> bool:
    """Return whether a decision taken without any offers stands whatever is offered.

    Above a cliff or the provider's byte limit none does.
    """
    above = now.limits.cliff is not None and now.prompt >= now.limits.cliff
    if above or now.is_too_large:
        return False
    return isinstance(decision, Keep) and decision.because.code in _BEFORE_OFFERS
