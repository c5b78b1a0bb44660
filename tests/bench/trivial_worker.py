"""A worker that needs no package: what it does to a history is its variant."""

import sys
import threading

from bench.peers.serving import Messages, Opening, Peer, Reported, serve
from bench.peers.stand_in import StandIn

MOST = 12
"""Messages after which `summary` and `orphan` cut."""


class Trivial:
    """Sends all it has, or does what the variant says."""

    def __init__(self, opening: Opening, summariser: StandIn) -> None:
        self._variant, self._summariser = opening.variant, summariser
        self._history: Messages = []
        self._requests = 0

    def request(self, new: Messages, reported: Reported | None) -> Messages:
        """Return the history; packages print, and so does this."""
        self._requests += 1
        sys.stdout.write(f"request {self._requests}, reported {reported}\n")
        self._history += new
        if self._variant == "dies" and self._requests == 3:
            raise RuntimeError("no tokens today")
        if self._variant == "stalls" and self._requests == 3:
            threading.Event().wait()
        if len(self._history) > MOST:
            self._cut()
        if self._variant == "told":
            return [*self._history, {"role": "user", "content": f"{reported and reported.prompt}"}]
        return self._history

    def _cut(self) -> None:
        if self._variant == "summary":
            system, *old = self._history
            text = self._summariser("\n".join(str(message["content"]) for message in old[:-1]))
            newest = next(at for at in range(len(old) - 1, -1, -1) if old[at]["role"] == "assistant")
            self._history = [system, {"role": "user", "content": text}, *old[newest:]]
        if self._variant == "orphan":
            self._history = [self._history[0], *self._history[-1:]]


def make(opening: Opening, summariser: StandIn) -> Peer:
    """Return a variant."""
    assert opening.tools, "the names of tools are told"
    return Trivial(opening, summariser)


def main() -> None:
    """Serve."""
    serve(make)
