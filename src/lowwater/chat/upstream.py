"""Asks a model over HTTP with streaming, at any OpenAI- or Anthropic-compatible address."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx2
import msgspec
from msgspec import Struct

from lowwater.chat.protocol import STOPPED, Show, streamed_text
from lowwater.core.formats.anthropic import betas_of_body
from lowwater.core.formats.codec import decode_response
from lowwater.core.formats.refusals import context_length_in
from lowwater.core.formats.streams import EventReader, stream_for
from lowwater.core.messages import Format
from lowwater.core.secrets.redaction import conceal
from lowwater.core.strict_json import read_json, write_json
from lowwater.errors import AnswerFailed, BadInput, PromptTooLong
from lowwater.summarizers.endpoint import Endpoint, with_betas
from lowwater.summarizers.exchange import asked_to_wait, failure_of, is_too_long, is_worth_retrying

_STREAM = "text/event-stream"
TRIES = 4
_BACK_OFF = 1.0
"""Seconds before the first retry; each further one waits twice as long."""
_LONGEST_WAIT = 60.0
"""The longest `retry-after` in seconds that is honoured; beyond it the call fails."""
_TIMEOUT = httpx2.Timeout(300.0, connect=10.0)
"""Seconds of silence after which an answer is given up."""
_READ = 20_000
"""Characters of an error that are read."""


class AnswerListener:
    """Collects one answer from the chunks of a response and shows its text."""

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
        """Whether the answer is complete, so that nothing more has to be read."""
        return self._is_streamed and self._stream.is_done

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes and show their text."""
        if not self._is_streamed:
            self._body += chunk
            return
        self._stream.feed(chunk)
        for event in self._events.feed(chunk):
            self._say(streamed_text(event))

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
        """Return an answer that did not come as a stream although one was requested."""
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


class _Busy(Exception):
    """Nothing of an answer came, and asking again may help."""

    def __init__(self, failed: AnswerFailed, wait: float | None) -> None:
        super().__init__(str(failed))
        self.failed = failed
        self.wait = wait


class HttpUpstream:
    """One model at one address; a call that fails before its answer begins is retried, at most `TRIES` times."""

    def __init__(
        self,
        endpoint: Endpoint,
        client: httpx2.Client,
        *,
        base_url: str,
        max_output: int | None = None,
        note: Callable[[str], None],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._endpoint = endpoint
        self._client = client
        self._note = note
        self._sleep = sleep
        self.base_url = base_url
        self.max_output = max_output

    @property
    def model(self) -> str:
        """The model's name."""
        return self._endpoint.model

    @property
    def format(self) -> Format:
        """The message format of the API there."""
        return self._endpoint.format

    def ask(self, fields: Mapping[str, Any], *, max_tokens: int, show: Show) -> bytes:
        """Return the complete answer, its text shown as it comes; raise AnswerFailed or PromptTooLong."""
        body = self._body(fields, max_tokens)
        for tries in range(1, TRIES):
            try:
                return self._once(body, show)
            except _Busy as busy:
                wait = _BACK_OFF * 2 ** (tries - 1) if busy.wait is None else busy.wait
                if wait > _LONGEST_WAIT:
                    raise AnswerFailed(f"{busy}; it asks to wait {wait:,.0f} s, so ask again later") from None
                self._note(f"{busy}: asking again in {wait:g} s")
                self._sleep(wait)
        try:
            return self._once(body, show)
        except _Busy as busy:
            raise busy.failed from None

    def keep_warm(self, fields: Mapping[str, Any]) -> bytes:
        """Send the prompt of an earlier request once more, with one token of output, and without retrying."""
        try:
            return self._once(self._body(fields, 1), lambda _: None)
        except _Busy as busy:
            raise busy.failed from None

    def _body(self, fields: Mapping[str, Any], max_tokens: int) -> bytes:
        limit = "max_completion_tokens" if self._endpoint.limits_completion else "max_tokens"
        body: dict[str, Any] = {"model": self.model, limit: max_tokens, "stream": True, **fields}
        if self.format == "openai_chat":
            body["stream_options"] = {"include_usage": True}
        return write_json(body)

    def _once(self, body: bytes, show: Show) -> bytes:
        asked_at = with_betas(self._endpoint, betas_of_body(body))
        headers = {**asked_at.headers, "accept": "text/event-stream"}
        listening: AnswerListener | None = None
        try:
            with self._client.stream(
                "POST", self._endpoint.url, content=body, headers=headers, timeout=_TIMEOUT
            ) as response:
                if response.status_code != 200:
                    raise _refusal(response.status_code, dict(response.headers), response.read())
                content_type = response.headers.get("content-type", "")
                listening = AnswerListener(self.format, show, content_type=content_type)
                for chunk in response.iter_bytes():
                    listening.feed(chunk)
                    if listening.is_done:
                        break
            return listening.whole()
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise _broken(f"the connection failed ({type(error).__name__})", listening) from None
        except AnswerFailed as failed:
            raise _broken(str(failed), listening) if listening else failed from None
        except KeyboardInterrupt:
            if listening is None or not listening.text:
                raise
            raise listening.cut(STOPPED) from None


def _broken(said: str, listening: AnswerListener | None) -> Exception:
    """Return the error for an answer that broke off; it can be retried if nothing of it was shown."""
    if listening is None or not listening.text:
        return _Busy(AnswerFailed(said), None)
    return listening.cut(said)


class _Error(Struct):
    message: str = ""


class _Refused(Struct):
    error: _Error | str | None = None


def _refusal(status: int, headers: Mapping[str, str], body: bytes) -> Exception:
    """Return the error for an unsuccessful status, quoting the provider for the user."""
    failure, told = failure_of(status, body), body[:_READ].decode("utf-8", "replace")
    said = f"{failure}{_quoted(body)}"
    if failure.kind == "refused" and is_too_long(status, told):
        return PromptTooLong(str(failure), limit=context_length_in(told))
    if is_worth_retrying(status, failure):
        return _Busy(
            AnswerFailed(said), asked_to_wait({name.lower(): value for name, value in headers.items()})
        )
    return AnswerFailed(said)


def _quoted(body: bytes) -> str:
    try:
        error = read_json(body, _Refused).error
    except (BadInput, msgspec.MsgspecError):
        return ""
    text = " ".join(conceal((error.message if isinstance(error, _Error) else error or "")[:2_000]).split())
    return f"; it says: {text[:300]}" if text else ""
