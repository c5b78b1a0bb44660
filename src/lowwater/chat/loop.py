"""The loop of the reference agent: prepare the request, ask the model, record the answer, run its tools, repeat."""

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from lowwater.chat.tools import Outcome, Toolbox
from lowwater.core.api_calls import Usage
from lowwater.core.formats.codec import decode_response
from lowwater.core.messages import Format, ToolCall
from lowwater.core.strict_json import read_json, write_json
from lowwater.errors import AnswerFailed, BadInput, PromptTooLong
from lowwater.session.request import PreparedRequest
from lowwater.session.session import Session

Show = Callable[[str], None]
"""Takes a piece of an answer's text as it comes."""

STOPPED = "stopped; what came of the answer is kept"
"""The message of the AnswerFailed for an answer that the user stopped."""
MOST_CALLS = 200
"""Most calls of the model in one turn of the user."""
_MOST_OUTPUT = 16_000
"""Most tokens of an answer, if the context is large enough."""
_CHARACTERS_PER_TOKEN = 4
_STOPPED_OUTCOME = Outcome(text="The user stopped this before it was done.", is_error=True)


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


class Watcher(Protocol):
    """Is notified of what happens in a turn, to show it to the user."""

    def said(self, piece: str, /) -> None:
        """Take a piece of the model's text."""
        ...

    def calling(self, call: ToolCall, /) -> None:
        """Take a tool call that is about to run."""
        ...

    def called(self, call: ToolCall, outcome: Outcome, /) -> None:
        """Take the outcome of a tool call."""
        ...

    def note(self, sentence: str, /) -> None:
        """Take a notice from the agent itself."""
        ...


class AnsweredCall(Struct, frozen=True, kw_only=True):
    """A tool call with its outcome."""

    call: ToolCall
    outcome: Outcome


class _ToolRun(Struct, frozen=True, kw_only=True):
    """Tool calls with their outcomes, one for each, and whether the user stopped them."""

    answered: list[AnsweredCall]
    is_stopped: bool = False


class Agent:
    """One conversation with a model that has tools."""

    def __init__(
        self, session: Session, upstream: Upstream, toolbox: Toolbox, *, system: str | None, watcher: Watcher
    ) -> None:
        self.session = session
        self.upstream = upstream
        self._toolbox = toolbox
        self._system = system
        self._watcher = watcher

    def take_turn(self, said: str) -> None:
        """Have the model answer the user, running tools as often as it calls them; raise AnswerFailed if it does not answer.

        Whatever happens, everything said and done until then is in the session.
        """
        self.session.append({"role": "user", "content": said})
        for _ in range(MOST_CALLS):
            answer = self._answer()
            with defer_interrupt():
                self.session.record(answer)
            calls = decode_response(answer).message.calls
            if not calls:
                return
            ran = self._run(calls)
            self.session.append(result_messages(ran.answered, self.upstream.format))
            if ran.is_stopped:
                raise KeyboardInterrupt
        raise AnswerFailed(f"the model asked for tools {MOST_CALLS} times in a row: say how to go on")

    def use(self, upstream: Upstream) -> None:
        """Continue with another model; a history that no longer fits its context is compacted at once."""
        self.session.use(upstream.model, base_url=upstream.base_url)
        self.upstream = upstream
        status = self.session.status()
        if status.history and status.prompt > status.wall:
            self._prepare()

    def switch_session(self, session: Session, *, system: str | None) -> None:
        """Continue in another session."""
        self.session, self._system = session, system

    def _answer(self) -> bytes:
        """Return the model's answer to the current history; a prompt that the provider refuses as too long is compacted once."""
        request = self._prepare()
        try:
            return self._ask(request)
        except PromptTooLong as refused:
            self._watcher.note(f"{refused}: compacting, and asking once more")
            return self._ask(self._prepare_smaller(request, refused.limit))

    def _prepare(self) -> PreparedRequest:
        tools = [*self._toolbox.declared(), *self.session.recall_tools().anthropic]
        return self.session.prepare(system=self._system, tools=tools, max_tokens=self._max_tokens())

    def _prepare_smaller(self, refused: PreparedRequest, limit: int | None) -> PreparedRequest:
        """Return a request smaller than the one refused: by the limit learned from the refusal, or else by a forced compaction."""
        if limit is not None:
            self.session.refused_beyond(limit)
        request = self._prepare()
        if request.tokens < refused.tokens:
            return request
        self.session.compress()
        return self._prepare()

    def _ask(self, request: PreparedRequest) -> bytes:
        upstream = self.upstream
        fields = request.as_anthropic() if upstream.format == "anthropic" else request.as_openai()
        try:
            answer = upstream.ask(fields, max_tokens=self._max_tokens(), show=self._watcher.said)
        except AnswerFailed as failed:
            if failed.text.strip():
                self.session.record(self._partial_answer(failed))
            raise
        if not decode_response(answer).message.parts:
            raise AnswerFailed(f"{upstream.model} answered with nothing: ask again, or in other words")
        return answer

    def _partial_answer(self, failed: AnswerFailed) -> bytes:
        """Return what came of an answer that broke off; without reported usage, the expected usage is recorded."""
        reported = failed.usage if isinstance(failed.usage, Usage) else self.session.expected_usage()
        output = max(reported.output, len(failed.text) // _CHARACTERS_PER_TOKEN)
        text, usage = f"{failed.text.rstrip()} […]", replace(reported, output=output)
        return text_answer(text, usage, self.upstream.format, model=self.upstream.model)

    def _run(self, calls: Iterable[ToolCall]) -> _ToolRun:
        """Run tools one after the other; once the user stops one, the rest are not started."""
        answered: list[AnsweredCall] = []
        is_stopped = False
        for call in calls:
            outcome = _STOPPED_OUTCOME
            if not is_stopped:
                self._watcher.calling(call)
                try:
                    outcome = self._outcome(call)
                except KeyboardInterrupt:
                    is_stopped = True
                self._watcher.called(call, outcome)
            answered.append(AnsweredCall(call=call, outcome=outcome))
        return _ToolRun(answered=answered, is_stopped=is_stopped)

    def _outcome(self, call: ToolCall) -> Outcome:
        recall = self.session.recall_tools()
        if recall.owns(call.name):
            return Outcome(text=recall.handle(call.name, call.arguments))
        return self._toolbox.run(call)

    def _max_tokens(self) -> int:
        return min(self.upstream.max_output or _MOST_OUTPUT, _MOST_OUTPUT, self.session.status().context // 4)


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
