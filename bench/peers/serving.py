"""The inside of every worker: a peer asked for one request after another, in lines of JSON.

The first line opens a session, each further one says what is new; the answer to it is the request that the peer would
send. It runs inside the environments of the peers, so it needs nothing but Python.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Protocol

from bench.peers.stand_in import SIZE, StandIn

Messages = list[dict[str, Any]]
"""In the format of OpenAI's chat API."""


@dataclass(frozen=True, kw_only=True)
class Opening:
    """What a peer is told before it begins."""

    variant: str
    trigger: int
    """The tokens at which it is to start, where it can be told."""
    window: int
    packages: tuple[str, ...]
    """Whose versions are asked for."""
    tools: tuple[str, ...] = ()
    """The names of the tools that the session calls."""
    keep: int = 0
    """How much of the newest it is to keep, in its own unit (messages, results, pairs); 0 for its default."""
    summary: int = SIZE
    """Characters of every summary."""


@dataclass(frozen=True, kw_only=True)
class Reported:
    """What the provider says about the call before, as it would in its `usage`."""

    prompt: int
    output: int


class Peer(Protocol):
    """A peer's package with the state of one session."""

    def request(self, new: Messages, reported: Reported | None) -> Messages:
        """Return what it would send now; `new` begins with the answer to the request before, if there was one."""
        ...


def serve(make: Callable[[Opening, StandIn], Peer]) -> None:
    """Answer every line on standard input until it ends; what the package itself prints goes to standard error.

    A further opening begins another session.
    """
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    peer: Peer | None = None
    for line in sys.stdin:
        step = json.loads(line)
        if peer is None or "variant" in step:
            opening = Opening(**{**step, "packages": tuple(step["packages"]), "tools": tuple(step["tools"])})
            summariser = StandIn(opening.summary)
            peer = make(opening, summariser)
            _say(answers, {"versions": {name: version(name) for name in opening.packages}})
            continue
        reported = Reported(**step["reported"]) if step["reported"] else None
        wall, cpu = time.perf_counter(), time.process_time()
        messages = peer.request(step["new"], reported)
        took = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        _say(answers, {"messages": messages, "asked": summariser.taken(), "took": took})


def _say(answers: Any, answer: dict[str, Any]) -> None:  # noqa: ANN401  # a text file
    answers.write(json.dumps(answer) + "\n")
    answers.flush()
