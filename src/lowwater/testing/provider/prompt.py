"""A prompt as the model reads it: pieces in order, what each weighs, and what identifies a prefix of them."""

from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

Count: TypeAlias = Callable[[str], int]
Section: TypeAlias = Literal["tools", "system", "messages"]

MEDIA_TOKENS = 1_500
"""What an image, a file or a sound weighs here, whatever its size."""


class Piece(Struct, frozen=True, kw_only=True):
    """A tool, a block of the system prompt or a block of a message, without its cache marks."""

    section: Section
    path: str
    role: str = ""
    value: dict[str, Any]
    mark: str = ""
    """The lifetime of the cache mark it carries; empty without one."""

    @property
    def content(self) -> bytes:
        """What makes it the same as another piece: equal JSON in the same role."""
        return msgspec.json.encode([self.section, self.role, self.value], order="sorted")


def quarter(text: str) -> int:
    """Count a token for every four characters begun."""
    return -(-len(text) // 4)


def tokens(value: object, count: Count) -> int:
    """Return what one block weighs: its text by `count`, media at a flat rate, anything else as its JSON."""
    match value:
        case str():
            return count(value)
        case {"type": "text", "text": str(text)} | {"type": "thinking", "thinking": str(text)}:
            return count(text)
        case {"type": "document", "source": {"type": "text", "data": str(text)}}:
            return count(text)
        case {"type": "image" | "document" | "image_url" | "file" | "input_audio"}:
            return MEDIA_TOKENS
        case {"type": "tool_result", "content": list(parts)}:
            return sum(tokens(part, count) for part in parts)
        case {"type": "tool_result", "content": str(text)}:
            return count(text)
        case _:
            return count(msgspec.json.encode(value).decode())


def prompt_tokens(pieces: Iterable[Piece], count: Count) -> int:
    """Return what the whole prompt weighs."""
    return sum(tokens(piece.value, count) for piece in pieces)


def prefix_digests(seed: str, pieces: Iterable[Piece]) -> list[bytes]:
    """Return for each piece what identifies the prompt up to and including it."""
    running = blake2b(seed.encode(), digest_size=16)
    digests = []
    for piece in pieces:
        content = piece.content
        running.update(len(content).to_bytes(8, "big") + content)
        digests.append(running.digest())
    return digests
