"""A recorded session played turn by turn, with a scripted model that writes its summaries."""

import json
from functools import cache
from typing import Any

from lowwater.core.api_calls import Usage
from lowwater.core.events import Compaction
from lowwater.core.formats.usage import anthropic_usage_fields
from lowwater.core.summary.extractive import extract
from lowwater.core.summary.request import SummaryRequest, Written
from lowwater.core.tokens.estimate import CharacterTokenizer
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.request import PreparedRequest
from lowwater.settings import CompressionSettings, OutputSettings, Settings
from lowwater.testing.exchanges import exchanges
from lowwater.testing.fakes import Act, RecordingSink, ScriptedClock, ScriptedSummarizer
from lowwater.testing.invariants import Protected, Watch
from tests.generated import Pauses, generate_session

MODEL = "claude-haiku-4-5"
SPENT = Usage(cache_read=30_000, uncached=400, output=900)
"""What each summary consumes."""
WINDOW = 70_000
NEAR = 50
"""Turns after which the threshold of that window is less than ten turns away."""


@cache
def recorded(seed: int = 1) -> list[Any]:
    form = generate_session("coding", seed=seed, turns=80, pauses=Pauses(coffee=0.0, overnight=0.0))
    return [json.loads(raw) for raw in form.as_anthropic().messages]


def told(request: SummaryRequest) -> Written:
    """The same summary whenever it is asked for the same, and a bill."""
    return Written(text=extract(request, CharacterTokenizer()), by="model", model=MODEL, usage=SPENT)


class Model(ScriptedSummarizer):
    """A summarizer that says which model it asks."""

    model = MODEL

    def __init__(self, *acts: Act) -> None:
        super().__init__(*(acts or (told,)))


class Talk:
    """A session that is played turn by turn against a provider that bills what is expected."""

    def __init__(
        self,
        *acts: Act,
        policy: str = "threshold",
        context: int | None = WINDOW,
        messages: list[Any] | None = None,
        **compression: Any,
    ) -> None:
        self.model, self.clock, self.sink = Model(*acts), ScriptedClock(), RecordingSink()
        settings = Settings(compression=CompressionSettings(**compression), output=OutputSettings(quiet=True))
        self.session = Lowwater(
            model=MODEL,
            policy=policy,
            settings=settings,
            summarizer=self.model,
            clock=self.clock,
            sinks=[self.sink],
        ).session()
        if context is not None:
            self.session.learn_context_length(context)
        self._exchanges = exchanges(recorded() if messages is None else messages)
        self.watch = Watch(Protected(first=3, last=20))

    @property
    def asked(self) -> int:
        """How often a model was asked for a summary."""
        return len(self.model.requests)

    @property
    def compactions(self) -> list[Compaction]:
        """What was compacted, but for results that are shortened as they come in."""
        return [event for event in self.sink.compactions if event.mode != "shorten"]

    def turn(self) -> PreparedRequest:
        """Take the next turn of the recording."""
        self.hear()
        return self.answer(self.session.prepare())

    def hear(self) -> None:
        """Append what is new before the next answer."""
        self._exchange = next(self._exchanges)
        self.session.append(self._exchange.new)

    def answer(self, request: PreparedRequest) -> PreparedRequest:
        """Record the answer to what was prepared."""
        self.watch.see(internals(self.session).ledger, request.messages)
        assert self._exchange.answer is not None
        self.session.record(
            response(self._exchange.answer["content"], internals(self.session).expected_usage)
        )
        self.clock.advance(10)
        return request

    def turns(self, count: int) -> "Talk":
        for _ in range(count):
            self.turn()
        return self

    def until_compacted(self, most: int = 40) -> PreparedRequest:
        """Take turns until the middle is compacted once more, and return the request that was sent then."""
        before = len(self.compactions)
        for _ in range(most):
            request = self.turn()
            if len(self.compactions) > before:
                return request
        raise AssertionError(f"no compaction in {most} turns")

    def until_parked(self, most: int = 80) -> "Talk":
        for _ in range(most):
            self.turn()
            if self.session.prefetch_summary():
                return self
        raise AssertionError(f"nothing prefetched in {most} turns")


def response(content: Any, usage: Usage) -> dict[str, Any]:
    return {
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": content,
        "stop_reason": "end_turn",
        "usage": anthropic_usage_fields(usage) | {"output_tokens": 200},
    }


def running(turns: int) -> list[Any]:
    """A conversation that is nearly all tool output, so that eliding is enough for a while."""
    messages: list[Any] = []
    for number in range(turns):
        call = {"type": "tool_use", "id": f"t{number}", "name": "bash", "input": {"command": f"run {number}"}}
        said = "\n".join(f"line {line} of the output of run {number}" for line in range(200))
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": said}
        messages += [
            {"role": "user", "content": f"Make step {number}."},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
            {"role": "assistant", "content": [text_block(f"Step {number} is done.")]},
        ]
    return messages


def text_block(text: str) -> dict[str, Any]:
    """Return a text as a part of a message."""
    return {"type": "text", "text": text}


def blocks_of(message: Any) -> list[Any]:
    """Return the parts of a message."""
    content = message["content"]
    return [text_block(content)] if isinstance(content, str) else list(content)
