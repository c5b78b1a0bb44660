"""Every policy that is played on a course, by the name it has in a replay: those of peers, and those with the declared actions."""

from collections.abc import Callable, Mapping

from lowwater.replay.peers_hermes import hermes_classic, hermes_runway
from lowwater.replay.peers_lcm import UNGUARDED, LeafPasses
from lowwater.replay.peers_view import Peer
from lowwater.replay.peers_windows import (
    claude_code,
    langchain,
    langchain_untrimmed,
    openai_default,
    openai_server,
    opencode,
)
from lowwater.replay.policies import Policy, exact_gate, never, rolling_mask, threshold
from lowwater.replay.renting import RentOrBuy
from lowwater.replay.tally import Tally

DECLARED: Mapping[str, Callable[[Tally], Policy]] = {
    "rent-or-buy": RentOrBuy,
    "exact-gate": exact_gate,
    "threshold-50": threshold(0.5),
    "rolling-mask": rolling_mask,
    "never": never,
}
"""Policies with the optimum's actions and tail: none of them can cost less than it."""

PEERS: Mapping[str, Peer] = {
    "hermes-classic": hermes_classic,
    "hermes-runway": hermes_runway,
    "lcm-leaf": LeafPasses(leaf=UNGUARDED),
    "lcm-guarded": LeafPasses(),
    "claude-code": claude_code,
    "opencode": opencode,
    "langchain": langchain,
    "langchain-untrimmed": langchain_untrimmed,
    "openai-default": openai_default,
    "openai-server": openai_server,
}
"""Policies with actions, tails and summaries of their own, which the optimum does not bound."""
