"""What a turn needs from the outside, as values; a driver fulfils them."""

from collections.abc import Callable, Generator
from typing import Any, Literal, TypeVar

from msgspec import Struct

from lowwater.core.api_calls import Usage
from lowwater.core.ledger import Ledger
from lowwater.core.summary.request import SummaryRequest, Written

FailureKind = Literal["failed", "refused", "timeout", "auth", "network"]


class Summarize(Struct, frozen=True, kw_only=True):
    """Ask the summarizer `rung` of the session's ladder."""

    request: SummaryRequest
    rung: int
    ledger: Ledger | None = None
    """What the turn has made of the session so far; None if that is what is kept."""
    rides: bool = False
    """Extending the request that was sent last is the cheapest way to ask."""
    upto: int = 0
    """So many items from the start of the view are what a provider is to compact by itself; 0 if it is to write text."""
    share: float = 1.0
    """The part of the turn's remaining time that it may take: those behind it want some too."""


class Failure(Struct, frozen=True, kw_only=True):
    """A summarizer did not answer with a summary; `said` never holds contents of a message."""

    kind: FailureKind
    said: str = ""
    at: float = 0.0
    """When that was known."""
    usage: Usage | None = None
    """What an answer without a summary in it consumed, if there was one."""


Outcome = Written | Failure


class Announce(Struct, frozen=True, kw_only=True):
    """Tell whoever wants to know that the view is about to be compacted."""

    ledger: Ledger


class Perform(Struct, frozen=True, kw_only=True):
    """Do something that may wait for a disk, and hand back what it returns."""

    call: Callable[[], object]


Effect = Summarize | Announce | Perform
T = TypeVar("T")
Steps = Generator[Effect, Any, T]
"""A turn: it yields effects and is sent what came of them, a Summarize an Outcome."""
