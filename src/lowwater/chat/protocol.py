"""The interfaces between the loop and the world (model, user interface), and messages in a provider's format."""

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from msgspec import Struct

from lowwater.chat.tools import ToolOutcome
from lowwater.core.api_calls import Usage
from lowwater.core.formats.usage import anthropic_usage_fields
from lowwater.core.messages import Format, ToolCall
from lowwater.core.strict_json import read_json, write_json
from lowwater.errors import BadInput

Show = Callable[[str], None]
"""Takes a piece of an answer's text as it comes."""
STOPPED = "stopped; what came of the answer is kept"
"""The message of the AnswerFailed for an answer that the user stopped."""


class Upstream(Protocol):
    """A model at an address, as the agent asks it."""

    @property
    def model(self) -> str:
        """The model that answers, as the user spells it."""
        ...

    @property
    def base_url(self) -> str:
        """The address; empty for its provider's own."""
        ...

    @property
    def format(self) -> Format:
        """The message format of the API there."""
        ...

    @property
    def max_output(self) -> int | None:
        """The most tokens that an answer can have; None if that is not known."""
        ...

    def ask(self, fields: Mapping[str, Any], *, max_tokens: int, show: Show) -> bytes:
        """Return the complete answer, calling `show` with its text as it comes; raise AnswerFailed or PromptTooLong.

        Anything that stops it half-way, Ctrl-C included, is an AnswerFailed with the text that came until then.
        """
        ...

    def keep_warm(self, fields: Mapping[str, Any]) -> bytes:
        """Send the prompt of an earlier request once more, with the shortest output; raise AnswerFailed without retrying."""
        ...


class Watcher(Protocol):
    """Is notified of what happens in a turn, to show it to the user."""

    def on_text(self, piece: str, /) -> None:
        """Take a piece of the model's text."""
        ...

    def on_tool_call(self, call: ToolCall, /) -> None:
        """Take a tool call that is about to run."""
        ...

    def on_tool_result(self, call: ToolCall, outcome: ToolOutcome, /) -> None:
        """Take the outcome of a tool call."""
        ...

    def on_notice(self, sentence: str, /) -> None:
        """Take a notice from the agent itself."""
        ...


class AnsweredCall(Struct, frozen=True, kw_only=True):
    """A tool call with its outcome."""

    call: ToolCall
    outcome: ToolOutcome


def result_messages(answered: Iterable[AnsweredCall], format: Format) -> list[dict[str, Any]]:
    """Return the messages with tool results for the model."""
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
    """Return an answer that is only text in the form of the provider's API."""
    if format == "anthropic":
        return write_json(
            {
                "type": "message",
                "role": "assistant",
                "model": model,
                "content": [{"type": "text", "text": text}],
                "stop_reason": "end_turn",
                "usage": usage_fields(usage, format),
            }
        )
    message = {"role": "assistant", "content": text}
    return write_json(
        {
            "object": "chat.completion",
            "model": model,
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": usage_fields(usage, format),
        }
    )


def usage_fields(usage: Usage, format: Format) -> dict[str, Any]:
    """Return the usage of a call in the form of the provider's API."""
    if format == "anthropic":
        return anthropic_usage_fields(usage)
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


def streamed_text(event: bytes) -> str:
    """Return the text in a streamed event, in either format; often empty."""
    try:
        decoded = read_json(event, _Event)
    except BadInput:
        return ""
    deltas = [decoded.delta, *(choice.delta for choice in decoded.choices or [])]
    return "".join(
        (delta.text or delta.content or delta.refusal or "") for delta in deltas if delta is not None
    )


@contextmanager
def defer_interrupt() -> Iterator[None]:
    """Defer Ctrl-C to the end of the block, where it raises KeyboardInterrupt as usual."""
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
