"""What a session has of the outside world."""

from collections.abc import Callable
from typing import cast

from msgspec import Struct

from lowwater.decide.warnings import UsageWarning
from lowwater.engine.asking import is_async
from lowwater.errors import BadInput
from lowwater.ports import AsyncSummarizer, Clock, MemoryHook, Sink, Store, Summarizer
from lowwater.values.registry import Registry
from lowwater.wiring.windows import Windows


class Outside(Struct, frozen=True, kw_only=True):
    """Who writes summaries, who is told, where sessions are kept, what time it is, and which models there are."""

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

    def blocking(self) -> tuple[Summarizer, ...]:
        """Return the summarizers for a call that blocks, or raise BadInput if one has to be awaited."""
        if any(is_async(summarizer) for summarizer in self.summarizers):
            raise BadInput("the summarizer is async: call aprepare or acompress instead, and apark for park")
        return cast(tuple[Summarizer, ...], self.summarizers)
