"""The note in the system prompt that earlier turns were compacted, which only `hermes-classic` writes (docs/specification.md: C4)."""

from collections.abc import Sequence

import msgspec
from msgspec import Raw

from lowwater.compact.making import edit
from lowwater.engine.setup import Setup
from lowwater.values.entries import Edit
from lowwater.values.parts import Text
from lowwater.values.view import Edited, Item, Original, parts_of

NOTE = "Note: earlier turns of this conversation were compacted; a summary stands where they were."
_BLOCK = msgspec.json.encode({"type": "text", "text": NOTE})


def with_note(system: bytes) -> bytes:
    """Return a system prompt, JSON as a request carries it, with the note once at its end; without one there is none."""
    if system[:1] == b'"':
        text = msgspec.json.decode(system, type=str)
        return msgspec.json.encode(f"{text}\n\n{NOTE}") if text and not text.endswith(NOTE) else system
    if system[:1] == b"[":
        blocks = msgspec.json.decode(system, type=list[Raw])
        is_there = any(bytes(block) == _BLOCK for block in blocks)
        return msgspec.json.encode([*blocks, Raw(_BLOCK)]) if blocks and not is_there else system
    return system


def without_note(system: bytes) -> bytes:
    """Return a system prompt as it was before the note."""
    if system[:1] == b'"':
        return msgspec.json.encode(msgspec.json.decode(system, type=str).removesuffix(f"\n\n{NOTE}"))
    if system[:1] == b"[":
        blocks = msgspec.json.decode(system, type=list[Raw])
        return msgspec.json.encode([block for block in blocks if bytes(block) != _BLOCK])
    return system


def note_in_message(items: Sequence[Item], setup: Setup) -> list[Item]:
    """Return the items with the note at the end of the system message that leads them, if one does."""
    first = items[0] if items else None
    if not isinstance(first, Original | Edited) or first.message.role not in {"system", "developer"}:
        return list(items)
    texts = [(path, part) for path, part in parts_of(first) if isinstance(part, Text)]
    if not texts:
        return list(items)
    path, part = texts[-1]
    noted = Text(text=f"{part.text}\n\n{NOTE}", extra=part.extra)
    return [edit(first, [Edit(path=path, by=noted)], setup.size), *items[1:]]
