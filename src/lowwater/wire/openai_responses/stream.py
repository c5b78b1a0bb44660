"""A Responses answer put together from the events it was streamed in."""

from typing import Any

from msgspec import Raw, Struct

from lowwater.errors import BadInput
from lowwater.wire.reading import read_fields, read_json, write_array, write_object

_NULL = Raw(b"null")
_ENDS = frozenset({"response.completed", "response.incomplete"})
_BEGINS = frozenset({"response.created", "response.in_progress", "response.queued"})

_OPENING = _BEGINS | {"response.failed", "error", "keepalive"}


class _Error(Struct, frozen=True):
    code: Any = None
    type: str | None = None
    message: str | None = None


class _Event(Struct):
    type: str = ""
    response: Raw = _NULL
    item: Raw = _NULL
    output_index: int = 0
    # An `error` event says what it has to say itself, or in an object of its own.
    code: Any = None
    message: str | None = None
    error: _Error | None = None


class _Failed(Struct):
    error: _Error | None = None


class _Usage(Struct):
    usage: Raw = _NULL


class _Output(Struct):
    output: list[Raw] | None = None


class StreamedResponse:
    """The answer of one call: its last event has all of it, or the items that were done are its output."""

    def __init__(self) -> None:
        self.is_done = False
        self.has_begun = False
        self.error = ""
        self._response = b""
        self._items: dict[int, bytes] = {}

    def take(self, event: bytes) -> None:
        """Add one event; the pieces of items are repeated when an item is done."""
        said = read_json(event, _Event)
        self.has_begun = self.has_begun or said.type not in _OPENING
        if said.type in _BEGINS or said.type in _ENDS:
            if bytes(said.response)[:1] != b"{":
                raise BadInput(f"a {said.type} without a response")
            self._response = bytes(said.response)
            self.is_done = said.type in _ENDS
        elif said.type == "response.output_item.done":
            self._items[said.output_index] = bytes(said.item)
        elif said.type == "response.failed":
            self.error = _said(read_json(bytes(said.response), _Failed).error)
        elif said.type == "error":
            self.error = _said(said.error or _Error(code=said.code, message=said.message))

    def is_whole(self) -> bool:
        """Without its last event there may be more to come."""
        return self.is_done

    def usage(self) -> bytes:
        """Return the usage told so far as JSON; empty if none was."""
        usage = read_json(self._response, _Usage).usage if self._response else _NULL
        return b"" if bytes(usage) == b"null" else bytes(usage)

    def answer(self) -> bytes:
        """Return what came so far as a response, byte for byte if it came whole; empty if nothing did."""
        if not self._response:
            return b""
        if not self._items or read_json(self._response, _Output).output:
            return self._response
        # Some backends leave the output out of the last event.
        items = [self._items[at] for at in sorted(self._items)]
        return write_object(read_fields(self._response) | {"output": write_array(items)})


def _said(error: _Error | None) -> str:
    if error is None:
        return "error: the response failed"
    return f"{error.code or error.type or 'error'}: {error.message or ''}"
