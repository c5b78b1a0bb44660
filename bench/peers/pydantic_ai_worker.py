"""Runs the compaction capabilities of pydantic-ai-harness; started with the interpreter of its environment.

Their hook before a model request is called as an agent's run calls it, on a history that it may rewrite. Requests are
written by pydantic-ai's own OpenAI model.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import RunContext
from pydantic_ai.usage import RequestUsage, RunUsage
from pydantic_ai_harness import (  # type: ignore[import-not-found]  # only there
    ClampOversizedMessages,
    ClearToolResults,
    DeduplicateFileReads,
    SummarizingCompaction,
    TieredCompaction,
)

from bench.peers.serving import Messages, Opening, Peer, Reported, serve
from bench.peers.stand_in import StandIn

LARGEST_PART = 50_000


def strategy(opening: Opening) -> Any:  # noqa: ANN401  # a capability
    """Return the capability of a variant; the tiers are those that its documentation shows."""
    if opening.variant == "clear" and opening.keep:
        return ClearToolResults(max_tokens=opening.trigger, keep_pairs=opening.keep)
    if opening.variant == "clear":
        return ClearToolResults(max_tokens=opening.trigger)
    if opening.variant == "summarising" and opening.keep:
        return SummarizingCompaction(max_tokens=opening.trigger, keep_messages=opening.keep)
    if opening.variant == "summarising":
        return SummarizingCompaction(max_tokens=opening.trigger)
    tiers = [
        ClampOversizedMessages(max_part_tokens=LARGEST_PART),
        DeduplicateFileReads(file_key=_file_read),
        ClearToolResults(max_tokens=1),
        SummarizingCompaction(max_messages=1),
    ]
    return TieredCompaction(tiers=tiers, target_tokens=opening.trigger)


def _file_read(call: ToolCallPart) -> str | None:
    if call.tool_name not in ("read_file", "Read", "read"):
        return None
    arguments = call.args_as_dict()
    path = arguments.get("path") or arguments.get("file_path")
    return path if isinstance(path, str) else None


class Capability:
    """A run's history under one capability."""

    def __init__(self, opening: Opening, summariser: StandIn) -> None:
        async def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
            shown = [str(getattr(part, "content", "")) for message in messages for part in message.parts]
            return ModelResponse(parts=[TextPart(content=summariser("\n".join(shown)))])

        self._strategy = strategy(opening)
        self._model = FunctionModel(answer)
        self._writer = OpenAIChatModel("gpt-4o", provider=OpenAIProvider(api_key="none"))
        self._context = RunContext[None](deps=None, model=self._model, usage=RunUsage())
        self._names: dict[str, str] = {}

    def request(self, new: Messages, reported: Reported | None) -> Messages:
        """Let the capability look at the history before the request leaves."""
        return asyncio.run(self._request(new, reported))

    async def _request(self, new: Messages, reported: Reported | None) -> Messages:
        context, parameters = self._context, ModelRequestParameters()
        context.messages.extend(self._converted(new, reported))
        context.run_step += 1
        request = ModelRequestContext(
            model=self._model,
            messages=list(context.messages),
            model_settings=None,
            model_request_parameters=parameters,
        )
        request = await self._strategy.before_model_request(context, request)
        return cast(Messages, await self._writer._map_messages(request.messages, parameters))

    def _converted(self, new: Messages, reported: Reported | None) -> Sequence[ModelMessage]:
        messages: list[ModelMessage] = []
        parts: list[ModelRequestPart] = []
        for message in new:
            if message["role"] == "assistant":
                messages.append(self._response(message, reported))
            else:
                parts.append(self._part(message))
        if parts:
            messages.append(ModelRequest(parts=parts))
        return messages

    def _response(self, message: dict[str, Any], reported: Reported | None) -> ModelResponse:
        parts: list[TextPart | ToolCallPart] = []
        if message.get("content"):
            parts.append(TextPart(content=message["content"]))
        for call in message.get("tool_calls") or ():
            function = call["function"]
            self._names[call["id"]] = function["name"]
            parts.append(
                ToolCallPart(tool_name=function["name"], args=function["arguments"], tool_call_id=call["id"])
            )
        usage = RequestUsage()
        if reported is not None:
            usage = RequestUsage(input_tokens=reported.prompt, output_tokens=reported.output)
        return ModelResponse(parts=parts, usage=usage, model_name="gpt-4o")

    def _part(self, message: dict[str, Any]) -> ModelRequestPart:
        match message["role"]:
            case "tool":
                called = message["tool_call_id"]
                name = self._names.get(called, "tool")
                return ToolReturnPart(tool_name=name, content=message["content"], tool_call_id=called)
            case "user":
                return UserPromptPart(content=message["content"])
            case _:
                return SystemPromptPart(content=message["content"])


def make(opening: Opening, summariser: StandIn) -> Peer:
    """Return a variant."""
    return Capability(opening, summariser)


def main() -> None:
    """Serve."""
    serve(make)
