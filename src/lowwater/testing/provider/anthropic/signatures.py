"""Signatures: of thinking, bound to its model, its text and what stood before it; and of compaction blocks.

Thinking behind a compaction block is checked as if what the block stands for still stood there, for the provider wrote the
block and knows.
"""

import hmac
from base64 import b64decode, b64encode
from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from lowwater.testing.provider.prompt import Piece, Section, prefix_digests

BINDING_MODELS = ("claude-fable-5-1", "claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5")
"""Models whose thinking is bound to what stood before it."""

SECTIONS: tuple[Section, ...] = ("tools", "system", "messages")

T = TypeVar("T")
Prefix: TypeAlias = dict[Section, str]
"""What identifies the tools, the system prompt and the messages before a block."""


class Claim(Struct, frozen=True, kw_only=True):
    """What a signature vouches for."""

    model: str
    text: str
    prefix: Prefix


class BlockClaim(Struct, frozen=True, kw_only=True):
    """What the signature of a compaction block vouches for."""

    model: str
    text: str
    tools: str
    system: str
    stands: tuple[str, ...]
    """What identifies the messages it stands for: as they were sent, and as they were before an earlier compaction."""
    role: str
    """The role of the last of them."""


class Signer:
    """Issues signatures and reads its own; a key makes those of one provider worthless to another."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def sign(self, model: str, text: str, prompt: Sequence[Piece]) -> str:
        """Return the signature of thinking `text` that answers `prompt`."""
        return self._issued(Claim(model=model, text=digest(text), prefix=prefixes(prompt)[""]))

    def sign_block(self, model: str, text: str, prompt: Sequence[Piece]) -> str:
        """Return the signature of a block that says `text` and stands for all messages of `prompt`."""
        ends = [each[""] for each in self.known_prefixes(prompt)]
        messages = [piece for piece in prompt if piece.section == "messages"]
        return self._issued(
            BlockClaim(
                model=model,
                text=digest(text),
                tools=ends[0]["tools"],
                system=ends[0]["system"],
                stands=tuple(end["messages"] for end in ends),
                role=messages[-1].role if messages else "",
            )
        )

    def read(self, signature: str) -> Claim | None:
        """Return what a signature of thinking vouches for, or None if it was not issued here."""
        opened = self._opened(signature)
        return None if opened is None else _decoded(opened, Claim)

    def read_block(self, signature: str) -> BlockClaim | None:
        """Return what the signature of a compaction block vouches for, or None if it was not issued here."""
        opened = self._opened(signature)
        return None if opened is None else _decoded(opened, BlockClaim)

    def known_prefixes(self, prompt: Sequence[Piece]) -> list[dict[str, Prefix]]:
        """Return everything that the prompt before each block may be taken for: as it is sent, and as before a compaction.

        A block counts for what it stands for if a model that binds thinking wrote it behind the same tools and system
        prompt, and another role than that of the last message before it speaks next.
        """
        as_sent = prefixes(prompt)
        messages = [piece for piece in prompt if piece.section == "messages"]
        first, behind = (messages[0], messages[1:]) if messages else (None, [])
        if first is None or first.value.get("type") != "compaction":
            return [as_sent]
        claim = self.read_block(str(first.value.get("signature") or ""))
        now = as_sent[""]
        if (
            claim is None
            or not claim.model.startswith(BINDING_MODELS)
            or (claim.tools, claim.system) != (now["tools"], now["system"])
            or (behind and behind[0].role in (claim.role, "system"))
        ):
            return [as_sent]
        return [as_sent, *(prefixes(prompt, behind=stands) for stands in claim.stands)]

    def _issued(self, claim: Struct) -> str:
        written = msgspec.json.encode(claim)
        return b64encode(self._seal(written) + written).decode()

    def _opened(self, signature: str) -> bytes | None:
        try:
            opened = b64decode(signature, validate=True)
        except ValueError:
            return None
        seal, claim = opened[:32], opened[32:]
        return claim if hmac.compare_digest(seal, self._seal(claim)) else None

    def _seal(self, claim: bytes) -> bytes:
        return hmac.digest(self._key, claim, "sha256")


def prefixes(prompt: Sequence[Piece], *, behind: str | None = None) -> dict[str, Prefix]:
    """Return what identifies the prompt before each block of a message, by path; under "" the whole prompt.

    Cache marks are no part of it, and neither is how messages of one role are divided. `behind` identifies what the first
    block of the messages stands for.
    """
    tools = _identity([piece for piece in prompt if piece.section == "tools"])
    system = _identity([piece for piece in prompt if piece.section == "system"])
    messages = [piece for piece in prompt if piece.section == "messages"]
    ends = _chain(messages) if behind is None else ["", *_chain(messages[1:], behind)]
    paths = [*(piece.path for piece in messages), ""]
    return {
        path: {"tools": tools, "system": system, "messages": end}
        for path, end in zip(paths, ends, strict=True)
    }


def _chain(pieces: Sequence[Piece], start: str = "") -> list[str]:
    """Return what identifies everything before each piece, and all of them; `start` identifies what stands before the first."""
    ends = [start]
    for piece in pieces:
        ends.append(blake2b(ends[-1].encode() + b"\0" + piece.content, digest_size=16).hexdigest())
    return ends


def digest(text: str) -> str:
    """Return what identifies a thinking text."""
    return hmac.digest(b"text", text.encode(), "sha256").hex()


def _identity(pieces: Sequence[Piece]) -> str:
    digests = prefix_digests("section", pieces)
    return digests[-1].hex() if digests else ""


def _decoded(claim: bytes, kind: type[T]) -> T | None:
    """Return a claim of this kind; a signature of thinking is none of a block, nor the other way round."""
    try:
        return msgspec.json.decode(claim, type=kind)
    except msgspec.ValidationError:
        return None
