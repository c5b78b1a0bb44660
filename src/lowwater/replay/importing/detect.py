"""Which format a file is in, by its content."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from msgspec import Raw

from lowwater.core.strict_json import read_json
from lowwater.errors import BadInput
from lowwater.logs.recording import Recording
from lowwater.replay.importing.lines import RecordedFile

_ENOUGH = 50


class Format(Protocol):
    """One way in which agents write their sessions down."""

    @property
    def name(self) -> str:
        """What a person calls it."""
        ...

    def recognises(self, head: bytes, path: Path, /) -> bool:
        """Tell by the first bytes whether a file is in this format; they may end in the midst of a line."""
        ...

    def read(self, file: RecordedFile, /) -> Iterator[Recording]:
        """Yield the sessions in a file; what cannot be read goes to `file.broken`, a BadInput ends the file."""
        ...


def format_of(head: bytes, path: Path, formats: Iterable[Format]) -> Format | None:
    """Return the first format that knows the file."""
    return next((format for format in formats if format.recognises(head, path)), None)


@lru_cache(maxsize=2)
def first_objects(head: bytes) -> tuple[dict[str, Raw], ...]:
    """Return the JSON objects among the first whole lines, each with its fields as bytes; other lines are passed over.

    A single line counts as whole, in case the file has no more.
    """
    lines = head.split(b"\n")
    whole = lines[:-1] if len(lines) > 1 and lines[-1].strip() else lines
    return tuple(found for line in whole[:_ENOUGH] if (found := _fields(line)) is not None)


def _fields(line: bytes) -> dict[str, Raw] | None:
    try:
        return read_json(line, dict[str, Raw])
    except BadInput:
        return None
