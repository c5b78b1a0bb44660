"""Caches with marks that look back over blocks: Anthropic's, and Qwen's where a request has marks."""

from collections.abc import Mapping

from lowwater.testing.provider.caches.cache import Cache, Used
from lowwater.testing.provider.caches.entries import Entries
from lowwater.testing.provider.prompt import Prompt

LOOKBACK = 20
"""Blocks a mark walks back, its own not counted."""
LIFETIMES = {"5m": 300.0, "1h": 3_600.0}


class MarkedCache:
    """Writes at marks, reads at a mark or up to twenty blocks before one, and begins the lifetime of what it read anew.

    A mark behind fewer tokens than `least` writes nothing. A read also uses the shorter prefixes of what it reads.
    """

    def __init__(self, *, least: int = 0, lifetimes: Mapping[str, float] = LIFETIMES) -> None:
        self._least = least
        self._lifetimes = lifetimes
        self._entries = Entries()

    def use(self, prompt: Prompt, now: float) -> Used:
        """Bill a prompt and remember what it wrote."""
        marks = [at for at in prompt.marked(*self._lifetimes) if prompt.ends[at] >= self._least]
        hit = max((self._found(prompt, at, now) for at in marks), default=-1)
        for at in range(hit + 1):
            self._entries.touch(prompt.digests[at], now)
        billed = prompt.end_of(hit)
        written = dict.fromkeys(self._lifetimes, 0)
        for at in marks:
            lifetime = prompt.pieces[at].mark
            if at > hit:
                written[lifetime] += prompt.ends[at] - billed
                billed = prompt.ends[at]
            if not self._entries.alive(prompt.digests[at], now):
                self._entries.put(prompt.digests[at], self._lifetimes[lifetime], now)
        return Used(
            read=prompt.end_of(hit),
            written=written.get("5m", 0),
            written_long=written.get("1h", 0),
            uncached=prompt.size - billed,
        )

    def _found(self, prompt: Prompt, mark: int, now: float) -> int:
        """Return the last piece up to which a mark finds something written, or -1."""
        for at in range(mark, max(-1, mark - LOOKBACK - 1), -1):
            if self._entries.alive(prompt.digests[at], now):
                return at
        return -1


class EitherCache:
    """A request with marks uses one cache, a request without the other; neither finds what the other wrote."""

    def __init__(self, *, marked: Cache, unmarked: Cache) -> None:
        self._marked = marked
        self._unmarked = unmarked

    def use(self, prompt: Prompt, now: float) -> Used:
        """Bill a prompt by the cache that its marks choose."""
        cache = self._marked if prompt.marked(*LIFETIMES) else self._unmarked
        return cache.use(prompt, now)
