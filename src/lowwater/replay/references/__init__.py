"""Future-reference recall: what later answers of a session use, and whether a view still has it or recall can get it back."""

from lowwater.replay.references.finding import find
from lowwater.replay.references.outcome import Because, Outcome, Place, Recall, recall_of
from lowwater.replay.references.scoring import Scorer
from lowwater.replay.references.uses import Origin, Use, said_in, uses_of

__all__ = [
    "Because",
    "Origin",
    "Outcome",
    "Place",
    "Recall",
    "Scorer",
    "Use",
    "find",
    "recall_of",
    "said_in",
    "uses_of",
]
