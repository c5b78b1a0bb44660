"""Which decisions do not depend on what the mechanisms offer, so that most turns need not ask them."""

from lowwater.decide.reasons import Code
from lowwater.values.decision import Decision, Keep

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
    }
)


def is_settled(decision: Decision) -> bool:
    """Return whether a decision taken without any offers stands whatever is offered."""
    return isinstance(decision, Keep) and decision.because.code in _BEFORE_OFFERS
