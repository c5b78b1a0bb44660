"""Why a call read less from the cache than it could have, and what that cost."""

from collections.abc import Sequence

from msgspec import Struct

from lowwater.core.api_calls import Usage
from lowwater.core.cache.belief import Boundary, chance_alive
from lowwater.core.costs.prices import nano_dollars
from lowwater.core.models.model import Marks
from lowwater.replay.audit.audited import Cause
from lowwater.replay.audit.calls import Call

SLACK_TOKENS, SLACK_SHARE = 1_024, 0.01
"""A shortfall of so little is where the provider's boundaries lie: steps, marks, the newest few tokens."""
_LIKELY = 0.5


class Miss(Struct, frozen=True, kw_only=True):
    """Tokens that one call did not read although the call before had left them, and what that cost more."""

    cause: Cause
    tokens: int
    cost: int | None


def misses_of(calls: Sequence[Call]) -> tuple[Miss | None, ...]:
    """Return the miss of each call, None where it read all it could.

    A call could have read the prompt of the one before, as far as its own reaches; the first could have read all of its
    own, had another session left it there. The tokens of all misses add up to the whole shortfall.
    """
    return tuple(map(_Following(is_cached=uses_cache(calls)).miss, calls))


def uses_cache(calls: Sequence[Call]) -> bool:
    """Whether any call says that it read from a cache or wrote to one."""
    return any(call.usage is not None and call.usage.prompt > call.usage.uncached for call in calls)


def shortfall(before: Usage | None, usage: Usage) -> int:
    """Return how many tokens a call did not read of what it could have."""
    could = usage.prompt if before is None else min(before.prompt, usage.prompt)
    return max(0, could - usage.cache_read)


def is_expired(before: Call, call: Call, *, long: bool) -> bool:
    """Whether the call came after what the one before stored was gone, by the provider's lifetimes."""
    used, now = before.answered if before.answered is not None else before.asked, call.at
    if used is None or now is None:
        return False
    held = Boundary(key=b"", tokens=0, used=used, long=long)
    return chance_alive(held, call.model.cache, now) < _LIKELY


def lifetime_after(usage: Usage, *, long: bool) -> bool:
    """Whether the cache keeps for the long lifetime what a session holds after a call; one that wrote nothing leaves it."""
    written = usage.cache_write or usage.cache_write_long
    return usage.cache_write_long > usage.cache_write if written else long


class _Following:
    """Follows the calls of a session: the one before, the first prompt, the lifetime of what is stored."""

    def __init__(self, *, is_cached: bool) -> None:
        self._is_cached = is_cached
        self._before: Call | None = None
        self._first = 0
        self._found = 0  # what the first call read, and a little more
        self._long = False

    def miss(self, call: Call) -> Miss | None:
        usage = call.usage
        if usage is None:
            return None
        before = self._before
        tokens = shortfall(before.usage if before else None, usage)
        found = Miss(cause=self._cause(call, usage, tokens), tokens=tokens, cost=_cost(call, usage, tokens))
        if self._before is None:
            self._first, self._found = usage.prompt, usage.cache_read + SLACK_TOKENS
        self._before = call
        self._long = lifetime_after(usage, long=self._long)
        return found if tokens else None

    def _cause(self, call: Call, usage: Usage, tokens: int) -> Cause:
        before = self._before
        if before is None or before.usage is None:
            return "first"
        if not self._is_cached:
            return "uncached"
        if tokens <= max(SLACK_TOKENS, SLACK_SHARE * before.usage.prompt):
            return "boundary"
        if call.compaction is not None:
            return "compaction"
        if call.model.name != before.model.name:
            return "model_changed"
        if is_expired(before, call, long=self._long):
            return "expired"
        return self._edited(call, usage, before.usage)

    def _edited(self, call: Call, usage: Usage, before: Usage) -> Cause:
        """Tell a change by the client from a loss at the provider.

        Clients change things when the user speaks, and the list of tools when the model searches for some. And a
        cache with marks holds nothing between what the first call found and the end of its prompt but boundaries
        that this call wrote all at once: where one of them is found and a later one is not, the prompt has changed.
        """
        inside = usage.cache_read < self._first
        has_marks = isinstance(call.model.cache.matching, Marks)
        if inside and (call.begins_turn or call.loads_tools):
            return "start_changed"
        if inside and has_marks and usage.cache_read > self._found:
            return "start_changed"
        if call.begins_turn or usage.prompt < before.prompt:
            return "prefix_edited"
        return "evicted"


def _cost(call: Call, usage: Usage, tokens: int) -> int | None:
    """Return what tokens cost more than reading them, billed like the rest of what the call did not read."""
    prices, rest = call.prices, usage.prompt - usage.cache_read
    if prices is None:
        return None
    if not rest:
        return 0
    long = prices.cache_write if prices.cache_write_long is None else prices.cache_write_long
    paid = (
        usage.uncached * prices.input + usage.cache_write * prices.cache_write + usage.cache_write_long * long
    )
    return nano_dollars(tokens * paid // rest - tokens * prices.cache_read)
