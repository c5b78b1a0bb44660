"""The caches of servers one runs oneself: vLLM's blocks of tokens, SGLang's radix tree; both hold answers too."""

from lowwater.testing.provider.caches.cache import Used
from lowwater.testing.provider.prompt import Prompt


class BlockCache:
    """Reads every full block in common with an earlier prompt or its answer; a radix tree has blocks of one token.

    It forgets only when evicted. The last token of a prompt is always computed, even if all of it was seen before.
    """

    def __init__(self, *, block: int) -> None:
        self._block = block
        self._seen: set[bytes] = set()

    def use(self, prompt: Prompt, now: float) -> Used:  # noqa: ARG002 - blocks have no lifetime
        """Bill a prompt and remember it with its answer."""
        shared = 0
        for digest, end in zip(prompt.digests, prompt.ends[: len(prompt.pieces)], strict=False):
            if digest not in self._seen:
                break
            shared = end
        self._seen.update(prompt.digests)
        read = max(0, min(shared, prompt.size - 1)) // self._block * self._block
        return Used(read=read, uncached=prompt.size - read)
