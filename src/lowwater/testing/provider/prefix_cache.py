"""The provider's prompt cache, kept simple on purpose: what a request finds written, and what it writes.

No lifetimes, no minimum sizes: a prefix once written stays. Its purpose is to be written independently of the cost
engine that it checks.
"""

from collections.abc import Sequence

from msgspec import Struct

from lowwater.testing.provider.prompt import Count, Piece, prefix_digests, tokens

LOOKBACK = 20
STEP = 128
LEAST = 1024


class Used(Struct, frozen=True, kw_only=True):
    """The tokens of one prompt by how they were billed; the figures do not overlap."""

    read: int = 0
    written: int = 0
    written_long: int = 0
    uncached: int = 0

    @property
    def prompt(self) -> int:
        """The whole prompt."""
        return self.read + self.written + self.written_long + self.uncached


class MarkedCache:
    """Writes at marks, and reads at a mark or up to twenty blocks before one."""

    def __init__(self) -> None:
        self._entries: set[bytes] = set()

    def use(self, model: str, prompt: Sequence[Piece], count: Count) -> Used:
        """Bill a prompt and remember what it wrote."""
        digests = prefix_digests(model, prompt)
        weights = [tokens(piece.value, count) for piece in prompt]
        marked = [at for at, piece in enumerate(prompt) if piece.mark]
        hits = [
            at
            for end in marked
            for at in range(max(0, end - LOOKBACK), end + 1)
            if digests[at] in self._entries
        ]
        hit, last = max(hits, default=-1), max(marked, default=-1)
        written = {"5m": 0, "1h": 0}
        start = hit + 1
        for end in marked:
            if end >= start:
                written[prompt[end].mark] += sum(weights[start : end + 1])
                start = end + 1
        self._entries.update(digests[end] for end in marked)
        return Used(
            read=sum(weights[: hit + 1]),
            written=written["5m"],
            written_long=written["1h"],
            uncached=sum(weights[max(hit, last) + 1 :]),
        )


class RunningCache:
    """Reads the longest prefix in common with an earlier request, in steps of 128 tokens from 1,024 on."""

    def __init__(self) -> None:
        self._entries: set[bytes] = set()

    def use(self, model: str, prompt: Sequence[Piece], count: Count) -> Used:
        """Bill a prompt and remember every prefix of it."""
        digests = prefix_digests(model, prompt)
        weights = [tokens(piece.value, count) for piece in prompt]
        common = next((at for at, digest in enumerate(digests) if digest not in self._entries), len(digests))
        self._entries.update(digests)
        shared = sum(weights[:common])
        read = shared // STEP * STEP if shared >= LEAST else 0
        return Used(read=read, uncached=sum(weights) - read)
