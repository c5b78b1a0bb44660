"""What policies are called on a page, and what is said of them."""

from lowwater.replay.peers import DECLARED, PEERS
from lowwater.replay.running.on_course import OPTIMUM
from lowwater.replay.running.results import Kind

OURS = "rent-or-buy"
_ENGINE = ", real engine"


def label(policy: str, kind: Kind) -> str:
    """Return a policy's name, with what played it if that was the real engine."""
    return f"{policy}{_ENGINE}" if kind == "full" else policy


def about(policy: str) -> str:
    """Return in one sentence what a policy does, in the words of its code; empty if that says nothing."""
    if policy == OPTIMUM:
        return "The cheapest schedule of prunes and summaries, found with hindsight."
    made = DECLARED.get(policy) or PEERS.get(policy)
    first, _, _ = (getattr(made, "__doc__", None) or "").partition("\n")
    return first.replace("`", "")
