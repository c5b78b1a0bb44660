"""Server-sent events out of bytes that arrive cut anywhere."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BETWEEN = (b"\n\n", b"\r\n\r\n", b"\r\r")


class EventReader:
    """Gives the data of each event as soon as it is whole; comments and fields other than `data` are left out."""

    def __init__(self) -> None:
        self._line = bytearray(b"")
        self._data: list[bytes] = []
        self._is_first = True
        self._after_return = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the data of the events that end in this chunk, in order."""
        if not chunk:
            return []
        if self._after_return:
            chunk = chunk.removeprefix(b"\n")  # the other half of a line's end
        self._after_return = chunk.endswith(b"\r")
        events: list[bytes] = []
        for piece in chunk.splitlines(keepends=True):
            self._line += piece
            if piece.endswith((b"\n", b"\r")):
                events.extend(self._end_line())
        return events

    def end(self) -> list[bytes]:
        """Return the event that no empty line ended, if there is one; nothing comes behind it."""
        return [*self._end_line(), *self._dispatch()]

    def _end_line(self) -> list[bytes]:
        line = bytes(self._line).rstrip(b"\r\n")
        self._line.clear()
        if self._is_first:
            line = line.removeprefix(_BYTE_ORDER_MARK)
            self._is_first = False
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        return []

    def _dispatch(self) -> list[bytes]:
        if not self._data:
            return []
        data = b"\n".join(self._data)
        self._data = []
        return [data]


def before_last_event(chunk: bytes) -> tuple[bytes, bytes]:
    """Cut a chunk in two, so that of the events in it only the last is in the second part."""
    events = chunk.rstrip(b"\r\n")
    cut = max((at + len(end) for end in _BETWEEN if (at := events.rfind(end)) >= 0), default=0)
    return chunk[:cut], chunk[cut:]
