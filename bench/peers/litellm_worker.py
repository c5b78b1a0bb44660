"""Runs litellm's own functions over the whole history, as its users do before each call; started in its environment.

Its package has the vocabulary that it counts with, so it needs no network for it. Answers that only call tools have an
empty text here: on `null`, which is as legal, its `compress` raises AttributeError (1.106.2).
"""

import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
os.environ["LITELLM_MODE"] = "PRODUCTION"

import copy
from typing import cast

from litellm.compression.compress import compress  # type: ignore[import-not-found]  # only there
from litellm.utils import trim_messages  # type: ignore[import-not-found]  # only there

from bench.peers.serving import Messages, Opening, Peer, Reported, serve
from bench.peers.stand_in import StandIn

MODEL = "gpt-4o"


class Functions:
    """`compress` or `trim_messages`, which keep no state of their own."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._history: Messages = []

    def request(self, new: Messages, _reported: Reported | None) -> Messages:
        """Return what the function makes of the history."""
        self._history += [{**message, "content": message["content"] or ""} for message in new]
        history, trigger = copy.deepcopy(self._history), self._opening.trigger
        if self._opening.variant == "trim":
            return cast(Messages, trim_messages(history, model=MODEL, max_tokens=trigger))
        target = trigger if self._opening.keep else None
        done = compress(messages=history, model=MODEL, compression_trigger=trigger, compression_target=target)
        return cast(Messages, done["messages"])


def make(opening: Opening, _summariser: StandIn) -> Peer:
    """Return the function of a variant."""
    return Functions(opening)


def main() -> None:
    """Serve."""
    serve(make)
