"""Runs LeanCTX's own middleware over the whole history, as its clients do before each call; started in its environment.

What it does without a model is on: repeated messages are dropped, and old errors are cleared. LLMLingua is not: its weights would
have to be fetched.
"""

import copy
from typing import cast

from leanctx import Middleware  # type: ignore[import-not-found]  # only there

from bench.peers.serving import Messages, Opening, Peer, Reported, serve
from bench.peers.stand_in import StandIn


class Compressing:
    """The middleware of one client."""

    def __init__(self, opening: Opening) -> None:
        self._middleware = Middleware({"mode": "on", "trigger": {"threshold_tokens": opening.trigger}})
        self._history: Messages = []

    def request(self, new: Messages, _reported: Reported | None) -> Messages:
        """Return what it makes of the history."""
        self._history += new
        sent, _ = self._middleware.compress_messages(copy.deepcopy(self._history))
        return cast(Messages, sent)


def make(opening: Opening, _summariser: StandIn) -> Peer:
    """Return the middleware."""
    return Compressing(opening)


def main() -> None:
    """Serve."""
    serve(make)
