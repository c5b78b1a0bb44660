"""The cache of OpenAI from GPT-5.6 on: breakpoints without rounding, found however many blocks back they lie.

The documents leave two things open, decided here so: "the latest 80 breakpoints in the conversation" are the 80 that
requests with the same `prompt_cache_key` set most recently, and a read begins the lifetime of what it read anew.
"""

from lowwater.testing.provider.caches.cache import Used
from lowwater.testing.provider.caches.entries import Entries
from lowwater.testing.provider.prompt import BREAKPOINT, Prompt

LEAST = 1_024
MOST_WRITTEN = 4
CONSIDERED = 80
SHORT, LONG = 1_800.0, 43_200.0


class BreakpointCache:
    """Writes up to four breakpoints a request, one of them at its end unless the request has only explicit ones."""

    def __init__(self, *, least: int = LEAST) -> None:
        self._least = least
        self._entries = Entries()
        self._latest: dict[str, dict[bytes, None]] = {}

    def use(self, prompt: Prompt, now: float) -> Used:
        """Bill a prompt and remember what it wrote."""
        explicit = prompt.marked(BREAKPOINT)
        implicit = [len(prompt.pieces) - 1] if prompt.implicit and prompt.pieces else []
        if not explicit and not implicit:
            return Used(uncached=prompt.size)
        considered = self._considered(prompt, sorted({*explicit, *implicit}))
        known = (at for at in range(len(prompt.pieces)) if prompt.digests[at] in considered)
        hit = max((at for at in known if self._entries.alive(prompt.digests[at], now)), default=-1)
        writing = [*explicit[len(implicit) - MOST_WRITTEN :], *implicit]
        for at in range(hit + 1):
            self._entries.touch(prompt.digests[at], now)
        for at in writing:
            if prompt.ends[at] >= self._least:
                self._entries.put(prompt.digests[at], LONG if prompt.long else SHORT, now)
        read, size = prompt.end_of(hit), prompt.end_of(max(writing))
        written = max(0, size - read) if size >= self._least else 0
        return Used(
            read=read,
            written=0 if prompt.long else written,
            written_long=written if prompt.long else 0,
            uncached=prompt.size - read - written,
        )

    def _considered(self, prompt: Prompt, breakpoints: list[int]) -> set[bytes]:
        """Return the breakpoints that are looked at: those of this request are the latest of its conversation."""
        latest = self._latest.setdefault(prompt.conversation, {})
        for at in breakpoints:
            latest.pop(prompt.digests[at], None)
            latest[prompt.digests[at]] = None
        for old in list(latest)[:-CONSIDERED]:
            del latest[old]
        return set(latest)
