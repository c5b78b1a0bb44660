"""lossless-claw's leaf passes (LCM), with and without the guards before them, as models on a course (docs/specification.md: E)."""

from msgspec import Struct

from lowwater.core.policies.guarded import guard_leaf
from lowwater.replay.peers_view import Asking, Change, View, tokens_of
from lowwater.settings import LeafSettings

_TAIL = 32
"""Turns of the fresh tail: 64 messages, an answer and its results each turn."""
_CONDENSED, _FAN_IN = 2_000, 8
_PASSES = 12

UNGUARDED = LeafSettings(leaf_budget_headroom_factor=0.0, leaf_skip_reduction_threshold=0.0)
"""Both factors at 0 are the plain trigger."""


class LeafPasses(Struct, frozen=True, kw_only=True):
    """Before a call, if the guards let it through, the oldest 20,000 raw tokens outside the tail become 2,400.

    Eight summaries become one of 2,000; above three quarters of the window passes go on until it fits, at most twelve.
    Summaries come from another model. Not modelled: the smaller fan-ins of deeper levels, preparation in the
    background, and tool loops under one user message, which it cannot compact.
    """

    leaf: LeafSettings = LeafSettings()

    def __call__(self, view: View) -> Change | None:
        """Return the view after the passes that are due."""
        sweep = _Sweep(view, self.leaf)
        budget = view.sheet.window
        is_due = guard_leaf(raw=sweep.raw, assembled=view.size, budget=budget, leaf=self.leaf).compacts
        if is_due:
            sweep.compact()
        most = self.leaf.context_threshold * budget
        while view.size > most and sweep.size > most and len(sweep.asked) < _PASSES and sweep.raw:
            sweep.compact()
        return Change(pieces=tuple(sweep.pieces), asked=tuple(sweep.asked)) if sweep.asked else None


class _Sweep:
    """Passes over one view, one after the other."""

    def __init__(self, view: View, leaf: LeafSettings) -> None:
        self._view, self._leaf = view, leaf
        self.pieces = list(view.pieces)
        self.asked: list[Asking] = []

    @property
    def size(self) -> int:
        """The prompt as the passes leave it."""
        return self._view.course.fixed + tokens_of(self.pieces)

    @property
    def raw(self) -> int:
        """Tokens outside the tail that were never summarised."""
        return sum(piece.tokens for piece in self.pieces[:-_TAIL] if piece.form != "summary")

    def compact(self) -> None:
        """Take one leaf pass, and condense if there are summaries enough."""
        first = sum(piece.form == "summary" for piece in self.pieces)
        end, taken = first, 0
        while end < len(self.pieces) - _TAIL and taken < self._leaf.leaf_chunk_tokens:
            taken += self.pieces[end].tokens
            end += 1
        self._replace(first, end, self._leaf.leaf_target_tokens, depth=0)
        leaves = [at for at, piece in enumerate(self.pieces) if piece.form == "summary" and not piece.depth]
        if len(leaves) >= _FAN_IN:
            self._replace(leaves[0], leaves[0] + _FAN_IN, _CONDENSED, depth=1)

    def _replace(self, first: int, end: int, tokens: int, *, depth: int) -> None:
        covered = self.pieces[first:end]
        upto = covered[-1].turn + (covered[-1].form != "summary")
        summary = self._view.summary(tokens, upto, later=len(self.asked), depth=depth)
        self.asked.append(self._view.elsewhere(tokens_of(covered), tokens))
        self.pieces[first:end] = [summary]
