"""Runs Strands' own summarizing conversation manager; started with the interpreter of its environment.

A real agent holds the history, and the event before a model call is fired as its loop fires it, with its own projection
of the tokens. Requests are written by its own OpenAI model.
"""

import asyncio
import json
from collections.abc import AsyncIterable
from typing import Any, cast

from strands import Agent  # type: ignore[import-not-found]  # only there
from strands.agent.conversation_manager import (  # type: ignore[import-not-found]  # only there
    SummarizingConversationManager,
)
from strands.event_loop.event_loop import _estimate_input_tokens  # type: ignore[import-not-found]  # only there
from strands.hooks import BeforeModelCallEvent  # type: ignore[import-not-found]  # only there
from strands.models import Model  # type: ignore[import-not-found]  # only there
from strands.models.openai import OpenAIModel  # type: ignore[import-not-found]  # only there

from bench.peers.serving import Messages, Opening, Peer, Reported, serve
from bench.peers.stand_in import StandIn

MOST_SUMMARISED = 0.8
"""The largest share of the messages that it replaces at once."""


class StandInModel(Model):  # type: ignore[misc]  # its types are only there
    """A model that hands its prompt to the stand-in."""

    def __init__(self, summariser: StandIn, window: int) -> None:
        self._summariser, self._window = summariser, window

    def get_config(self) -> dict[str, Any]:
        """Return what Strands reads of a model."""
        return {"context_window_limit": self._window}

    def update_config(self, **_changes: Any) -> None:  # noqa: ANN401
        """Change nothing."""

    def structured_output(self, *_given: Any, **_named: Any) -> Any:  # noqa: ANN401
        """Refuse: summaries are text."""
        raise NotImplementedError

    async def stream(
        self,
        messages: list[dict[str, Any]],
        system_prompt: str | None = None,
        **_named: Any,  # noqa: ANN401
    ) -> AsyncIterable[dict[str, Any]]:
        """Yield a summary in the events that Strands expects."""
        shown = OpenAIModel.format_request_messages(messages, system_prompt)
        text = self._summariser(json.dumps(shown))
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockDelta": {"delta": {"text": text}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


class Managed:
    """An agent under the summarizing manager, told to start at the trigger."""

    def __init__(self, opening: Opening, summariser: StandIn) -> None:
        share = opening.trigger / opening.window
        proactive = {"compression_threshold": share}
        manager = SummarizingConversationManager(proactive_compression=proactive)
        if opening.keep:
            manager = SummarizingConversationManager(
                summary_ratio=MOST_SUMMARISED,
                preserve_recent_messages=opening.keep,
                proactive_compression=proactive,
            )
        model = StandInModel(summariser, opening.window)
        self._agent = Agent(model=model, conversation_manager=manager, callback_handler=None)
        self._system: list[str] = []

    def request(self, new: Messages, reported: Reported | None) -> Messages:
        """Let the manager look at the history before the model does."""
        agent = self._agent
        for message in new:
            if message["role"] == "system" and not agent.messages:
                self._system.append(message["content"])
            else:
                self._add(message, reported)
        asyncio.run(self._before_call())
        return cast(Messages, OpenAIModel.format_request_messages(agent.messages, "\n".join(self._system)))

    async def _before_call(self) -> None:
        projected = await _estimate_input_tokens(self._agent)
        event = BeforeModelCallEvent(agent=self._agent, invocation_state={}, projected_input_tokens=projected)
        await self._agent.hooks.invoke_callbacks_async(event)

    def _add(self, message: dict[str, Any], reported: Reported | None) -> None:
        messages = self._agent.messages
        if message["role"] == "assistant":
            messages.append(_answer(message, reported))
            return
        content = _content(message)
        if messages and messages[-1]["role"] == "user" and messages[-1] is not self._summary():
            messages[-1]["content"].append(content)
        else:
            messages.append({"role": "user", "content": [content]})

    def _summary(self) -> Any:  # noqa: ANN401  # a message
        return self._agent.conversation_manager._summary_message


def _answer(message: dict[str, Any], reported: Reported | None) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"text": message["content"]}] if message.get("content") else []
    for call in message.get("tool_calls") or ():
        function = call["function"]
        use = {"toolUseId": call["id"], "name": function["name"], "input": json.loads(function["arguments"])}
        content.append({"toolUse": use})
    answer: dict[str, Any] = {"role": "assistant", "content": content}
    if reported is not None:
        usage = {
            "inputTokens": reported.prompt,
            "outputTokens": reported.output,
            "totalTokens": reported.prompt + reported.output,
        }
        answer["metadata"] = {"usage": usage}
    return answer


def _content(message: dict[str, Any]) -> dict[str, Any]:
    if message["role"] != "tool":
        return {"text": message["content"]}
    said = [{"text": message["content"]}]
    return {"toolResult": {"toolUseId": message["tool_call_id"], "status": "success", "content": said}}


def make(opening: Opening, summariser: StandIn) -> Peer:
    """Return the agent."""
    return Managed(opening, summariser)


def main() -> None:
    """Serve."""
    serve(make)
