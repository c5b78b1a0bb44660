"""The loop of the reference agent: prepare the request, ask the model, record the answer, run its tools, repeat."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lowwater.chat.protocol import (
    AnsweredCall,
    Upstream,
    Watcher,
    defer_interrupt,
    result_messages,
    text_answer,
)
from lowwater.chat.tools import Toolbox, ToolOutcome
from lowwater.core.api_calls import Usage
from lowwater.core.formats.codec import decode_response
from lowwater.core.messages import ToolCall
from lowwater.errors import AnswerFailed, PromptTooLong
from lowwater.session.internals import internals
from lowwater.session.request import PreparedRequest
from lowwater.session.session import Session

MOST_CALLS = 200
"""The most calls of the model in one turn of the user."""
_MOST_OUTPUT = 16_000
"""The most tokens of an answer; fewer if the context is small."""
_CHARACTERS_PER_TOKEN = 4
_STOPPED_OUTCOME = ToolOutcome(text="The user stopped this before it was done.", is_error=True)


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
        self._sent: Mapping[str, Any] = {}

    @property
    def has_sent(self) -> bool:
        """Whether a request was sent to the model in use."""
        return bool(self._sent)

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
        self._sent = {}
        self.upstream = upstream
        status = self.session.status()
        if status.history and status.prompt > status.wall:
            self._prepare()

    def switch_session(self, session: Session, *, system: str | None) -> None:
        """Continue in another session."""
        self.session, self._system = session, system
        self._sent = {}

    def _answer(self) -> bytes:
        """Return the model's answer to the current history; a prompt that the provider refuses as too long is compacted once."""
        request = self._prepare()
        try:
            return self._ask(request)
        except PromptTooLong as refused:
            self._watcher.on_notice(f"{refused}: compacting, and asking once more")
            return self._ask(self._prepare_smaller(request, refused.limit))

    def _prepare(self) -> PreparedRequest:
        tools = [*self._toolbox.declared(), *self.session.recall_tools().anthropic]
        return self.session.prepare(system=self._system, tools=tools, max_tokens=self._max_tokens())

    def _prepare_smaller(self, refused: PreparedRequest, limit: int | None) -> PreparedRequest:
        """Return a request smaller than the one refused: by the limit learned from the refusal, or else by a forced compaction."""
        if limit is not None:
            internals(self.session).learn_prompt_limit(limit)
        request = self._prepare()
        if request.tokens < refused.tokens:
            return request
        self.session.compress()
        return self._prepare()

    def _ask(self, request: PreparedRequest) -> bytes:
        upstream = self.upstream
        self._sent = fields = (
            request.as_anthropic() if upstream.format == "anthropic" else request.as_openai()
        )
        try:
            answer = upstream.ask(fields, max_tokens=self._max_tokens(), show=self._watcher.on_text)
        except AnswerFailed as failed:
            if failed.text.strip():
                self.session.record(self._partial_answer(failed))
            raise
        if not decode_response(answer).message.parts:
            raise AnswerFailed(f"{upstream.model} answered with nothing: ask again, or in other words")
        return answer

    def keep_warm(self) -> bytes:
        """Send the last request once more, with the shortest output, to the model that answered it."""
        return self.upstream.keep_warm(self._sent)

    def _partial_answer(self, failed: AnswerFailed) -> bytes:
        """Return what came of an answer that broke off; without reported usage, the expected usage is recorded."""
        reported = failed.usage if isinstance(failed.usage, Usage) else internals(self.session).expected_usage
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
                self._watcher.on_tool_call(call)
                try:
                    outcome = self._outcome(call)
                except KeyboardInterrupt:
                    is_stopped = True
                self._watcher.on_tool_result(call, outcome)
            answered.append(AnsweredCall(call=call, outcome=outcome))
        return _ToolRun(answered=answered, is_stopped=is_stopped)

    def _outcome(self, call: ToolCall) -> ToolOutcome:
        recall = self.session.recall_tools()
        if recall.owns(call.name):
            return ToolOutcome(text=recall.handle(call.name, call.arguments))
        return self._toolbox.run(call)

    def _max_tokens(self) -> int:
        return min(self.upstream.max_output or _MOST_OUTPUT, _MOST_OUTPUT, self.session.status().context // 4)
