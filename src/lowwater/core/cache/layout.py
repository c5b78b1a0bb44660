"""A request as the provider's cache sees it: content blocks in order, each identified by a hash of the prefix up to it."""

from collections.abc import Iterable
from functools import cached_property
from hashlib import blake2b
from itertools import accumulate
from typing import Literal

from msgspec import Struct

Lifetime = Literal["", "short", "long"]
"""How long a prefix is to be cached: not at all, for the provider's default lifetime, or for the long one it sells."""

KEY_BYTES = 8
"""Keys are short because they are stored with every turn, and a collision only spoils one estimate."""


class Block(Struct, frozen=True, kw_only=True):
    """One content block; `key` identifies the whole prefix that ends with it, without cache marks."""

    key: bytes
    tokens: int
    mark: Lifetime = ""
    """The lifetime that a cache mark on this block asks for; empty if it has none."""
    ends: Literal["", "input", "output"] = ""
    """Whether an input (of the user or a tool) or an output of the model ends with this block."""


class Layout(Struct, frozen=True, kw_only=True, dict=True):
    """The blocks of one request in the provider's order: tools, system, messages."""

    blocks: tuple[Block, ...]
    automatic: Lifetime = "short"
    """The lifetime asked for what the provider caches without marks; empty if the request turns that off."""

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """The token position at which each block ends."""
        return tuple(accumulate(block.tokens for block in self.blocks))

    @cached_property
    def index(self) -> dict[bytes, int]:
        """The index of the block with each key."""
        return {block.key: at for at, block in enumerate(self.blocks)}

    @cached_property
    def marked(self) -> tuple[int, ...]:
        """The indexes of the blocks that carry a mark."""
        return tuple(at for at, block in enumerate(self.blocks) if block.mark)

    @property
    def total(self) -> int:
        """The tokens of the whole request."""
        return self.ends[-1] if self.blocks else 0


def chained(digests: Iterable[bytes], *, start: bytes = b"") -> list[bytes]:
    """Return the key of the prefix that ends with each of the blocks' digests.

    `start` is the key to continue from, or a digest of what else the cache depends on: model, thinking, tool choice.
    """
    keys: list[bytes] = []
    key = start
    for digest in digests:
        key = blake2b(key + digest, digest_size=KEY_BYTES).digest()
        keys.append(key)
    return keys
