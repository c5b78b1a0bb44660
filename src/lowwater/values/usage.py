"""What a provider says one call consumed."""

from msgspec import Struct


class Usage(Struct, frozen=True, kw_only=True):
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
