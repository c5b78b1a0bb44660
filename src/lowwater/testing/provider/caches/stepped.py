"""Caches that find the longest prefix by themselves, in whole steps: OpenAI's until GPT-5.5, Kimi's, Gemini's, Grok's."""

from lowwater.testing.provider.caches.cache import Used
from lowwater.testing.provider.caches.entries import FOREVER, Entries
from lowwater.testing.provider.prompt import Prompt


class SteppedCache:
    """Reads the longest prefix in common with earlier prompts, rounded down to whole steps, from `least` tokens on.

    Every use begins the lifetime of the prefix anew. Where `tells_writes`, the whole steps behind what was read count
    as written. Answers are not cached.
    """

    def __init__(
        self,
        *,
        step: int = 1,
        least: int = 0,
        lifetime: float = FOREVER,
        long: float = FOREVER,
        tells_writes: bool = False,
    ) -> None:
        self._step = step
        self._least = least
        self._lifetime = lifetime
        self._long = long
        self._tells_writes = tells_writes
        self._entries = Entries()

    def use(self, prompt: Prompt, now: float) -> Used:
        """Bill a prompt and remember every prefix of it."""
        shared = -1
        for at in range(len(prompt.pieces)):
            if not self._entries.alive(prompt.digests[at], now):
                break
            shared = at
        read = self._whole(prompt.end_of(shared))
        written = self._whole(prompt.size) - read if self._tells_writes else 0
        for at in range(len(prompt.pieces)):
            self._entries.put(prompt.digests[at], self._long if prompt.long else self._lifetime, now)
        return Used(
            read=read,
            written=0 if prompt.long else written,
            written_long=written if prompt.long else 0,
            uncached=prompt.size - read - written,
        )

    def _whole(self, size: int) -> int:
        return size // self._step * self._step if size >= self._least else 0
