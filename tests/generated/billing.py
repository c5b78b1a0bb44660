"""What a provider would report for each call: a prefix cache that lives five minutes after its last use."""

from lowwater.core.api_calls import Usage

_UNMARKED = 4
"""Tokens behind the last cache mark: always paid in full."""


class PrefixCache:
    """The provider's side of one conversation that only grows, with a cache mark at its end on every call."""

    def __init__(self, lifetime: float = 300.0) -> None:
        self._lifetime = lifetime
        self._cached = 0
        self._used = float("-inf")

    def bill(self, prompt: int, output: int, at: float) -> Usage:
        """Return the usage of a call with `prompt` tokens at time `at`, and remember its prefix."""
        read = self._cached if at - self._used <= self._lifetime else 0
        uncached = min(_UNMARKED, prompt - read)
        self._cached, self._used = prompt - uncached, at
        return Usage(uncached=uncached, cache_read=read, cache_write=prompt - read - uncached, output=output)
