"""What a call of the scripted model would be billed: a prompt cache that follows a real model's rules, roughly."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from msgspec import Struct

from lowwater.core.api_calls import Usage
from lowwater.core.models.model import Marks, Model, Steps
from lowwater.core.strict_json import write_json
from lowwater.protocols import Tokenizer

_LIFETIME = 300
_LEAST = 1_024
_REMEMBERED = 8
_MARKS = frozenset({"cache_control", "prompt_cache_breakpoint"})


class _Piece(Struct, frozen=True, kw_only=True):
    digest: bytes
    tokens: int


class PrefixCache:
    """Knows the prompts of the last calls to one model; the longest prefix they share with the next is read from it."""

    def __init__(self, model: Model, tokenizer: Tokenizer, *, scale: float) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._scale = scale
        self._prompts: list[tuple[float, tuple[bytes, ...]]] = []
        self._sizes: dict[bytes, int] = {}

    def bill(self, fields: Mapping[str, Any], at: float) -> Usage:
        """Return the input that a call at this moment is billed, and remember it."""
        pieces = self._pieces(fields)
        prompt = tuple(piece.digest for piece in pieces)
        lifetime = self._model.cache.ttl or _LIFETIME
        alive = [known for known in self._prompts if at - known[0] <= lifetime]
        shared = max((_shared(known, prompt) for _, known in alive), default=0)
        read = self._readable(sum(piece.tokens for piece in pieces[:shared]))
        rest = sum(piece.tokens for piece in pieces) - read
        self._prompts = [*alive, (at, prompt)][-_REMEMBERED:]
        if isinstance(self._model.cache.matching, Marks):
            return Usage(cache_read=read, cache_write=rest)
        return Usage(cache_read=read, uncached=rest)

    def count(self, text: str) -> int:
        """Return how many of the model's tokens a text is."""
        return round(self._scale * self._tokenizer.count(text))

    def _readable(self, tokens: int) -> int:
        if tokens < (self._model.cache.min_cacheable or _LEAST):
            return 0
        matching = self._model.cache.matching
        step = matching.tokens if isinstance(matching, Steps) and matching.tokens else 1
        return tokens - tokens % step

    def _pieces(self, fields: Mapping[str, Any]) -> Sequence[_Piece]:
        before = [fields[name] for name in ("tools", "system") if name in fields]
        return [self._piece(write_json(_unmarked(each))) for each in [*before, *fields["messages"]]]

    def _piece(self, raw: bytes) -> _Piece:
        digest = blake2b(raw, digest_size=16).digest()
        if digest not in self._sizes:
            self._sizes[digest] = self.count(raw.decode())
        return _Piece(digest=digest, tokens=self._sizes[digest])


def _shared(known: Sequence[bytes], prompt: Sequence[bytes]) -> int:
    return next(
        (at for at, (one, other) in enumerate(zip(known, prompt, strict=False)) if one != other),
        min(len(known), len(prompt)),
    )


def _unmarked(value: object) -> object:
    """Return content without cache marks; a text that became a block to carry one is the text again."""
    match value:
        case dict():
            return {name: _unmarked(inner) for name, inner in value.items() if name not in _MARKS}
        case [{"type": "text", "text": str(text), **others}] if set(others) <= _MARKS:
            return text
        case list():
            return [_unmarked(inner) for inner in value]
        case _:
            return value
