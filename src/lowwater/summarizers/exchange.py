"""One request to a model as a generator of steps: what to post, how long to wait, what to retry, and what an answer means.

The steps are carried out by `http.py`, blocking or awaited.
"""

import math
import re
import time
from collections.abc import Callable, Generator, Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from types import MappingProxyType

from msgspec import Struct

from lowwater.core.api_calls import Response, Usage
from lowwater.core.formats.codec import decode_response
from lowwater.core.formats.openai_responses import failed_in
from lowwater.core.formats.refusals import context_length_in
from lowwater.core.formats.streams import CUT_OFF, stream_for
from lowwater.core.messages import Opaque
from lowwater.core.summary.request import Written
from lowwater.errors import BadInput, SummaryFailed

TRIES = 3

_BACK_OFF = 0.5
"""Seconds before a busy provider is asked again, doubled each time, unless it names its own.

After a broken connection the first retry is immediate.
"""

_READ = 20_000
"""Characters of an error body that are read."""

_ACCESS = frozenset({401, 402, 403, 407})

_BUSY = frozenset({408, 425, 429})

_BEYOND_CONTEXT = re.compile(r"context.{0,3}(?:length|size|window|limit)|maximum context", re.IGNORECASE)

_TOO_LONG = re.compile(rf"too long|too large|too many tokens|{_BEYOND_CONTEXT.pattern}", re.IGNORECASE)

_TOO_LARGE_FOR_ANY_MINUTE = re.compile(r"request too large", re.IGNORECASE)

_NO_MONEY = re.compile(r"insufficient_quota|credit balance is too low", re.IGNORECASE)

_STATUSES = MappingProxyType({"rate_limit_exceeded": 429, "server_error": 500, "error": 500})
"""The HTTP status that an error code inside a 200 answer corresponds to; any other code is about the request."""

_CALLS = frozenset({"tool_use", "tool_calls", "function_call", "pause_turn"})

_DECLINES = frozenset({"refusal", "content_filter"})

_CUT_OFF = frozenset(
    {"max_tokens", "length", "model_context_window_exceeded", "max_output_tokens", "incomplete"}
)

_REFUSAL = "refusal"

_REFUSAL_FIELD = b'"refusal"'

_STREAM = (b"event:", b"data:", b":")

_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)\s*", re.DOTALL)


class Post(Struct, frozen=True, kw_only=True):
    """Send the body; the answer has to be complete within `seconds`."""

    body: bytes
    seconds: float


class RetryPause(Struct, frozen=True, kw_only=True):
    """Wait before the next step."""

    seconds: float


class Reply(Struct, frozen=True, kw_only=True):
    """The provider's answer, whatever its status."""

    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes


class Lost(Struct, frozen=True, kw_only=True):
    """There was no answer."""

    because: SummaryFailed
    again: bool = False
    """Whether no part of an answer had arrived, so that a retry is not billed twice."""


ExchangeStep = Post | RetryPause

StepResult = Reply | Lost | None


def exchange(body: bytes, left: Callable[[], float]) -> Generator[ExchangeStep, StepResult, bytes]:
    """Return the body of a successful answer, or raise SummaryFailed; `left()` is how many seconds remain."""
    for tries in range(1, TRIES + 1):
        outcome = yield Post(body=body, seconds=_positive(left()))
        match outcome:
            case Reply(status=200):
                return outcome.body
            case Reply():
                failure = failure_of(outcome.status, outcome.body)
                again = is_worth_retrying(outcome.status, failure)
                wait = asked_to_wait(outcome.headers)
            case Lost():
                failure, again = outcome.because, outcome.again
                wait = _BACK_OFF * (tries - 1)
            case _:
                raise AssertionError("a request was sent and nothing became of it")
        if not again or tries == TRIES:
            raise failure
        wait = _BACK_OFF * 2 ** (tries - 1) if wait is None else wait
        if wait >= left():
            raise SummaryFailed(f"{failure}; waiting {wait:g} s to ask again would take too long", "timeout")
        yield RetryPause(seconds=wait)
    raise AssertionError("the last try returns or raises")


def _positive(seconds: float) -> float:
    if seconds <= 0:
        raise SummaryFailed("no time left to ask for a summary", "timeout")
    return seconds


def asked_to_wait(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait that the headers of a refusal name (`retry-after-ms`, `retry-after`), or None."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1_000
    said = headers.get("retry-after", "")
    seconds = _number(said)
    return seconds if seconds is not None else _until(said)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _until(date: str) -> float | None:
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
    except (ValueError, OverflowError, OSError):
        return None


def failure_of(status: int, body: bytes) -> SummaryFailed:
    """Return the failure; its text may be logged: providers' errors quote prompts and keys, and nothing of them is in it."""
    return _failure(status, body[:_READ].decode("utf-8", "replace"), _named(status))


def failure_in_answer(said: str, *, spent: Usage | None = None) -> SummaryFailed:
    """Return the failure of a call that was accepted and then answered with an error, given as `code: message`."""
    status = _STATUSES.get(said.partition(":")[0], 400)
    failure = _failure(status, said[:_READ], "in its answer")
    return SummaryFailed(str(failure), failure.kind, spent=spent)


def _failure(status: int, said: str, named: str) -> SummaryFailed:
    if status in _ACCESS or (status in (400, 429) and _NO_MONEY.search(said)):
        return SummaryFailed(f"the provider gives no access ({named}): check the key and the account", "auth")
    if is_too_long(status, said):
        limit = context_length_in(said)
        window = f"the model's window of {limit:,} tokens" if limit else "what the model takes"
        return SummaryFailed(f"the request is longer than {window} ({named})", "refused")
    if status in _BUSY or status >= 500:
        return SummaryFailed(f"the provider is not able to answer now ({named})", "network")
    return SummaryFailed(
        f"the provider refuses the request ({named}): check model, format and base_url", "refused"
    )


def is_worth_retrying(status: int, failure: SummaryFailed) -> bool:
    """Return whether the same request may succeed a little later."""
    return failure.kind == "network" and (status in _BUSY or status >= 500)


def is_too_long(status: int, said: str) -> bool:
    """Return whether the request is too long for the model; an overloaded provider says "too large" of other things, too."""
    if status in _BUSY:
        return _TOO_LARGE_FOR_ANY_MINUTE.search(said) is not None
    pattern = _BEYOND_CONTEXT if status >= 500 else _TOO_LONG
    return status == 413 or pattern.search(said) is not None


def _named(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def written_in(raw: bytes, *, asked: str) -> Written:
    """Return the summary in a provider's answer, or raise SummaryFailed for a tool call, a refusal or an empty answer."""
    raw = _unstreamed(raw)
    try:
        if (failed := failed_in(raw)) is not None:
            raise failure_in_answer(failed.said, spent=failed.usage)
        response = decode_response(raw)
    except BadInput:
        raise SummaryFailed(
            f"the answer of {asked} cannot be read: {len(raw):,} bytes of something else"
        ) from None
    cut_off, spent = response.stop in _CUT_OFF, response.usage
    if response.message.calls or response.stop in _CALLS:
        raise SummaryFailed(f"{asked} called a tool instead of writing a summary", spent=spent)
    if response.stop in _DECLINES or _declines(response):
        raise SummaryFailed(f"{asked} declined to write a summary", "refused", spent=spent)
    text = _THOUGHT.sub("", response.message.text).strip()
    if not text and cut_off:
        raise SummaryFailed(f"{asked} used up its length before it wrote anything", "refused", spent=spent)
    if not text:
        raise SummaryFailed(f"{asked} answered with nothing", spent=spent)
    return Written(text=text, by=asked, cut_off=cut_off, usage=spent, model=response.model or asked)


def _declines(response: Response) -> bool:
    """Return whether the answer is marked as a refusal; a refusal in prose is found when the summary is judged."""
    return any(
        _REFUSAL_FIELD in part.extra or (isinstance(part, Opaque) and part.block == _REFUSAL)
        for part in response.message.parts
    )


def _unstreamed(raw: bytes) -> bytes:
    """Return a streamed answer as one body; only the Responses API is asked for streams, where it gives nothing else."""
    if not raw.lstrip().startswith(_STREAM):
        return raw
    stream = stream_for("openai_responses")
    stream.feed(raw)
    stream.end()
    answer = stream.answer()
    if answer is not None:
        return answer
    if stream.broken == CUT_OFF:
        raise SummaryFailed("the connection broke in the middle of the answer", "network", spent=stream.usage)
    raise failure_in_answer(stream.broken, spent=stream.usage)
