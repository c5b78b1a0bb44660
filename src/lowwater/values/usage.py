"""What a provider says one call consumed."""

from collections.abc import Iterable

from msgspec import Struct

from lowwater.values.stored_form import stored_as


class Usage(Struct, frozen=True, kw_only=True, rename=stored_as("usage"), forbid_unknown_fields=True):
    """Tokens of one call as billed: the four input figures do not overlap, their sum is the prompt."""

    uncached: int = 0
    cache_read: int = 0
    cache_write: int = 0
    """Written at the provider's default lifetime."""
    cache_write_long: int = 0
    """Written at the provider's long lifetime (1h at Anthropic)."""
    output: int = 0

    @property
    def prompt(self) -> int:
        """All input tokens, however they were billed."""
        return self.uncached + self.cache_read + self.cache_write + self.cache_write_long


def together(usages: Iterable[Usage]) -> Usage:
    """Return what several calls consumed together; it has no price, because the size of each call decides its own."""
    each = tuple(usages)
    return Usage(
        uncached=sum(usage.uncached for usage in each),
        cache_read=sum(usage.cache_read for usage in each),
        cache_write=sum(usage.cache_write for usage in each),
        cache_write_long=sum(usage.cache_write_long for usage in each),
        output=sum(usage.output for usage in each),
    )
