"""Lowwater keeps a long LLM-agent conversation inside the model's window at the lowest total cost."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lowwater.decide.warnings import UsageWarning
    from lowwater.engine.recall import Recalled
    from lowwater.engine.rewinding import Checkpoint
    from lowwater.errors import BadInput, IllegalView, LowwaterError, SummaryFailed
    from lowwater.ports import AsyncSummarizer, Sink, Summarizer
    from lowwater.send.summarizer import AsyncModelSummarizer, ModelSummarizer
    from lowwater.values.events import Compaction
    from lowwater.values.settings import Settings
    from lowwater.values.summaries import SummaryRequest, Written
    from lowwater.wiring.library import Lowwater
    from lowwater.wiring.oneshot import Compressed, acompress, compress
    from lowwater.wiring.request import PreparedRequest
    from lowwater.wiring.session import Session
    from lowwater.wiring.status import Status

__all__ = [
    "AsyncModelSummarizer",
    "AsyncSummarizer",
    "BadInput",
    "Checkpoint",
    "Compaction",
    "Compressed",
    "IllegalView",
    "Lowwater",
    "LowwaterError",
    "ModelSummarizer",
    "PreparedRequest",
    "Recalled",
    "Session",
    "Settings",
    "Sink",
    "Status",
    "Summarizer",
    "SummaryFailed",
    "SummaryRequest",
    "UsageWarning",
    "Written",
    "acompress",
    "compress",
]

_HOMES = {
    "lowwater.decide.warnings": ("UsageWarning",),
    "lowwater.engine.recall": ("Recalled",),
    "lowwater.engine.rewinding": ("Checkpoint",),
    "lowwater.errors": ("BadInput", "IllegalView", "LowwaterError", "SummaryFailed"),
    "lowwater.ports": ("AsyncSummarizer", "Sink", "Summarizer"),
    "lowwater.send.summarizer": ("AsyncModelSummarizer", "ModelSummarizer"),
    "lowwater.values.events": ("Compaction",),
    "lowwater.values.settings": ("Settings",),
    "lowwater.values.summaries": ("SummaryRequest", "Written"),
    "lowwater.wiring.library": ("Lowwater",),
    "lowwater.wiring.oneshot": ("Compressed", "acompress", "compress"),
    "lowwater.wiring.request": ("PreparedRequest",),
    "lowwater.wiring.session": ("Session",),
    "lowwater.wiring.status": ("Status",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Load a public name when it is first asked for, so that importing one part of Lowwater does not load all of it."""
    if name not in _HOME:
        raise AttributeError(f"module 'lowwater' has no attribute {name!r}")
    value: object = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
