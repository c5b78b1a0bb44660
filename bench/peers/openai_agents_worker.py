"""Runs the Agents SDK's own compaction session; started with the interpreter of its environment.

`runner` is its Runner, whose model waits for the recorded answer and whose tools return the recorded results.
`each-request` reads the session before every request and lets it compact after everything added, as an application does
that calls the model itself.
"""

import asyncio
import os
from typing import Any, cast

os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"

from agents import Agent, FunctionTool, Model, ModelResponse, Runner, SQLiteSession, Usage
from agents.items import TResponseInputItem
from agents.memory.openai_responses_compaction_session import OpenAIResponsesCompactionSession
from agents.tool_context import ToolContext
from openai import AsyncOpenAI

from bench.peers.compact_endpoint import CompactEndpoint, Items
from bench.peers.responses_items import items_of, messages_of, outputs_of
from bench.peers.serving import Messages, Opening, Peer, Reported, serve
from bench.peers.stand_in import StandIn

ENDLESS = 1 << 30


def session_at(endpoint: CompactEndpoint) -> OpenAIResponsesCompactionSession:
    """Return a compaction session with its defaults, in memory, whose client speaks to the endpoint."""
    client = AsyncOpenAI(base_url=endpoint.base_url, api_key="none")
    return OpenAIResponsesCompactionSession("bench", SQLiteSession("bench"), client=client)


class EachRequest:
    """The session alone."""

    def __init__(self, summariser: StandIn) -> None:
        self._loop = asyncio.new_event_loop()
        self._session = session_at(CompactEndpoint(summariser))
        self._system: Messages = []

    def request(self, new: Messages, _reported: Reported | None) -> Messages:
        """Add what is new, let it compact, and send what it holds."""
        self._system += [message for message in new if message["role"] == "system"]
        return self._loop.run_until_complete(self._request(new))

    async def _request(self, new: Messages) -> Messages:
        await self._session.add_items(cast(list[TResponseInputItem], items_of(new)))
        await self._session.run_compaction()
        return [*self._system, *messages_of(cast(Items, await self._session.get_items()))]


class WaitingModel(Model):
    """A model that says what it was sent and waits to be told the answer."""

    def __init__(self) -> None:
        self.sent: asyncio.Queue[Items] = asyncio.Queue()
        self.answers: asyncio.Queue[ModelResponse] = asyncio.Queue()

    async def get_response(self, *_: Any, **named: Any) -> ModelResponse:  # noqa: ANN401
        """Return the next answer."""
        await self.sent.put(list(named["input"]))
        return await self.answers.get()

    def stream_response(self, *_: Any, **__: Any) -> Any:  # noqa: ANN401
        """Refuse: runs here do not stream."""
        raise NotImplementedError


class Running:
    """The Runner over one session; a user's word in the middle of a run ends it and begins the next."""

    def __init__(self, opening: Opening, summariser: StandIn) -> None:
        self._loop = asyncio.new_event_loop()
        self._endpoint = CompactEndpoint(summariser)
        self._session = session_at(self._endpoint)
        self._model = WaitingModel()
        self._results: dict[str, str] = {}
        tools = [self._tool(name) for name in opening.tools]
        self._agent: Agent[None] = Agent(name="bench", model=self._model, tools=list(tools))
        self._run: asyncio.Task[Any] | None = None
        self._system: Messages = []
        self._sent: Items = []
        self._answers = 0

    def request(self, new: Messages, _reported: Reported | None) -> Messages:
        """Give the answer and the results, begin a run where the user speaks, and return what the model is sent."""
        return self._loop.run_until_complete(self._request(new))

    async def _request(self, new: Messages) -> Messages:
        self._system += [message for message in new if message["role"] == "system"]
        self._results |= {each["tool_call_id"]: each["content"] for each in new if each["role"] == "tool"}
        said = [message for message in new if message["role"] == "user"]
        if new[0]["role"] == "assistant":
            await self._model.answers.put(self._response(new[0]))
            if said and new[0].get("tool_calls"):
                await self._next_sent()
                await self._end()
            elif said and self._run is not None:
                await self._run
        if said:
            items = cast(list[TResponseInputItem], items_of(said))
            running = Runner.run(self._agent, items, session=self._session, max_turns=ENDLESS)
            self._run = asyncio.create_task(running)
        self._sent = await self._next_sent()
        return [*self._system, *messages_of(self._sent)]

    async def _next_sent(self) -> Items:
        """Return what the model is sent next, or raise what ended the run."""
        assert self._run is not None
        asked = asyncio.create_task(self._model.sent.get())
        await asyncio.wait({asked, self._run}, return_when=asyncio.FIRST_COMPLETED)
        if not asked.done():
            asked.cancel()
            await self._run
            raise RuntimeError("the run ended without another request")
        return asked.result()

    async def _end(self) -> None:
        """End a run that waits for an answer."""
        assert self._run is not None
        self._run.cancel()
        await asyncio.wait({self._run})

    def _response(self, message: dict[str, Any]) -> ModelResponse:
        self._answers += 1
        response = f"resp_{self._answers}"
        output = outputs_of(message, response)
        dumped = [item.model_dump(exclude_unset=True) for item in output]
        self._endpoint.note(response, [*self._sent, *dumped])
        return ModelResponse(output=output, usage=Usage(), response_id=response)

    def _tool(self, name: str) -> FunctionTool:
        async def invoke(context: ToolContext[Any], _arguments: str) -> str:
            return self._results.pop(context.tool_call_id)

        schema: dict[str, Any] = {"type": "object", "properties": {}}
        return FunctionTool(
            name=name,
            description="",
            params_json_schema=schema,
            on_invoke_tool=invoke,
            strict_json_schema=False,
        )


def make(opening: Opening, summariser: StandIn) -> Peer:
    """Return a variant."""
    return Running(opening, summariser) if opening.variant == "runner" else EachRequest(summariser)


def main() -> None:
    """Serve."""
    serve(make)
