"""Summaries: written without a model, framed, checked, repaired, and prepared for models that write them."""

from lowwater.compact.summary.critical import critical_references
from lowwater.compact.summary.extractive import Extractive, extract
from lowwater.compact.summary.framing import frame, static_marker, unframe
from lowwater.compact.summary.privacy import concealed, shown_to_others
from lowwater.compact.summary.repairs import repair, restore
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
    "restore",
    "shown_to_others",
    "static_marker",
    "transcript_for",
    "unframe",
    "validate",
]
