"""How many compactions paid for themselves, and how well that was predicted."""

from collections.abc import Sequence

from msgspec import Struct

from lowwater.account.figures import mean
from lowwater.account.payback import Payback


class Repayment(Struct, frozen=True, kw_only=True):
    """What became of many compactions; those made before one and the same call count as one."""

    compactions: int
    paid: int
    """Have paid for themselves."""
    failed: int
    """Have not, and never will: undone, replaced, or their session ended."""
    undone: int
    """Of those that failed, were undone."""
    open: int
    """Have not yet."""
    unknown: int
    """Of these it cannot be told: no call came yet, or a price or a usage is not known."""
    missing: int
    """Nano-dollars that those that failed cost and did not save."""
    compared: int
    """Have paid for themselves and were predicted to."""
    predicted: float | None
    """The mean number of later calls after which these were to."""
    realised: float | None
    """The mean number of later calls after which they had."""


def repayment(paybacks: Sequence[Payback]) -> Repayment:
    """Return how these were paid back."""
    unknown = [payback for payback in paybacks if payback.missing is None and payback.turns is None]
    paid = [payback for payback in paybacks if payback.turns is not None]
    failed = [payback for payback in paybacks if payback.turns is None and payback.failed]
    compared = [payback for payback in paid if payback.predicted is not None]
    return Repayment(
        compactions=len(paybacks),
        paid=len(paid),
        failed=len(failed),
        undone=sum(payback.over == "undone" for payback in failed),
        open=len(paybacks) - len(unknown) - len(paid) - len(failed),
        unknown=len(unknown),
        missing=sum(payback.missing or 0 for payback in failed),
        compared=len(compared),
        predicted=mean(payback.predicted for payback in compared),
        realised=mean(payback.turns for payback in compared),
    )
