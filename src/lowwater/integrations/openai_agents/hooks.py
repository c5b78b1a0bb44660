"""Hooks of a run that record each answer, around those of the user."""

from collections.abc import Awaitable, Callable
from typing import Any

from agents import Agent, ModelResponse, RunContextWrapper, RunHooks, Tool
from agents.items import TResponseInputItem

Context = RunContextWrapper[Any]


class Recording(RunHooks[Any]):
    """Hands every answer to `record`, and everything to `theirs`."""

    def __init__(
        self, record: Callable[[ModelResponse], Awaitable[None]], theirs: RunHooks[Any] | None
    ) -> None:
        self._record = record
        self._theirs: RunHooks[Any] = theirs or RunHooks()

    async def on_llm_start(
        self,
        context: Context,
        agent: Agent[Any],
        system_prompt: str | None,
        input_items: list[TResponseInputItem],
    ) -> None:
        """Pass it on."""
        await self._theirs.on_llm_start(context, agent, system_prompt, input_items)

    async def on_llm_end(self, context: Context, agent: Agent[Any], response: ModelResponse) -> None:
        """Record the answer, and pass it on."""
        await self._record(response)
        await self._theirs.on_llm_end(context, agent, response)

    async def on_agent_start(self, context: Any, agent: Agent[Any]) -> None:  # noqa: ANN401 - as in the SDK
        """Pass it on."""
        await self._theirs.on_agent_start(context, agent)

    async def on_agent_end(self, context: Any, agent: Agent[Any], output: Any) -> None:  # noqa: ANN401 - likewise
        """Pass it on."""
        await self._theirs.on_agent_end(context, agent, output)

    async def on_handoff(self, context: Context, from_agent: Agent[Any], to_agent: Agent[Any]) -> None:
        """Pass it on."""
        await self._theirs.on_handoff(context, from_agent, to_agent)

    async def on_tool_start(self, context: Context, agent: Agent[Any], tool: Tool) -> None:
        """Pass it on."""
        await self._theirs.on_tool_start(context, agent, tool)

    async def on_tool_end(self, context: Context, agent: Agent[Any], tool: Tool, result: object) -> None:
        """Pass it on."""
        await self._theirs.on_tool_end(context, agent, tool, result)
