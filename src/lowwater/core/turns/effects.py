"""Effects: what a turn needs from outside the core, as values; `session/turns.py` carries them out."""

from collections.abc import Generator
from typing import Any, Literal, TypeVar

from msgspec import Struct

from lowwater.core.api_calls import Usage
from lowwater.core.ledger import Ledger
from lowwater.core.summary.request import SummaryRequest, Written

FailureKind = Literal["failed", "refused", "timeout", "auth", "network"]


class Summarize(Struct, frozen=True, kw_only=True):
    """Ask one summarizer for a summary; `rung` is its place in the session's ladder."""

    request: SummaryRequest
    rung: int
    ledger: Ledger | None = None
    """The ledger as this turn has changed it so far, which is not stored yet; None if the stored one is current."""
    extends_last_request: bool = False
    """The cheapest way to ask is to extend the last request, whose prefix is cached."""
    upto: int = 0
    """How many items from the start of the view the provider is to compact by itself; 0 if a text is wanted."""
    share: float = 1.0
    """The share of the turn's remaining time that the call may take, so that summarizers after it get theirs."""


class Failure(Struct, frozen=True, kw_only=True):
    """A summarizer gave no summary; `error` never contains text of a message."""

    kind: FailureKind
    error: str = ""
    at: float = 0.0
    """When the failure was known."""
    usage: Usage | None = None
    """The usage of an answer that contained no summary, if there was one."""


SummaryOutcome = Written | Failure


class Announce(Struct, frozen=True, kw_only=True):
    """Announce that the view is about to be compacted."""

    ledger: Ledger


class Compacted(Struct, frozen=True, kw_only=True):
    """Tell that the view was compacted; the answer is the texts that hooks add to it, a tuple of strings."""

    ledger: Ledger


Effect = Summarize | Announce | Compacted
T = TypeVar("T")
Steps = Generator[Effect, Any, T]
"""A turn as a generator: it yields effects and is sent their results; for a Summarize that is a SummaryOutcome."""
