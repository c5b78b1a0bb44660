"""The recorded sessions, where they are on this machine: read only, never part of the project."""

import gzip
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from lowwater.core.formats.openai_chat import decode_message
from lowwater.core.messages import Message

CANONICAL = Path(__file__).parents[2] / "shared" / "transcripts" / "canonical"
ABSENT = f"no recorded sessions at {CANONICAL}: nothing to measure"


class _Header(Struct):
    id: str
    agent: str = ""
    model: str | None = None


class _Line(Struct):
    role: str
    kind: str | None = None
    model: str | None = None
    usage: Raw = Raw(b"")
    ts: datetime | None = None


class Recorded(Struct, frozen=True, kw_only=True):
    """One message, what the recorder says about it, and the usage of the call that wrote it."""

    message: Message
    kind: str
    model: str
    usage: bytes
    at: float | None = None
    """When it was written; None if that was not recorded."""


class Session(Struct, frozen=True, kw_only=True):
    """One recorded session."""

    name: str
    id: str
    agent: str
    messages: tuple[Recorded, ...]


def sessions() -> Iterator[Session]:
    """Yield every recorded session in order of its file's name."""
    for path in sorted(CANONICAL.glob("*/*.jsonl.gz")):
        first, *lines = gzip.decompress(path.read_bytes()).splitlines()
        header = msgspec.json.decode(first, type=_Header)
        yield Session(
            name=f"{path.parent.name}/{header.id}",
            id=header.id,
            agent=header.agent,
            messages=tuple(_recorded(line, index, header) for index, line in enumerate(lines)),
        )


def _recorded(raw: bytes, index: int, header: _Header) -> Recorded:
    line = msgspec.json.decode(raw, type=_Line)
    return Recorded(
        message=decode_message(raw, index),
        kind=line.kind or "",
        model=line.model or header.model or "",
        usage=bytes(line.usage),
        at=line.ts.timestamp() if line.ts else None,
    )
