"""An Anthropic message put together from the events it was streamed in."""

from typing import Any

from msgspec import Raw, Struct

from lowwater.errors import BadInput
from lowwater.wire.reading import read_fields, read_json, read_plain, write_array, write_json, write_object

Fields = dict[str, Any]

_GROWING = ("text", "thinking", "signature", "content")
"""Fields of a block that come in pieces, by the name they have in their deltas."""
_NONE = Raw(b"{}")
_NULL = b"null"
_OWN = frozenset({"type", "delta", "usage"})
_KINDS = frozenset(
    {"message_start", "content_block_start", "content_block_delta", "message_delta", "message_stop", "error"}
)

_OPENING = frozenset({"message_start", "error"})


class _Typed(Struct):
    type: str = ""


class _Error(Struct, frozen=True):
    type: str = ""
    message: str = ""


class _Event(Struct):
    type: str
    index: int = 0
    message: Raw = _NONE
    content_block: Raw = _NONE
    delta: Raw = _NONE
    usage: Raw = _NONE
    error: _Error = _Error()


class _Block:
    """A content block that grows: its pieces are joined once, at the end."""

    def __init__(self, opened: Fields) -> None:
        self._opened = opened
        self._pieces: dict[str, list[str]] = {}
        self._input: list[str] = []
        self._citations: list[Any] = []

    def add(self, delta: Fields) -> None:
        for name in _GROWING:
            if isinstance(delta.get(name), str):
                begun = self._opened.get(name)
                self._pieces.setdefault(name, [begun if isinstance(begun, str) else ""]).append(delta[name])
        if isinstance(delta.get("partial_json"), str):
            self._input.append(delta["partial_json"])
        if "citation" in delta:
            self._citations.append(delta["citation"])

    def whole(self) -> bytes:
        block: Fields = self._opened | {name: "".join(said) for name, said in self._pieces.items()}
        if self._citations:
            block["citations"] = [*(block.get("citations") or []), *self._citations]
        written = "".join(self._input)
        if written.strip():
            block["input"] = Raw(_as_object(written.encode(errors="replace")))
        return write_json(block)


class StreamedMessage:
    """The answer of one call."""

    def __init__(self) -> None:
        self.is_done = False
        self.has_begun = False
        self.error = ""
        self._message: dict[str, bytes] = {}
        self._usage: dict[str, bytes] | None = None
        self._blocks: dict[int, _Block] = {}

    def take(self, event: bytes) -> None:
        """Add one event; figures of the usage that come later count."""
        if read_json(event, _Typed).type not in _KINDS:
            return
        said = read_json(event, _Event)
        self.has_begun = self.has_begun or said.type not in _OPENING
        match said.type:
            case "message_start":
                self._message = read_fields(bytes(said.message))
                self._usage = _figures(self._message.get("usage", _NULL))
            case "content_block_start":
                self._blocks[said.index] = _Block(_plain(said.content_block))
            case "content_block_delta":
                self._blocks.setdefault(said.index, _Block({"type": "text", "text": ""})).add(
                    _plain(said.delta)
                )
            case "message_delta":
                self._end(said, read_fields(event))
            case "message_stop":
                self.is_done = True
            case _:
                self.error = f"{said.error.type or 'error'}: {said.error.message}"

    def is_whole(self) -> bool:
        """Without its last event there may be more to come."""
        return self.is_done

    def usage(self) -> bytes:
        """Return the usage told so far as JSON; empty if none was."""
        return b"" if self._usage is None else write_object(self._usage)

    def answer(self) -> bytes:
        """Return what came so far as a message; empty if nothing did."""
        if not self._message and not self._blocks:
            return b""
        fields = self._message | {
            "role": b'"assistant"',
            "content": write_array([b.whole() for b in self._blocks.values()]),
        }
        if self._usage is not None:
            fields["usage"] = write_object(self._usage)
        return write_object(fields)

    def _end(self, said: _Event, fields: dict[str, bytes]) -> None:
        later = {name: told for name, told in (_figures(said.usage) or {}).items() if told != _NULL}
        if later:
            self._usage = (self._usage or {}) | later
        self._message |= read_fields(bytes(said.delta))
        self._message |= {name: raw for name, raw in fields.items() if name not in _OWN}


def _figures(usage: bytes | Raw) -> dict[str, bytes] | None:
    """Return the fields of a usage; None if it is no object: an answer is never lost for its numbers."""
    try:
        return read_fields(bytes(usage))
    except BadInput:
        return None


def _plain(raw: Raw) -> Fields:
    told = read_plain(bytes(raw))
    if not isinstance(told, dict):
        raise BadInput("an event of the stream holds no object where one belongs")
    return told


def _as_object(written: bytes) -> bytes:
    """Return a call's input as the model wrote it; no arguments at all where the output limit cut it."""
    try:
        read_fields(written)
    except BadInput:
        return b"{}"
    return written
