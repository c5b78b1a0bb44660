"""A request as the provider's cache sees it: content blocks in order, each known by the prefix that ends with it."""

from collections.abc import Iterable
from functools import cached_property
from hashlib import blake2b
from itertools import accumulate
from typing import Literal

from msgspec import Struct

Lifetime = Literal["", "short", "long"]
"""How long a prefix is to be kept: not at all, the provider's default, or the long lifetime it sells."""

KEY_BYTES = 8
"""A collision spoils one estimate and nothing else, and keys are stored with every turn."""


class Block(Struct, frozen=True, kw_only=True):
    """One content block; `key` stands for the whole prefix that ends with it, cache marks left out."""

    key: bytes
    tokens: int
    mark: Lifetime = ""
    """The lifetime that a cache mark on this block asks for; empty where there is none."""
    ends: Literal["", "input", "output"] = ""
    """Whether an input of the user (or its tools) or an output of the model ends with this block."""


class Layout(Struct, frozen=True, kw_only=True, dict=True):
    """The blocks of one request in the provider's order: tools, system, messages."""

    blocks: tuple[Block, ...]
    automatic: Lifetime = "short"
    """The lifetime asked for what the provider stores by itself; empty if the request forbids it to."""

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """The token position at which each block ends."""
        return tuple(accumulate(block.tokens for block in self.blocks))

    @cached_property
    def index(self) -> dict[bytes, int]:
        """The block that each key ends with."""
        return {block.key: at for at, block in enumerate(self.blocks)}

    @cached_property
    def marked(self) -> tuple[int, ...]:
        """The blocks that carry a mark."""
        return tuple(at for at, block in enumerate(self.blocks) if block.mark)

    @property
    def total(self) -> int:
        """The tokens of the whole request."""
        return self.ends[-1] if self.blocks else 0


def chained(digests: Iterable[bytes], *, start: bytes = b"") -> list[bytes]:
    """Return the key of the prefix that ends with each digest.

    `start` is a key to go on from, or a digest of what else the cache depends on: the model, its thinking, tool choice.
    """
    keys: list[bytes] = []
    key = start
    for digest in digests:
        key = blake2b(key + digest, digest_size=KEY_BYTES).digest()
        keys.append(key)
    return keys
