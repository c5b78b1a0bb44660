"""What a provider's format has to bring along: its rules, its errors, its answers, whole and in events."""

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Protocol

import msgspec

from lowwater.testing.provider.answers import Spoken
from lowwater.testing.provider.rule import Incoming, Json, Rule, Violation

DELTA = 16
"""Characters in one piece of a stream."""


class Dialect(Protocol):
    """One provider's way to refuse and to answer."""

    request_id_header: str
    rules: tuple[Rule, ...]

    def error(self, violation: Violation, request_id: str) -> Json:
        """Return the body of an error."""
        ...

    def models(self, context_lengths: Mapping[str, int]) -> Json:
        """Return the list of models."""
        ...

    def reply(self, answer: Spoken, incoming: Incoming) -> Json:
        """Return the whole answer, usage included; the prompt counts as sent from here on."""
        ...

    def events(self, reply: Json, incoming: Incoming) -> Iterator[bytes]:
        """Yield the same answer as server-sent events."""
        ...


class Ids:
    """Issues ids that tell in which order things happened."""

    def __init__(self) -> None:
        self._next = count(1)

    def new(self, kind: str) -> str:
        """Return the next id, such as `msg_000017`."""
        return f"{kind}_{next(self._next):06}"


def slices(text: str) -> Iterator[str]:
    """Yield a text in the pieces in which it is streamed."""
    for start in range(0, len(text), DELTA):
        yield text[start : start + DELTA]


def write(value: object) -> str:
    """Return a value as JSON text."""
    return msgspec.json.encode(value).decode()
