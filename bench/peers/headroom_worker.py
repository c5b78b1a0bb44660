"""Runs Headroom's own `compress`; started with the interpreter of its environment.

`default` compresses the whole history before each request; `frozen` leaves what was sent as it was and compresses what
is new, as its documentation asks of those who want a stable prefix. The language model it can prune text with is off: its weights would
have to be fetched.
"""

import os

os.environ.update(
    HF_HUB_OFFLINE="1",
    TRANSFORMERS_OFFLINE="1",
    LITELLM_LOCAL_MODEL_COST_MAP="True",
    HEADROOM_UPDATE_CHECK="off",
    HEADROOM_OFFLINE="1",
    HEADROOM_TELEMETRY="off",
    DO_NOT_TRACK="1",
)

from typing import cast

from headroom import compress  # type: ignore[import-not-found]  # only there

from bench.peers.serving import Messages, Opening, Peer, Reported, serve
from bench.peers.stand_in import StandIn

MODEL = "gpt-4o"


class Compressing:
    """`compress`, over everything or over what is new."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._history: Messages = []
        self._sent: Messages = []

    def request(self, new: Messages, _reported: Reported | None) -> Messages:
        """Return what it makes of the history."""
        self._history += new
        if self._opening.variant == "frozen":
            work, frozen = [*self._sent, *new], len(self._sent)
        else:
            work, frozen = list(self._history), 0
        done = compress(
            work,
            model=MODEL,
            model_limit=self._opening.window,
            kompress_model="disabled",
            frozen_message_count=frozen,
        )
        self._sent = cast(Messages, done.messages)
        return self._sent


def make(opening: Opening, _summariser: StandIn) -> Peer:
    """Return a variant."""
    return Compressing(opening)


def main() -> None:
    """Serve."""
    serve(make)
