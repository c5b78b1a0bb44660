"""Whether a message a client sends is one the ledger holds.

Clients write messages anew: they move cache marks, drop fields, thinking and blanks, and spell arguments differently.
None of that makes another message.
"""

from collections.abc import Sequence
from hashlib import blake2b

import msgspec

from lowwater.values.message import Message, Wire
from lowwater.values.parts import AnyPart, Text, Thinking, ToolCall, ToolResult


def says_the_same(held: Message, sent: Message) -> bool:
    """Return whether both say the same; equal bytes settle it at once."""
    if held is sent or _same_bytes(held.wire, sent.wire):
        return True
    if held.role != sent.role or (held.role == "user" and _differ(held.name, sent.name)):
        return False
    return _all_same(_said(held.parts), _said(sent.parts))


def _same_bytes(held: Wire | None, sent: Wire | None) -> bool:
    if held is None or sent is None or not (held.exact and sent.exact):
        return False
    return held.raw == sent.raw and held.format == sent.format


def _differ(ours: str, theirs: str) -> bool:
    return bool(ours and theirs) and ours != theirs


def _said(parts: Sequence[AnyPart]) -> list[AnyPart]:
    return [
        part
        for part in parts
        if not isinstance(part, Thinking) and not (isinstance(part, Text) and not part.text.strip())
    ]


def _all_same(ours: Sequence[AnyPart], theirs: Sequence[AnyPart]) -> bool:
    return len(ours) == len(theirs) and all(map(_same, ours, theirs))


def _same(ours: AnyPart, theirs: AnyPart) -> bool:
    match ours, theirs:
        case Text(), Text():
            return ours.text == theirs.text or ours.text.strip() == theirs.text.strip()
        case ToolResult(), ToolResult():
            return ours.call_id == theirs.call_id and _all_same(_said(ours.parts), _said(theirs.parts))
        case ToolCall(), ToolCall() if ours.arguments == theirs.arguments:
            return ours.id == theirs.id and ours.name == theirs.name
        case _:
            return ours == theirs


def likeness(message: Message) -> bytes:
    """Return sixteen bytes that are equal for messages that say the same, and for hardly any others."""
    said = [message.role, [_identity(part) for part in _said(message.parts)]]
    return blake2b(msgspec.json.encode(said), digest_size=16).digest()


def _identity(part: AnyPart) -> object:
    match part:
        case Text():
            return ("text", part.text.strip())
        case ToolResult():
            return ("tool_result", part.call_id, [_identity(inner) for inner in _said(part.parts)])
        case _:
            return part.identity()
