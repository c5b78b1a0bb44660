"""Messages as lines of a file: as they came, byte for byte, and all in one format."""

from collections.abc import Sequence
from typing import get_args

from lowwater.values.message import Format, Message
from lowwater.wire.detect import told_format
from lowwater.wire.formats import encode_messages, reread


def message_lines(messages: Sequence[Message]) -> list[bytes]:
    """Return one JSON object a line, without line ends.

    Those that came in the format the messages speak last, or read the same there, leave as they came; line breaks
    between their fields become spaces.
    """
    format = _spoken(messages)
    read = list(messages)
    for other in get_args(Format):
        read = reread(read, assumed=other, format=format)
    return [_on_one_line(raw) for raw in encode_messages(read, format)]


def _spoken(messages: Sequence[Message]) -> Format:
    """Return the format that was told last, or else the one they were read in."""
    wires = [message.wire for message in reversed(messages) if message.wire is not None]
    told = told_format(wire.raw for wire in wires)
    return told or (wires[0].format if wires else "openai_chat")


def _on_one_line(raw: bytes) -> bytes:
    # Inside a JSON string there is no bare line break, so this changes nothing but the space between fields.
    return raw.strip().replace(b"\n", b" ").replace(b"\r", b" ")
