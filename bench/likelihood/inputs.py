"""What is scored, as a file of tokens: for each decision point its action and every view of its prompt.

It holds what was recorded, so it lives in a folder that git ignores. It needs nothing but Python, so that the file can be read on a
borrowed machine. Views share the pieces that they have in common.
"""

import json
import lzma
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import IO, Any

FULL = "full"
ENDS = (151_643, 151_645)
"""Tokens that end an answer: `<|endoftext|>` and `<|im_end|>`."""


@dataclass(frozen=True, kw_only=True)
class Spot:
    """A reference in an action: its kind, and which of the action's tokens it has."""

    kind: str
    tokens: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One decision point, ready to be scored."""

    point: str
    action: tuple[int, ...]
    kinds: tuple[str, ...]
    """Of each token of the action."""
    spots: tuple[Spot, ...]
    pieces: tuple[tuple[int, ...], ...]
    views: dict[str, tuple[int, ...]]
    """For each view the numbers of its pieces; the full prompt is the first."""

    def tokens(self, view: str) -> list[int]:
        """Return the tokens of a view."""
        return list(chain.from_iterable(self.pieces[number] for number in self.views[view]))


class Pieces:
    """Gathers pieces, each once."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, ...], int] = {}

    def add(self, pieces: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
        """Return the numbers of these pieces."""
        return tuple(self._numbers.setdefault(piece, len(self._numbers)) for piece in pieces)

    def all(self) -> tuple[tuple[int, ...], ...]:
        """Return all pieces in the order of their numbers."""
        return tuple(self._numbers)


def digest_of(tokens: Sequence[int]) -> str:
    """Return what tells a view from another state of it."""
    return sha256(",".join(map(str, tokens)).encode()).hexdigest()[:12]


def write_case(case: Case) -> bytes:
    """Return a case as a line."""
    told: dict[str, Any] = {
        "point": case.point,
        "action": case.action,
        "kinds": case.kinds,
        "spots": [[spot.kind, spot.tokens] for spot in case.spots],
        "pieces": case.pieces,
        "views": case.views,
    }
    return json.dumps(told, separators=(",", ":")).encode() + b"\n"


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, compressed or not."""
    if path.suffix == ".xz":
        with lzma.open(path, "rb") as packed:
            yield packed
    else:
        with path.open("rb") as plain:
            yield plain


def read_cases(path: Path) -> Iterator[Case]:
    """Yield the cases of a file."""
    with opened(path) as file:
        yield from map(_case, file)


def _case(line: bytes) -> Case:
    told = json.loads(line)
    return Case(
        point=told["point"],
        action=tuple(told["action"]),
        kinds=tuple(told["kinds"]),
        spots=tuple(Spot(kind=kind, tokens=tuple(tokens)) for kind, tokens in told["spots"]),
        pieces=tuple(tuple(piece) for piece in told["pieces"]),
        views={name: tuple(numbers) for name, numbers in told["views"].items()},
    )
