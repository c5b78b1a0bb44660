"""How long a session need not look again for something to buy: looking through a long view takes a while."""

from msgspec import Struct

from lowwater.values.market import Market, best_of
from lowwater.values.stored_form import stored_as

_PATIENCE = 4
"""Looks again after this part of the calls that the nearest plan is away, for prices move meanwhile."""
_GROWTH = 1.03
"""Looks again when the prompt has grown by this factor: there is more to remove."""


class Rest(Struct, frozen=True, kw_only=True, rename=stored_as("rest"), forbid_unknown_fields=True):
    """Nothing was nearly due when a prompt of `prompt` tokens was looked through."""

    until: int
    """The reading of the meter at which to look again."""
    prompt: int

    def lasts(self, *, meter: int, prompt: int) -> bool:
        """Return whether it is too early to look again; only for a warm cache, for a cold one changes every price."""
        return meter < self.until and prompt < _GROWTH * self.prompt


def rest_after(market: Market, *, meter: int, read_price: int, prompt: int) -> Rest | None:
    """Return how long to rest after a look that found nothing to buy."""
    best = best_of(market.bargains)
    if best is None:
        return Rest(until=meter + _FOREVER, prompt=prompt)
    if best.is_due:
        return None
    calls = best.calls_left
    wait = _FOREVER if calls is None else read_price * (calls // _PATIENCE)
    return Rest(until=meter + wait, prompt=prompt) if wait > 0 else None


_FOREVER = 10**18
