"""A framework's messages beside what Lowwater reads in them: one unit, one message of the ledger."""

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from lowwater.adapters.models import load_registry
from lowwater.core.formats.codec import encode_messages
from lowwater.core.messages import AnyPart, Format, Image, Message, Role, Text, Thinking, ToolCall
from lowwater.core.strict_json import read_fields, write_json, write_object
from lowwater.session.session import Session

S = TypeVar("S")


class Piece(Struct, frozen=True, kw_only=True):
    """One part, and where the framework's message holds it: the positions mean something only to its own module."""

    part: AnyPart
    at: tuple[int, ...] = ()


class Unit(Struct, Generic[S], frozen=True, kw_only=True):
    """What the framework holds, what the ledger gets, and for each part of that where it came from."""

    source: S
    message: Message
    places: tuple[tuple[int, ...], ...]


def unit_of(source: S, role: Role, pieces: Iterable[Piece], format: Format) -> Unit[S]:
    """Return a unit whose message is read again just as it is here once it was written in `format`."""
    said = [piece for piece in pieces if not isinstance(piece.part, Text) or piece.part.text]
    readable = _as_anthropic(said) if format == "anthropic" else _as_chat(said)
    message = Message(role=_role(role, format), parts=tuple(piece.part for piece in readable))
    return Unit(source=source, message=message, places=tuple(piece.at for piece in readable))


def wires_of(units: Sequence[Unit[S]], format: Format) -> list[bytes]:
    """Return the message of every unit as bytes; the same unit gives the same bytes, whatever stands around it."""
    return [wire_of(unit.message, format) for unit in units]


def wire_of(message: Message, format: Format) -> bytes:
    """Return one message as bytes, an empty one included."""
    written = encode_messages([message], format) if message.parts and message.role != "system" else []
    if not written:
        return write_json({"role": message.role, "content": message.text})
    failed = format == "openai_chat" and any(result.is_error for result in message.results)
    return write_object(read_fields(written[0]) | {"is_error": b"true"}) if failed else written[0]


def picture_at(url: str) -> Image:
    """Return the picture behind a URL, or inside of it."""
    head, comma, data = url.partition(";base64,")
    if comma and head.startswith("data:"):
        return Image(source="base64", data=data, media_type=head.removeprefix("data:"))
    return Image(source="url", data=url)


def format_of(session: Session) -> Format:
    """Return the format in which a session is told its messages: the one it began with, else its model's own."""
    for item in session.ledger.view.items:
        if item.message.wire is not None and item.message.wire.format in ("anthropic", "openai_chat"):
            return item.message.wire.format
    found = load_registry().find(session.route.model)
    return "anthropic" if found.provider == "anthropic" else "openai_chat"


def _role(role: Role, format: Format) -> Role:
    return "user" if format == "anthropic" and role == "tool" else role


def _as_anthropic(pieces: Sequence[Piece]) -> list[Piece]:
    """Thinking that nobody signed has no form there."""
    return [piece for piece in pieces if not isinstance(piece.part, Thinking) or piece.part.signature]


def _as_chat(pieces: Sequence[Piece]) -> list[Piece]:
    """All thinking is one field there, before the content; calls stand behind it."""
    thoughts = [piece for piece in pieces if isinstance(piece.part, Thinking)]
    calls = [piece for piece in pieces if isinstance(piece.part, ToolCall)]
    others = [piece for piece in pieces if not isinstance(piece.part, Thinking | ToolCall)]
    text = "\n".join(
        piece.part.text for piece in thoughts if isinstance(piece.part, Thinking) and piece.part.text
    )
    at = tuple(position for piece in thoughts for position in piece.at)
    thought = [Piece(part=Thinking(text=text), at=at)] if text else []
    return [*thought, *others, *calls]
