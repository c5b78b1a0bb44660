"""When waiting costs more than it is worth: what a session was like so far says what waiting can still save.

A purchase that waits is made once for more tokens, perhaps at a lower price, and perhaps never, if the session ends. If
every call is the last with a chance h, prompts grow so that the rent of a call grows by g from call to call, and a purchase
usually costs F, total cost is least if one buys when the rent of a call has reached

    c = m·g/h        where m − 1 + exp(−m) = F·h²/g

For a session that never ends that is √(2·F·g): the square-root law. A moment at which the price P is below the usual one is
taken earlier, from c·(1 − √(1 − P/F)) on: whoever lets it pass pays rent, and the usual price in the end.

All of that is an expectation, and most sessions end earlier than the mean. So nothing is bought, rent paid or not, that does
not pay for itself within half as many calls as there were: sessions of any age go on for so many in two cases of three.
"""

from math import expm1, log, sqrt

from msgspec import Struct

_PAYBACK = 2
"""A purchase has to pay for itself within one part in so many of the calls so far (bench/README.md, "The tail")."""
_NEVER = 10**12
_STEPS = 5
"""Of Newton's method; four are exact to a millionth."""


class Outlook(Struct, frozen=True, kw_only=True):
    """What is to be expected of a session; money in any one unit."""

    calls: int
    """Calls so far. A session of any age is as likely as not to go on for as many more."""
    growth: int
    """By how much the rent of one call grows from call to call."""

    def is_ripe(self, *, saves: int, price: int, usual: int) -> bool:
        """Whether to buy now what saves so much at each call: waiting is worth less than the rent of one call.

        `usual` is what the same purchase costs at most moments, and no less than `price`.
        """
        if price <= 0:
            return True
        early = 1 - sqrt(max(0.0, 1 - price / max(usual, price)))
        return saves >= early * self.patience(max(usual, price))

    def wait(self, *, saves: int, price: int) -> int:
        """Return for how many more calls a session has to go on before it is old enough to pay so much; 0 if it is.

        What saves something at once is always bought; what saves nothing and costs something never is.
        """
        if price <= 0:
            return 0
        if saves <= 0:
            return _NEVER
        return max(0, -(-_PAYBACK * price // saves) - self.calls)

    def patience(self, usual: int) -> float:
        """Return the rent of one call up to which waiting is worth it, at the usual price."""
        growth, lasts = max(1, self.growth), max(1, self.calls) / log(2)
        return growth * lasts * _wait(usual / (growth * lasts * lasts))


def _wait(share: float) -> float:
    """Return m for which m − 1 + exp(−m) is `share`."""
    found = sqrt(2 * share) + share / 3
    for _ in range(_STEPS):
        if found <= 0:
            return 0.0
        found += (share - found - expm1(-found)) / -expm1(-found)
    return found
