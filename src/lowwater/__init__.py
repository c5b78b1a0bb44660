"""Lowwater keeps a long LLM-agent conversation inside the model's window at the lowest total cost."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lowwater.core.accounts.difference import (
        Change,
        Difference,
        Models,
        PartChange,
        PreambleDifference,
        Size,
    )
    from lowwater.core.api_calls import Usage
    from lowwater.core.cache.marks import CacheMarks, Seams
    from lowwater.core.costs.tuning import SimplePayback, simple_payback
    from lowwater.core.decisions import Compact, Keep, Reason
    from lowwater.core.entries import Numbers
    from lowwater.core.events import Compaction, Phase, RecallUse, Rejected, Skip, TurnRecord
    from lowwater.core.limits import UsageWarning
    from lowwater.core.recall.recalled import Recalled, RecalledMessage
    from lowwater.core.stored import About
    from lowwater.core.summary.pins import Pin
    from lowwater.core.summary.request import SummaryRequest, Written
    from lowwater.core.turns.rewind import Checkpoint
    from lowwater.core.turns.state import Totals
    from lowwater.errors import BadInput, IllegalView, LowwaterError, StoreFailed, SummaryFailed
    from lowwater.protocols import AsyncSummarizer, Clock, MemoryHook, Sink, Store, Summarizer, Tokenizer
    from lowwater.session.factories import open_store
    from lowwater.session.idle import Idle
    from lowwater.session.library import Lowwater
    from lowwater.session.oneshot import Compressed, acompress, compress
    from lowwater.session.recall_tools import RecallTools
    from lowwater.session.request import PreparedRequest
    from lowwater.session.session import Session
    from lowwater.session.status import Status
    from lowwater.settings import (
        CompressionSettings,
        FallbackProvider,
        LeafSettings,
        ModelSettings,
        OutputSettings,
        PrivacySettings,
        Settings,
        ToolResultSettings,
        WarningLevels,
    )
    from lowwater.summarizers.model import AsyncModelSummarizer, ModelSummarizer

__version__: str

__all__ = [
    "About",
    "AsyncModelSummarizer",
    "AsyncSummarizer",
    "BadInput",
    "CacheMarks",
    "Change",
    "Checkpoint",
    "Clock",
    "Compact",
    "Compaction",
    "Compressed",
    "CompressionSettings",
    "Difference",
    "FallbackProvider",
    "Idle",
    "IllegalView",
    "Keep",
    "LeafSettings",
    "Lowwater",
    "LowwaterError",
    "MemoryHook",
    "ModelSettings",
    "ModelSummarizer",
    "Models",
    "Numbers",
    "OutputSettings",
    "PartChange",
    "Phase",
    "Pin",
    "PreambleDifference",
    "PreparedRequest",
    "PrivacySettings",
    "Reason",
    "RecallTools",
    "RecallUse",
    "Recalled",
    "RecalledMessage",
    "Rejected",
    "Seams",
    "Session",
    "Settings",
    "SimplePayback",
    "Sink",
    "Size",
    "Skip",
    "Status",
    "Store",
    "StoreFailed",
    "Summarizer",
    "SummaryFailed",
    "SummaryRequest",
    "Tokenizer",
    "ToolResultSettings",
    "Totals",
    "TurnRecord",
    "Usage",
    "UsageWarning",
    "WarningLevels",
    "Written",
    "acompress",
    "compress",
    "open_store",
    "simple_payback",
]

_HOMES = {
    "lowwater.core.accounts.difference": (
        "Change",
        "Difference",
        "Models",
        "PartChange",
        "PreambleDifference",
        "Size",
    ),
    "lowwater.core.api_calls": ("Usage",),
    "lowwater.core.cache.marks": (
        "CacheMarks",
        "Seams",
    ),
    "lowwater.core.costs.tuning": (
        "SimplePayback",
        "simple_payback",
    ),
    "lowwater.core.decisions": (
        "Compact",
        "Keep",
        "Reason",
    ),
    "lowwater.core.entries": ("Numbers",),
    "lowwater.core.events": (
        "Compaction",
        "Phase",
        "RecallUse",
        "Rejected",
        "Skip",
        "TurnRecord",
    ),
    "lowwater.core.limits": ("UsageWarning",),
    "lowwater.core.recall.recalled": (
        "Recalled",
        "RecalledMessage",
    ),
    "lowwater.core.stored": ("About",),
    "lowwater.core.summary.request": (
        "SummaryRequest",
        "Written",
    ),
    "lowwater.core.summary.pins": ("Pin",),
    "lowwater.core.turns.rewind": ("Checkpoint",),
    "lowwater.core.turns.state": ("Totals",),
    "lowwater.errors": (
        "BadInput",
        "IllegalView",
        "LowwaterError",
        "StoreFailed",
        "SummaryFailed",
    ),
    "lowwater.protocols": (
        "AsyncSummarizer",
        "Clock",
        "MemoryHook",
        "Sink",
        "Store",
        "Summarizer",
        "Tokenizer",
    ),
    "lowwater.session.factories": ("open_store",),
    "lowwater.session.idle": ("Idle",),
    "lowwater.session.library": ("Lowwater",),
    "lowwater.session.oneshot": (
        "Compressed",
        "acompress",
        "compress",
    ),
    "lowwater.session.recall_tools": ("RecallTools",),
    "lowwater.session.request": ("PreparedRequest",),
    "lowwater.session.session": ("Session",),
    "lowwater.session.status": ("Status",),
    "lowwater.settings": (
        "CompressionSettings",
        "FallbackProvider",
        "LeafSettings",
        "ModelSettings",
        "OutputSettings",
        "PrivacySettings",
        "Settings",
        "ToolResultSettings",
        "WarningLevels",
    ),
    "lowwater.summarizers.model": (
        "AsyncModelSummarizer",
        "ModelSummarizer",
    ),
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
