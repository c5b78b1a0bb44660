"""Summaries: written without a model, framed, checked, repaired, and prepared for models that write them."""

from lowwater.compact.summary.critical import critical_references
from lowwater.compact.summary.extractive import Extractive, extract
from lowwater.compact.summary.framing import frame, static_marker, unframe
from lowwater.compact.summary.privacy import concealed
from lowwater.compact.summary.repairs import repair
from lowwater.compact.summary.transcript import transcript_for
from lowwater.compact.summary.validation import best, validate

__all__ = [
    "Extractive",
    "best",
    "concealed",
    "critical_references",
    "extract",
    "frame",
    "repair",
    "static_marker",
    "transcript_for",
    "unframe",
    "validate",
]
