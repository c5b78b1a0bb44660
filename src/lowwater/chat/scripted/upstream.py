"""The scripted model as something to ask, in either format, with a bill as a real model's would be."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from lowwater.chat.ports import Show
from lowwater.chat.scripted.acts import Act, Speak, Task, Use
from lowwater.chat.scripted.bill import PrefixCache
from lowwater.chat.scripted.tasks import lost, task_for
from lowwater.chat.speaking import STOPPED, usage_in
from lowwater.core.api_calls import Usage
from lowwater.core.formats.codec import decode_messages
from lowwater.core.messages import Format, Message
from lowwater.core.models.model import Model
from lowwater.core.strict_json import write_json
from lowwater.errors import AnswerFailed, PromptTooLong
from lowwater.protocols import Tokenizer

_WORD = re.compile(r"\s*\S+|\s+$")


class ScriptedUpstream:
    """Stands in for `model`: answers by script, is billed by the model's rules; nothing is sent and nothing paid."""

    base_url = ""

    def __init__(
        self,
        name: str,
        model: Model,
        tokenizer: Tokenizer,
        *,
        sources: Path,
        scale: float = 1.0,
        pace: float = 0.0,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.model = name
        self.format: Format = "anthropic" if model.provider == "anthropic" else "openai_chat"
        self.max_output = model.max_output
        self._context = model.context_length
        self._cache = PrefixCache(model, tokenizer, scale=scale)
        self._sources = sources
        self._pace = pace
        self._now = now
        self._begun = f"{int(now() * 1_000):x}"
        self._calls = 0
        self._task: Task | None = None

    def ask(self, fields: Mapping[str, Any], *, max_tokens: int, show: Show) -> bytes:  # noqa: ARG002  # it is short
        """Return the answer to the newest message, its words shown one by one."""
        usage = self._cache.bill(fields, self._now())
        if usage.prompt > self._context:
            said = f"the request is longer than the model's window of {self._context:,} tokens"
            raise PromptTooLong(said, limit=self._context)
        act = self._act(decode_messages([write_json(each) for each in fields["messages"]], self.format))
        shown: list[str] = []
        try:
            for word in _WORD.findall(act.text):
                shown.append(word)
                show(word)
                if self._pace:
                    time.sleep(self._pace)
        except KeyboardInterrupt:
            said = "".join(shown)
            raise AnswerFailed(STOPPED, text=said, usage=self._with_output(usage, said)) from None
        return self._written(act, self._with_output(usage, act.text))

    def _act(self, messages: Sequence[Message]) -> Act:
        """Begin what the user just said, or go on with it if tools have answered."""
        newest = messages[-1]
        if not newest.results or newest.text.strip():
            self._task = task_for(newest.text, self._sources)
            return next(self._task)
        if self._task is None:
            self._task = lost()
            return next(self._task)
        return self._task.send(_results(messages))

    def _with_output(self, usage: Usage, text: str) -> Usage:
        return replace(usage, output=self._cache.count(text) + 1)

    def _written(self, act: Act, usage: Usage) -> bytes:
        calls = [(self._id(), call) for call in act.calls] if isinstance(act, Use) else []
        if self.format == "anthropic":
            uses = [
                {"type": "tool_use", "id": id, "name": call.tool, "input": call.arguments}
                for id, call in calls
            ]
            content: list[dict[str, Any]] = [{"type": "text", "text": act.text}, *uses]
            stop = "end_turn" if isinstance(act, Speak) else "tool_use"
            return write_json(
                {"role": "assistant", "content": content, "stop_reason": stop, "model": self.model}
                | {"usage": usage_in(usage, self.format)}
            )
        message: dict[str, Any] = {"role": "assistant", "content": act.text}
        if calls:
            message["tool_calls"] = [
                {
                    "id": id,
                    "type": "function",
                    "function": {"name": call.tool, "arguments": write_json(call.arguments).decode()},
                }
                for id, call in calls
            ]
        choice = {"index": 0, "finish_reason": "tool_calls" if calls else "stop", "message": message}
        return write_json({"choices": [choice], "model": self.model, "usage": usage_in(usage, self.format)})

    def _id(self) -> str:
        self._calls += 1
        return f"call_{self._begun}_{self._calls}"


def _results(messages: Sequence[Message]) -> list[str]:
    """Return the texts of the tool results since the last answer."""
    texts: list[str] = []
    for message in reversed(messages):
        if message.role == "assistant":
            break
        texts = [*(result.text for result in message.results), *texts]
    return texts
