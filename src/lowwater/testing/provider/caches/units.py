"""The cache of DeepSeek from V4 on: units on disk, each read whole or not at all.

How far apart the units of long inputs lie and how long units live is not published ("hours to days"): here they lie
`INTERVAL` tokens apart and live a day after their last use.
"""

from lowwater.testing.provider.caches.cache import Used
from lowwater.testing.provider.caches.entries import Entries
from lowwater.testing.provider.prompt import Prompt

INTERVAL = 4_096
LIFETIME = 86_400.0


class UnitCache:
    """Stores units at the end of a prompt, at the end of its answer, at intervals, and where two prompts part."""

    def __init__(self, *, interval: int = INTERVAL) -> None:
        self._interval = interval
        self._units = Entries()
        self._seen: set[bytes] = set()

    def use(self, prompt: Prompt, now: float) -> Used:
        """Bill a prompt and remember the units that it and its answer leave."""
        read = 0
        for at in range(len(prompt.pieces)):
            for end in (*self._intervals(prompt, at), prompt.ends[at]):
                unit = _unit(prompt, at, end)
                if self._units.alive(unit, now):
                    self._units.touch(unit, now)
                    read = end
        parting = max(
            (at for at in range(len(prompt.pieces)) if prompt.digests[at] in self._seen), default=-1
        )
        for at in {parting, len(prompt.pieces) - 1, len(prompt.digests) - 1} - {-1}:
            self._units.put(_unit(prompt, at, prompt.ends[at]), LIFETIME, now)
        for at in range(len(prompt.digests)):
            for end in self._intervals(prompt, at):
                self._units.put(_unit(prompt, at, end), LIFETIME, now)
        self._seen.update(prompt.digests)
        return Used(read=read, uncached=prompt.size - read)

    def _intervals(self, prompt: Prompt, at: int) -> range:
        """Return where the units of long inputs lie inside one piece."""
        step = self._interval
        return range((prompt.end_of(at - 1) // step + 1) * step, prompt.ends[at] + 1, step)


def _unit(prompt: Prompt, at: int, end: int) -> bytes:
    """Return what identifies the prompt up to `end`, which lies in the piece `at`: that piece has to match whole."""
    return prompt.digests[at] + end.to_bytes(8, "big")
