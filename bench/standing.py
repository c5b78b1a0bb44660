"""A summarizer that answers at once with one text, good enough to be accepted."""

from collections.abc import Callable

from msgspec import Struct

from lowwater.core.summary.critical import critical_references
from lowwater.core.summary.request import SummaryRequest, Written
from lowwater.errors import SummaryFailed

_NAMED = 0.6
"""Lowwater takes no summary that names less than half of what matters, or is much too long; Hermes takes any."""


class StandIn(Struct, kw_only=True):
    """Returns `text`, whatever it is asked."""

    NAME = "stand-in"

    text: str

    def summarize(self, _request: SummaryRequest, /) -> Written:
        """Return the text."""
        return Written(text=self.text, by=StandIn.NAME)

    @staticmethod
    def for_span(ask: Callable[["Listening"], object]) -> "StandIn":
        """Return the stand-in for what `ask` asks of the summarizer it is given.

        It names most of what matters there, the shortest names first.
        """
        listening = Listening()
        ask(listening)
        assert listening.heard is not None, "no summary was asked for"
        wanted = sorted((reference.text for reference in critical_references(listening.heard)), key=len)
        named = wanted[: int(len(wanted) * _NAMED)]
        return StandIn(text="\n- ".join(["## Critical Context", *named]))


class Listening:
    """A summarizer that only remembers what it was asked for."""

    def __init__(self) -> None:
        self.heard: SummaryRequest | None = None

    def summarize(self, request: SummaryRequest, /) -> Written:
        """Keep the request and fail."""
        self.heard = request
        raise SummaryFailed("nothing to say", kind="auth")
