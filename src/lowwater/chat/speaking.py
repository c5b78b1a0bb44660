"""What the loop needs from the outside, and what it says and hears in a provider's format."""

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from msgspec import Struct

from lowwater.chat.tools import Outcome
from lowwater.core.api_calls import Usage
from lowwater.core.messages import Format, ToolCall
from lowwater.core.strict_json import read_json, write_json
from lowwater.errors import BadInput

Show = Callable[[str], None]


"""Takes a piece of an answer's text as it comes."""


class Upstream(Protocol):
    """One model at one place."""

    @property
    def model(self) -> str:
        """The model that answers, as the user spells it."""
        ...

    @property
    def base_url(self) -> str:
        """Where it is asked; empty for its provider's own address."""
        ...

    @property
    def format(self) -> Format:
        """The format that is spoken there."""
        ...

    @property
    def max_output(self) -> int | None:
        """The tokens that its answers can have at most; None if that is not known."""
        ...

    def ask(self, fields: Mapping[str, Any], *, max_tokens: int, show: Show) -> bytes:
        """Return the whole answer, its text shown as it comes; raise AnswerFailed, or PromptTooLong.

        Whatever stops it half way, the user included, is an AnswerFailed with what came until then.
        """
        ...


class Watcher(Protocol):
    """Is shown what happens in a turn."""

    def said(self, piece: str, /) -> None:
        """Take a piece of the model's text."""
        ...

    def calling(self, call: ToolCall, /) -> None:
        """Take a tool call that is about to be answered."""
        ...

    def called(self, call: ToolCall, outcome: Outcome, /) -> None:
        """Take the outcome of a tool call."""
        ...

    def note(self, sentence: str, /) -> None:
        """Take something worth knowing that nobody said."""
        ...


STOPPED = "stopped; what came of the answer is kept"


"""What an answer fails with that the user stopped."""


class Answered(Struct, frozen=True, kw_only=True):
    """A tool call with its outcome."""

    call: ToolCall
    outcome: Outcome


def results_in(answered: Iterable[Answered], format: Format) -> list[dict[str, Any]]:
    """Return the messages that bring tool results to the model."""
    if format != "anthropic":
        return [
            {"role": "tool", "tool_call_id": each.call.id, "content": each.outcome.text} for each in answered
        ]
    blocks: list[dict[str, Any]] = [
        {"type": "tool_result", "tool_use_id": each.call.id, "content": each.outcome.text}
        | ({"is_error": True} if each.outcome.is_error else {})
        for each in answered
    ]
    return [{"role": "user", "content": blocks}]


def text_answer(text: str, usage: Usage, format: Format, *, model: str) -> bytes:
    """Return an answer of text alone as its provider would have given it whole."""
    if format == "anthropic":
        return write_json(
            {
                "type": "message",
                "role": "assistant",
                "model": model,
                "content": [{"type": "text", "text": text}],
                "stop_reason": "end_turn",
                "usage": usage_in(usage, format),
            }
        )
    message = {"role": "assistant", "content": text}
    return write_json(
        {
            "object": "chat.completion",
            "model": model,
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": usage_in(usage, format),
        }
    )


def usage_in(usage: Usage, format: Format) -> dict[str, Any]:
    """Return what a call consumed as its provider reports it."""
    if format == "anthropic":
        return {
            "input_tokens": usage.uncached,
            "cache_read_input_tokens": usage.cache_read,
            "cache_creation_input_tokens": usage.cache_write + usage.cache_write_long,
            "cache_creation": {
                "ephemeral_5m_input_tokens": usage.cache_write,
                "ephemeral_1h_input_tokens": usage.cache_write_long,
            },
            "output_tokens": usage.output,
        }
    written = usage.cache_write + usage.cache_write_long
    details = {"cached_tokens": usage.cache_read} | ({"cache_write_tokens": written} if written else {})
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.prompt + usage.output,
        "prompt_tokens_details": details,
    }


class _Delta(Struct):
    text: str | None = None
    content: str | None = None
    refusal: str | None = None


class _Choice(Struct):
    delta: _Delta | None = None


class _Event(Struct):
    delta: _Delta | None = None
    choices: list[_Choice] | None = None


def text_in(event: bytes) -> str:
    """Return the piece of the answer's text that a streamed event brings, in either format; mostly nothing."""
    try:
        said = read_json(event, _Event)
    except BadInput:
        return ""
    deltas = [said.delta, *(choice.delta for choice in said.choices or [])]
    return "".join(
        (delta.text or delta.content or delta.refusal or "") for delta in deltas if delta is not None
    )


@contextmanager
def defer_interrupt() -> Iterator[None]:
    """Put Ctrl-C off until what is done inside is done; then it is a KeyboardInterrupt as ever."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt
