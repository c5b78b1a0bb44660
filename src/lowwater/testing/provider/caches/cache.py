"""What every prompt cache does: bill one prompt, remember what it leaves behind."""

from typing import Protocol

from msgspec import Struct

from lowwater.testing.provider.prompt import Prompt


class Used(Struct, frozen=True, kw_only=True):
    """The tokens of one prompt by how they were billed; the figures do not overlap."""

    read: int = 0
    written: int = 0
    written_long: int = 0
    uncached: int = 0

    @property
    def prompt(self) -> int:
        """The whole prompt."""
        return self.read + self.written + self.written_long + self.uncached


class Cache(Protocol):
    """What one machine holds for one model."""

    def use(self, prompt: Prompt, now: float) -> Used:
        """Bill a prompt sent at `now` and remember what it and its answer leave behind."""
        ...
