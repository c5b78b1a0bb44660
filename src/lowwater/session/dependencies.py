"""What a session depends on outside of the core: summarizers, sinks, hooks, store, clock, models."""

import logging
from collections.abc import Callable
from typing import cast

from msgspec import Struct

from lowwater.core.models.registry import Registry
from lowwater.core.policies.warnings import UsageWarning
from lowwater.errors import BadInput
from lowwater.protocols import AsyncSummarizer, Clock, MemoryHook, Sink, Store, Summarizer
from lowwater.session.driver import is_async
from lowwater.session.turn_input import doubts_about
from lowwater.session.windows import Windows

_log = logging.getLogger("lowwater")
_DOUBTED: set[str] = set()


class Dependencies(Struct, frozen=True, kw_only=True):
    """The services that all sessions of one `Lowwater` share."""

    summarizers: tuple[Summarizer | AsyncSummarizer, ...]
    sinks: tuple[Sink, ...]
    hooks: tuple[MemoryHook, ...]
    store: Store
    on_warning: Callable[[UsageWarning], object] | None
    quiet: bool
    clock: Clock
    deadline: float
    registry: Registry
    windows: Windows

    def doubt(self, model: str, *, base_url: str) -> None:
        """Log a warning about a model's name that is probably a mistake, once for each name in a process."""
        sentence = (
            "" if self.quiet or model in _DOUBTED else doubts_about(model, self.registry, base_url=base_url)
        )
        if sentence:
            _DOUBTED.add(model)
            _log.warning("%s", sentence)

    def blocking(self) -> tuple[Summarizer, ...]:
        """Return the summarizers for a call that blocks, or raise BadInput if one has to be awaited."""
        if any(is_async(summarizer) for summarizer in self.summarizers):
            raise BadInput("the summarizer is async: call aprepare, acompress or aprefetch_summary instead")
        return cast(tuple[Summarizer, ...], self.summarizers)
