"""Signatures of thinking: issued with every thinking block, bound to its model, its text and what stood before it."""

import hmac
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import TypeAlias

import msgspec
from msgspec import Struct

from lowwater.testing.provider.prompt import Piece, Section, prefix_digests

SECTIONS: tuple[Section, ...] = ("tools", "system", "messages")

Prefix: TypeAlias = dict[Section, str]
"""What identifies the tools, the system prompt and the messages before a block."""


class Claim(Struct, frozen=True, kw_only=True):
    """What a signature vouches for."""

    model: str
    text: str
    prefix: Prefix


class Signer:
    """Issues signatures and reads its own; a key makes those of one provider worthless to another."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def sign(self, model: str, text: str, prompt: Sequence[Piece]) -> str:
        """Return the signature of thinking `text` that answers `prompt`."""
        claim = msgspec.json.encode(Claim(model=model, text=digest(text), prefix=prefixes(prompt)[""]))
        return b64encode(self._seal(claim) + claim).decode()

    def read(self, signature: str) -> Claim | None:
        """Return what a signature vouches for, or None if it was not issued here."""
        try:
            opened = b64decode(signature, validate=True)
        except ValueError:
            return None
        seal, claim = opened[:32], opened[32:]
        return (
            msgspec.json.decode(claim, type=Claim) if hmac.compare_digest(seal, self._seal(claim)) else None
        )

    def _seal(self, claim: bytes) -> bytes:
        return hmac.digest(self._key, claim, "sha256")


def prefixes(prompt: Sequence[Piece]) -> dict[str, Prefix]:
    """Return what identifies the prompt before each block of a message, by path; under "" the whole prompt.

    Cache marks are no part of it, and neither is how messages of one role are divided.
    """
    tools = _identity([piece for piece in prompt if piece.section == "tools"])
    system = _identity([piece for piece in prompt if piece.section == "system"])
    messages = [piece for piece in prompt if piece.section == "messages"]
    ends = ["", *(end.hex() for end in prefix_digests("messages", messages))]
    paths = [*(piece.path for piece in messages), ""]
    return {
        path: {"tools": tools, "system": system, "messages": end}
        for path, end in zip(paths, ends, strict=True)
    }


def digest(text: str) -> str:
    """Return what identifies a thinking text."""
    return hmac.digest(b"text", text.encode(), "sha256").hex()


def _identity(pieces: Sequence[Piece]) -> str:
    digests = prefix_digests("section", pieces)
    return digests[-1].hex() if digests else ""
