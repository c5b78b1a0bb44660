"""Every reason code that a decision can carry; `explanations.py` has the sentence for each."""

from typing import Literal, get_args

from lowwater.core.decisions import Fact, Reason

Code = Literal[
    # keeping
    "disabled",
    "policy-never",
    "below-threshold",
    "below-hygiene",
    "too-few-messages",
    "nothing-offered",
    "nothing-by-hand",
    "no-leaf-offered",
    "prune-alone-too-small",
    "prune-alone-falls-short",
    "too-little-raw",
    "budget-headroom",
    "cache-aware",
    "does-not-fit",
    "too-many-bytes",
    "ceiling-out-of-reach",
    "irreducible",
    "rent-cannot-be-due",
    "undone",
    "rent-rests",
    "nothing-to-buy",
    "rent-below-price",
    "too-young-to-pay",
    "cooling-down",
    # compacting
    "by-hand",
    "wall",
    "wall-into-tail",
    "ceiling-into-tail",
    "byte-limit",
    "cliff",
    "rent-paid",
    "waiting-in-vain",
    "free-now",
    "summary-due",
    "prune-suffices",
    "prune-falls-short",
    "prune-too-small",
    "prune-and-summary",
    "leaf-due",
    "leaf-pressure",
    "full-sweep",
    "cooling-down-prune",
    # after a compaction that did not make the prompt smaller
    "not-smaller",
    # truncating tool results on arrival
    "too-large-at-the-door",
    "no-room-at-the-door",
    # after the provider refused a request
    "images-refused",
]
CODES: tuple[Code, ...] = get_args(Code)


def because(code: Code, **facts: Fact) -> Reason:
    """Return a reason with this code and the numbers that were compared."""
    return Reason(code=code, facts=facts)
