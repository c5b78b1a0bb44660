"""Runs llmtrim's own `compress` over each request, with its preset for agents; started in its environment."""

import json
from typing import cast

from llmtrim import Provider, compress  # type: ignore[import-not-found]  # only there

from bench.peers.serving import Messages, Opening, Peer, Reported, serve
from bench.peers.stand_in import StandIn

MODEL = "gpt-4o"


class Compressing:
    """`compress`, which keeps no state of its own."""

    def __init__(self, opening: Opening) -> None:
        self._preset = opening.variant
        self._history: Messages = []

    def request(self, new: Messages, _reported: Reported | None) -> Messages:
        """Return what it makes of a request with the whole history."""
        self._history += new
        body = json.dumps({"model": MODEL, "messages": self._history})
        done = compress(body, Provider.OPEN_AI, self._preset)
        return cast(Messages, json.loads(done.request_json)["messages"])


def make(opening: Opening, _summariser: StandIn) -> Peer:
    """Return the function with a preset."""
    return Compressing(opening)


def main() -> None:
    """Serve."""
    serve(make)
