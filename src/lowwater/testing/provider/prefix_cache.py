"""Bills prompts without a server, a cache per model, at one instant: for tests that have the requests already."""

from collections.abc import Sequence

from lowwater.testing.provider.caches import Machines, Used
from lowwater.testing.provider.prompt import Count, Piece, Prompt


class _StandingCache:
    """A provider's cache whose clock stands still."""

    caching: str

    def __init__(self) -> None:
        self._machines = Machines(now=lambda: 0.0, caching=self.caching)

    def use(self, model: str, prompt: Sequence[Piece], count: Count) -> Used:
        """Bill a prompt and remember what it leaves behind."""
        caching = self._machines.caching(model, otherwise=self.caching)
        return self._machines.use(Prompt(prompt, count), model, caching)


class MarkedCache(_StandingCache):
    """Anthropic's; a model that is not a Claude has no least size."""

    caching = "anthropic"


class RunningCache(_StandingCache):
    """OpenAI's until GPT-5.5."""

    caching = "openai-5.5"
