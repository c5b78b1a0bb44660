"""A coding agent at Anthropic's own API, whose conversation its provider may compact by itself."""

import json
from collections.abc import Callable
from typing import Any

import anthropic

from lowwater.session.library import Lowwater
from lowwater.session.request import PreparedRequest
from lowwater.settings import CompressionSettings, ModelSettings, Settings
from lowwater.summarizers.model import ModelSummarizer
from lowwater.testing.fakes import RecordingSink, ScriptedClock
from lowwater.testing.provider import Call, CallTools, Provider, Say, Seen, Think
from lowwater.testing.provider.answers import Answer

MODEL = "claude-opus-5-5"
TOOLS = [{"name": "bash", "input_schema": {"type": "object"}}]
SYSTEM = "You are a careful engineer."
ADAPTIVE = {"type": "adaptive"}


def output(about: str) -> str:
    """What a tool says: long, and unlike what any other says."""
    return "\n".join(f"src/{about.replace(' ', '_')}/part_{at}.py:{at * 7}: it holds" for at in range(90))


def texts_in(message: Any) -> list[str]:
    """What somebody says in a message, with or without a mark on it."""
    content = message["content"]
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content if block["type"] == "text"]


def summary_of(seen: Seen) -> str:
    """A summary that keeps what the conversation named."""
    said = [text for message in seen.body["messages"] for text in texts_in(message)]
    asked = [text for text in dict.fromkeys(said) if text.startswith("question")]
    lines = [
        f"- {text}: src/{text.replace(' ', '_')}/part_{at}.py:{at * 7}" for text in asked for at in (1, 2, 3)
    ]
    return "## Goal\n- Look into each of the questions.\n\n## Progress\n### Done\n" + "\n".join(lines)


def agent(compacted: Callable[[Seen], Answer] | None = None, *, rounds: int = 1) -> Callable[[Seen], Answer]:
    """A script: it looks things up, answers, and compacts as it is told."""

    def script(seen: Seen) -> Answer:
        if seen.body.get("compaction"):
            return compacted(seen) if compacted else Say(summary_of(seen))
        words = json.dumps(seen.body["messages"][-1])
        if "rite a summary of" in words:
            return Say(summary_of(seen))
        results = sum("tool_result" in json.dumps(message) for message in seen.body["messages"])
        if "tool_result" not in words or results % rounds:
            return Think("Let me look.", CallTools((Call("bash", {"command": "grep"}),), "Looking."))
        return Think("That is it.", Say("Done with it."))

    return script


def half(text: str) -> int:
    """Count a token for every two characters begun: about what the newest models make of code."""
    return -(-len(text) // 2)


OPENED: list["Talk"] = []
"""Those whose client has to be closed behind a test."""


class Talk:
    """One session, its provider, and the SDK between them."""

    def __init__(
        self,
        provider: Provider,
        *,
        policy: str = "never",
        native: bool = True,
        bound: str = "strip",
        model: str = MODEL,
        thinking: Any = None,
        last: int = 6,
        context: int = 150_000,
        store: Any = None,
        beside: tuple[str, ...] = (),
    ) -> None:
        self.provider = provider
        self.thinking = ADAPTIVE if thinking is None else thinking
        self.sink = RecordingSink()
        self.told: list[str] = []
        """What the session said of each decision."""
        self.clock = ScriptedClock(1_000.0)
        self.model = model
        self.settings = Settings(
            model=ModelSettings(native_compaction=native, bound_thinking=bound),  # type: ignore[arg-type]
            compression=CompressionSettings(protect_last_n=last),
        )
        self.summarizers = [
            ModelSummarizer(model=each, base_url=provider.anthropic_base_url, api_key="k", format="anthropic")
            for each in (model, *beside)
        ]
        self.lowwater = Lowwater(
            model=model,
            summarizer=self.summarizers,
            settings=self.settings,
            policy=policy,
            clock=self.clock,
            sinks=[self.sink],
            store=store,
        )
        self.session = self.lowwater.session("talk")
        self.session.learn_context_length(context)
        self.client = anthropic.Anthropic(
            base_url=provider.anthropic_base_url, api_key="k", max_retries=0, timeout=60
        )
        OPENED.append(self)

    def prepared(self, **options: Any) -> PreparedRequest:
        return self.session.prepare(system=SYSTEM, tools=TOOLS, thinking=self.thinking, **options)

    def call(self) -> Any:
        request = self.prepared()
        self.told.append(self.session.explain())
        answer = self.client.beta.messages.create(
            model=self.model, max_tokens=4_000, betas=list(request.betas), **request.as_anthropic()
        )
        self.session.record(answer)
        self.clock.advance(20)
        return answer

    def ask(self, text: str) -> Any:
        """One question, answered after the tools were."""
        self.session.append({"role": "user", "content": text})
        answer = self.call()
        while answer.stop_reason == "tool_use":
            call = next(block for block in answer.content if block.type == "tool_use")
            result = {"type": "tool_result", "tool_use_id": call.id, "content": output(text)}
            self.session.append({"role": "user", "content": [result]})
            answer = self.call()
        return answer

    def ask_all(self, first: int, last: int) -> None:
        for number in range(first, last):
            self.ask(f"question {number}")

    @property
    def compactions(self) -> list[Seen]:
        """The requests that asked for a block."""
        return [seen for seen in self.provider.requests if seen.body.get("compaction")]

    @property
    def calls(self) -> list[Seen]:
        """The requests that asked for anything else."""
        return [seen for seen in self.provider.requests if not seen.body.get("compaction")]


def first_block(seen: Seen) -> dict[str, Any]:
    """The block that a request begins with, without the mark that a cache may have put on it."""
    block: dict[str, Any] = dict(seen.body["messages"][0]["content"][0])
    block.pop("cache_control", None)
    return block
