"""What the provider saw: every request with what became of it."""

from collections.abc import Mapping
from threading import Lock
from typing import Any

from msgspec import Struct

from lowwater.testing.provider.answers import Answer
from lowwater.testing.provider.rule import Refusal

_SECRET = ("x-api-key", "authorization", "cookie")


class Seen(Struct, frozen=True, kw_only=True):
    """One request as it came in, and the answer it got or the rule it broke."""

    method: str
    path: str
    headers: Mapping[str, str]
    """By lower-case name, keys and tokens masked."""
    raw: bytes
    body: dict[str, Any]
    """The decoded body; empty if `problem` says why there is none."""
    problem: str = ""
    status: int = 200
    answer: Answer | None = None
    """What the script said; None if the request was refused or asked for no answer."""
    refusal: Refusal | None = None


class Records:
    """Keeps requests in the order they were decided; safe to read from other threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._seen: list[Seen] = []

    def add(self, seen: Seen) -> None:
        """Keep one request."""
        with self._lock:
            self._seen.append(seen)

    def all(self) -> tuple[Seen, ...]:
        """Return the requests so far."""
        with self._lock:
            return tuple(self._seen)


def masked(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers by lower-case name with the secrets in them replaced; the scheme of a token stays."""
    lowered = {name.lower(): value for name, value in headers.items()}
    return {name: _mask(value) if name in _SECRET else value for name, value in lowered.items()}


def _mask(value: str) -> str:
    scheme, space, _ = value.partition(" ")
    return f"{scheme} ***" if space else "***"
