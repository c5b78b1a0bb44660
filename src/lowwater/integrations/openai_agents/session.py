"""The session: its history keeps every item, the model is sent the view."""

import asyncio
from copy import copy
from hashlib import blake2b
from typing import Any

import msgspec
from agents import Agent, FunctionTool, RunConfig, RunHooks, SQLiteSession
from agents.memory import Session as History
from agents.memory import SessionSettings
from agents.run_config import CallModelData, ModelInputData, RunOptions
from agents.tool_context import ToolContext

from lowwater.core.recall.recalled import openai_tools
from lowwater.integrations.openai_agents.hooks import Recording
from lowwater.integrations.openai_agents.reading import Item, answered, units_of
from lowwater.integrations.openai_agents.writing import items_of
from lowwater.integrations.sessions import Sessions
from lowwater.integrations.turn import Preamble, abegin, system_of
from lowwater.integrations.units import format_of
from lowwater.session.library import Lowwater
from lowwater.session.session import Session


class LowwaterSession:
    """A session of the SDK over a Lowwater session of the same name; run with `**session.run_options()`.

    The items themselves are kept whole by `history`, any session of the SDK; without one, by a `SQLiteSession` in memory.
    An agent that runs as a tool of another has a conversation, and a Lowwater session, of its own. Histories that a server
    keeps (`conversation_id`, `previous_response_id`) cannot be compacted from here.
    """

    def __init__(self, session_id: str, lowwater: Lowwater, *, history: History | None = None) -> None:
        self.session_id = session_id
        self._sessions = Sessions(lowwater, source="openai-agents")
        self.session = self._sessions.named(session_id)
        """The Lowwater session: status, checkpoints, rewind, recall."""
        self._history: History = SQLiteSession(session_id) if history is None else history
        self.session_settings: SessionSettings | None = getattr(self._history, "session_settings", None)
        self._first: Item = None
        self._under_way: Session | None = None

    def run_options(
        self, *, run_config: RunConfig | None = None, hooks: RunHooks[Any] | None = None
    ) -> RunOptions[Any]:
        """Return what `Runner.run`, `run_sync` and `run_streamed` take: this session, its filter and its hooks around yours."""
        config = copy(run_config) if run_config else RunConfig()
        config.call_model_input_filter = self.filter
        return {"session": self, "run_config": config, "hooks": Recording(self.record, hooks)}

    def recall_tools(self) -> list[FunctionTool]:
        """Return the tools by which the model looks up what the view no longer shows, for `Agent(tools=…)`."""
        return [
            FunctionTool(
                name=each["function"]["name"],
                description=each["function"]["description"],
                params_json_schema=each["function"]["parameters"],
                on_invoke_tool=self._recall,
                strict_json_schema=False,
            )
            for each in openai_tools()
        ]

    async def filter(self, data: CallModelData[Any]) -> ModelInputData:
        """Return what the model is sent; the `call_model_input_filter` of a run."""
        items = data.model_data.input
        asked = getattr(data.agent.model, "model", data.agent.model)
        self._under_way = session = self._sessions.asking(
            self._name(items, data.agent), asked if isinstance(asked, str) else ""
        )
        preamble = Preamble(
            system=data.model_data.instructions or "",
            tools=_tools(data.agent),
            max_tokens=data.agent.model_settings.max_tokens,
        )
        sent = await abegin(session, units_of(items, format_of(session)), preamble)
        return ModelInputData(input=items_of(sent), instructions=system_of(sent) or None)

    async def record(self, response: Any) -> None:  # noqa: ANN401 - the SDK's ModelResponse
        """Record an answer with its usage; the hooks of a run do it."""
        if self._under_way is not None:
            format = format_of(self._under_way)
            await self._under_way.arecord(answered(response, format).response(format))

    async def get_items(self, limit: int | None = None) -> list[Item]:
        """Return the whole history, or its newest items; a run begins with it."""
        items = list(await self._history.get_items(limit))
        if limit is None or (self.session_settings is not None and limit == self.session_settings.limit):
            self._first = items[0] if items else None
        return items

    async def add_items(self, items: list[Item]) -> None:
        """Keep new items."""
        await self._history.add_items(items)

    async def pop_item(self) -> Item:
        """Take the newest item back."""
        return await self._history.pop_item()

    async def clear_session(self) -> None:
        """Forget the history; the ledger of the Lowwater session keeps what it had."""
        self._first = None
        await self._history.clear_session()

    def _name(self, items: list[Item], agent: Agent[Any]) -> str:
        """Return the session that the items are of: another one if they do not begin as this run did."""
        first = items[0] if items else None
        if self._first is None:
            self._first = first
        if first == self._first:
            return self.session_id
        told = blake2b(msgspec.json.encode(first, enc_hook=str), digest_size=8).hexdigest()
        return f"{self.session_id}/{agent.name}/{told}"

    async def _recall(self, context: ToolContext[Any], arguments: str) -> str:
        return await asyncio.to_thread(self.session.recall_tools().handle, context.tool_name, arguments)


def _tools(agent: Agent[Any]) -> list[dict[str, Any]]:
    """Return the agent's own tools as a chat request has them; what the SDK adds by itself is learned from usage."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.params_json_schema,
            },
        }
        for tool in agent.tools
        if isinstance(tool, FunctionTool)
    ]
