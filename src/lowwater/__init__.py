"""Lowwater keeps a long LLM-agent conversation inside the model's window at the lowest total cost."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lowwater.core.accounts.difference import Difference
    from lowwater.core.costs.tuning import SimplePayback, simple_payback
    from lowwater.core.events import Compaction, TurnRecord
    from lowwater.core.limits import UsageWarning
    from lowwater.core.recall.recalled import Expansion, Recalled
    from lowwater.core.summary.request import SummaryRequest, Written
    from lowwater.core.turns.rewind import Checkpoint
    from lowwater.errors import BadInput, IllegalView, LowwaterError, StoreFailed, SummaryFailed
    from lowwater.protocols import AsyncSummarizer, MemoryHook, Sink, Store, Summarizer
    from lowwater.session.factories import open_store
    from lowwater.session.library import Lowwater
    from lowwater.session.oneshot import Compressed, acompress, compress
    from lowwater.session.recall_tools import RecallTools
    from lowwater.session.request import PreparedRequest
    from lowwater.session.session import Session
    from lowwater.session.status import Status
    from lowwater.settings import Settings
    from lowwater.summarizers.model import AsyncModelSummarizer, ModelSummarizer

__version__: str

__all__ = [
    "AsyncModelSummarizer",
    "AsyncSummarizer",
    "BadInput",
    "Checkpoint",
    "Compaction",
    "Compressed",
    "Difference",
    "Expansion",
    "IllegalView",
    "Lowwater",
    "LowwaterError",
    "MemoryHook",
    "ModelSummarizer",
    "PreparedRequest",
    "RecallTools",
    "Recalled",
    "Session",
    "Settings",
    "SimplePayback",
    "Sink",
    "Status",
    "Store",
    "StoreFailed",
    "Summarizer",
    "SummaryFailed",
    "SummaryRequest",
    "TurnRecord",
    "UsageWarning",
    "Written",
    "acompress",
    "compress",
    "open_store",
    "simple_payback",
]

_HOMES = {
    "lowwater.core.accounts.difference": ("Difference",),
    "lowwater.core.limits": ("UsageWarning",),
    "lowwater.core.costs.tuning": ("SimplePayback", "simple_payback"),
    "lowwater.core.recall.recalled": ("Expansion", "Recalled"),
    "lowwater.session.recall_tools": ("RecallTools",),
    "lowwater.core.turns.rewind": ("Checkpoint",),
    "lowwater.errors": ("BadInput", "IllegalView", "LowwaterError", "StoreFailed", "SummaryFailed"),
    "lowwater.protocols": ("AsyncSummarizer", "MemoryHook", "Sink", "Store", "Summarizer"),
    "lowwater.summarizers.model": ("AsyncModelSummarizer", "ModelSummarizer"),
    "lowwater.core.events": ("Compaction", "TurnRecord"),
    "lowwater.settings": ("Settings",),
    "lowwater.core.summary.request": ("SummaryRequest", "Written"),
    "lowwater.session.library": ("Lowwater",),
    "lowwater.session.oneshot": ("Compressed", "acompress", "compress"),
    "lowwater.session.request": ("PreparedRequest",),
    "lowwater.session.session": ("Session",),
    "lowwater.session.status": ("Status",),
    "lowwater.session.factories": ("open_store",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Load a public name when it is first asked for, so that importing one part of Lowwater does not load all of it."""
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - for those who ask

        return version("lowwater")
    if name not in _HOME:
        raise AttributeError(f"module 'lowwater' has no attribute {name!r}")
    value: object = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
