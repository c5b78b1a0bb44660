"""Steps become messages with times, sizes and usage."""

from collections.abc import Callable, Sequence

import msgspec

from lowwater.core.api_calls import Usage
from lowwater.core.messages import AnyPart, Message, Text, Thinking, ToolCall, ToolResult, texts_of
from tests.generated.billing import PrefixCache
from tests.generated.draw import Draw
from tests.generated.memory import Memory
from tests.generated.pauses import Pauses, before_answer
from tests.generated.steps import Act, Ask, Step, Tell

_PER_MESSAGE = 4
"""Tokens that the frame of a message costs."""


class Recorder:
    """Writes down a session step by step."""

    def __init__(
        self,
        draw: Draw,
        memory: Memory,
        *,
        count: Callable[[str], int],
        start: float,
        pauses: Pauses,
        preamble: str,
    ) -> None:
        self._draw = draw
        self._memory = memory
        self._count = count
        self._pauses = pauses
        self._cache = PrefixCache()
        self._ids: set[str] = set()
        self._now = start
        self.tokens = count(preamble)
        self.messages: list[Message] = []
        self.times: list[float] = []
        self.usages: list[Usage] = []

    @property
    def turns(self) -> int:
        """How many calls the model has answered."""
        return len(self.usages)

    def record(self, step: Step) -> None:
        """Write down what the step says."""
        match step:
            case Ask(text=text):
                self._now += self._pauses.before_user(self._draw, text) if self.messages else 0
                self._stand(Message(role="user", parts=(Text(text=text),)))
            case Tell(text=text, thought=thought):
                self._answer(thought, text, ())
            case Act():
                self._act(step)
        self._memory.finish_step()

    def _act(self, step: Act) -> None:
        ids = [self._call_id() for _ in step.calls]
        calls = [
            ToolCall(id=call_id, name=call.tool, arguments=msgspec.json.encode(call.arguments).decode())
            for call_id, call in zip(ids, step.calls, strict=True)
        ]
        self._answer(step.thought, step.text, calls)
        self._now += max(call.seconds for call in step.calls)
        for call_id, call in zip(ids, step.calls, strict=True):
            parts = (Text(text=call.output),) if call.output else ()
            result = ToolResult(call_id=call_id, parts=parts, is_error=call.failed)
            self._stand(Message(role="tool", name=call.tool, parts=(result,)))

    def _answer(self, thought: str, text: str, calls: Sequence[ToolCall]) -> None:
        asked = self._now
        parts: list[AnyPart] = []
        if thought:
            signature = "Eq" + self._draw.alnum(60 + min(len(thought) // 8, 180)) + "=="
            parts.append(Thinking(text=thought, signature=signature))
        if text:
            parts.append(Text(text=text))
        self._now += before_answer(self._draw, thought + text)
        prompt = self.tokens
        self._stand(Message(role="assistant", parts=(*parts, *calls)))
        self.usages.append(self._cache.bill(prompt, self.tokens - prompt, asked))

    def _stand(self, message: Message) -> None:
        texts = list(texts_of(message))
        self._memory.settle(len(self.messages), "\n".join(texts), is_output=message.role == "tool")
        self.messages.append(message)
        self.times.append(round(self._now, 3))
        self.tokens += _PER_MESSAGE + sum(self._count(text) for text in texts)

    def _call_id(self) -> str:
        while True:
            made = "call_" + self._draw.alnum(24)
            if made not in self._ids:
                self._ids.add(made)
                return made
