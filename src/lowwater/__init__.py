"""Lowwater keeps a long LLM-agent conversation inside the model's window at the lowest total cost."""

from lowwater.decide.warnings import UsageWarning
from lowwater.engine.recall import Recalled
from lowwater.engine.rewinding import Checkpoint
from lowwater.errors import BadInput, IllegalView, LowwaterError, SummaryFailed
from lowwater.ports import AsyncSummarizer, Sink, Summarizer
from lowwater.values.events import Compaction
from lowwater.values.settings import Settings
from lowwater.values.summaries import SummaryRequest, Written
from lowwater.wiring.library import Lowwater
from lowwater.wiring.oneshot import Compressed, compress
from lowwater.wiring.request import PreparedRequest
from lowwater.wiring.session import Session
from lowwater.wiring.status import Status

__all__ = [
    "AsyncSummarizer",
    "BadInput",
    "Checkpoint",
    "Compaction",
    "Compressed",
    "IllegalView",
    "Lowwater",
    "LowwaterError",
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
    "compress",
]
