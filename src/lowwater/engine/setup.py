"""What stays the same over a session's turns: models, settings, policy, tokenizer."""

from collections.abc import Callable

from msgspec import Struct

from lowwater.compact.making import Making
from lowwater.compact.mechanism import Mechanism
from lowwater.decide.policies import Policy
from lowwater.decide.presets import preset_under
from lowwater.engine.ladder import Ladder, Standing
from lowwater.engine.state import Route
from lowwater.ports import Tokenizer
from lowwater.values.message import Message
from lowwater.values.model import FallbackChain, Model
from lowwater.values.preset import Preset
from lowwater.values.settings import Settings


class Setup(Struct, frozen=True, kw_only=True):
    """How sessions are run."""

    chain: FallbackChain
    routes: tuple[Route, ...]
    """Where the models of the chain are, one for each."""
    settings: Settings
    policy: Policy
    tokenizer: Tokenizer
    size: Callable[[Message], int]
    size_preamble: Callable[[bytes, bytes], int]
    summary_models: tuple[Model | None, ...] = ()
    """The models that write summaries, by rung; None where it is not known which does."""
    rungs: int = 0
    """How many summarizers stand before the extractive one."""
    mechanisms: tuple[Mechanism, ...] = ()
    """Those that others wrote, in the order in which they are asked."""
    native: tuple[int, ...] = ()
    """The summarizers that can ask their provider to compact by itself, by rung."""

    @property
    def preset(self) -> Preset:
        """What the policy asks of the mechanisms, as the settings change it."""
        return preset_under(self.policy.preset, self.settings.tool_results)

    def ladder(self, standing: Standing) -> Ladder:
        """Return how summaries are asked for by a session that stands there."""
        compression = self.settings.compression
        return Ladder(
            rungs=self.rungs,
            first=standing.first,
            names=tuple(
                model.name if model else f"summarizer {rung}"
                for rung, model in enumerate(self.summary_models, start=1)
            ),
            competing=compression.competing_summaries,
            accepts_weak=compression.weak_summaries == "accept",
        )

    def making(self, *, offers_recall: bool) -> Making:
        """Return what the mechanisms need."""
        return Making(
            size=self.size,
            tokenizer=self.tokenizer,
            preset=self.preset,
            digest_ratio=self.settings.tool_results.digest_ratio,
            offers_recall=offers_recall,
            redact=self.settings.privacy.redact,
        )
