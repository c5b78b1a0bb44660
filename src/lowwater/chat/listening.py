"""Listening to one answer: its text as it comes, the whole of it at the end."""

from lowwater.chat.ports import Show
from lowwater.chat.speaking import text_in
from lowwater.core.formats.codec import decode_response
from lowwater.core.formats.streams import EventReader, stream_for
from lowwater.core.messages import Format
from lowwater.core.secrets.redaction import conceal
from lowwater.errors import AnswerFailed, BadInput

_STREAM = "text/event-stream"


class Listening:
    """What came of one answer so far; feed it the chunks of a response as they come."""

    def __init__(self, format: Format, show: Show, *, content_type: str) -> None:
        self._is_streamed = _STREAM in content_type
        self._stream = stream_for(format)
        self._events = EventReader()
        self._body = bytearray()
        self._show = show
        self._pieces: list[str] = []

    @property
    def text(self) -> str:
        """The text that was shown."""
        return "".join(self._pieces)

    @property
    def is_done(self) -> bool:
        """Whether the whole answer is there, so that nobody needs to wait for more."""
        return self._is_streamed and self._stream.is_done

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes and show what they say."""
        if not self._is_streamed:
            self._body += chunk
            return
        self._stream.feed(chunk)
        for event in self._events.feed(chunk):
            self._say(text_in(event))

    def whole(self) -> bytes:
        """Return the answer, or raise AnswerFailed with what came of it."""
        if not self._is_streamed:
            return self._whole_body()
        if not self._stream.is_done:
            self._stream.end()
        answer = self._stream.answer()
        if answer is None:
            raise self.cut(f"the answer broke off: {conceal(self._stream.broken)[:200]}")
        return answer

    def cut(self, said: str) -> AnswerFailed:
        """Return the failure that ends this answer here."""
        return AnswerFailed(said, text=self.text, usage=self._stream.usage)

    def _whole_body(self) -> bytes:
        """Return an answer that did not come as a stream although one was asked for."""
        try:
            response = decode_response(bytes(self._body))
        except BadInput:
            raise AnswerFailed(
                f"the answer cannot be read: {len(self._body):,} bytes of something else"
            ) from None
        self._say(response.message.text)
        return bytes(self._body)

    def _say(self, piece: str) -> None:
        if piece:
            self._pieces.append(piece)
            self._show(piece)
