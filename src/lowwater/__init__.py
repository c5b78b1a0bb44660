"""Lowwater keeps a long LLM-agent conversation inside the model's window at the lowest total cost."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lowwater.account.difference import Difference
    from lowwater.decide.warnings import UsageWarning
    from lowwater.economics.break_even import SimplePayback, simple_payback
    from lowwater.engine.recall import Expansion, Recalled, RecallTools
    from lowwater.engine.rewinding import Checkpoint
    from lowwater.errors import BadInput, IllegalView, LowwaterError, StoreFailed, SummaryFailed
    from lowwater.ports import AsyncSummarizer, MemoryHook, Sink, Store, Summarizer
    from lowwater.send.summarizer import AsyncModelSummarizer, ModelSummarizer
    from lowwater.values.events import Compaction
    from lowwater.values.settings import Settings
    from lowwater.values.summaries import SummaryRequest, Written
    from lowwater.values.turn_record import TurnRecord
    from lowwater.wiring.library import Lowwater
    from lowwater.wiring.oneshot import Compressed, acompress, compress
    from lowwater.wiring.request import PreparedRequest
    from lowwater.wiring.session import Session
    from lowwater.wiring.status import Status
    from lowwater.wiring.stores import open_store

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
    "lowwater.account.difference": ("Difference",),
    "lowwater.decide.warnings": ("UsageWarning",),
    "lowwater.economics.break_even": ("SimplePayback", "simple_payback"),
    "lowwater.engine.recall": ("Expansion", "RecallTools", "Recalled"),
    "lowwater.engine.rewinding": ("Checkpoint",),
    "lowwater.errors": ("BadInput", "IllegalView", "LowwaterError", "StoreFailed", "SummaryFailed"),
    "lowwater.ports": ("AsyncSummarizer", "MemoryHook", "Sink", "Store", "Summarizer"),
    "lowwater.send.summarizer": ("AsyncModelSummarizer", "ModelSummarizer"),
    "lowwater.values.events": ("Compaction",),
    "lowwater.values.settings": ("Settings",),
    "lowwater.values.summaries": ("SummaryRequest", "Written"),
    "lowwater.values.turn_record": ("TurnRecord",),
    "lowwater.wiring.library": ("Lowwater",),
    "lowwater.wiring.oneshot": ("Compressed", "acompress", "compress"),
    "lowwater.wiring.request": ("PreparedRequest",),
    "lowwater.wiring.session": ("Session",),
    "lowwater.wiring.status": ("Status",),
    "lowwater.wiring.stores": ("open_store",),
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
