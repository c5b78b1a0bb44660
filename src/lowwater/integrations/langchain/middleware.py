"""The middleware: the state keeps every message, the model is sent the view."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage, AnyMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.types import Command

from lowwater.core.recall.recalled import is_recall, openai_tools
from lowwater.integrations.langchain.reading import answered, units_of
from lowwater.integrations.langchain.writing import marked, messages_of
from lowwater.integrations.sessions import Sessions
from lowwater.integrations.shown import Sending
from lowwater.integrations.turn import Preamble, abegin, begin, learns, system_of
from lowwater.integrations.units import format_of
from lowwater.session.library import Lowwater
from lowwater.session.session import Session

Request = ModelRequest[Any]
Response = ModelResponse[Any]


class LowwaterMiddleware(AgentMiddleware[Any, Any, Any]):
    """Sends the model a view of the conversation that fits, and records what each call cost.

    The Lowwater session is named after the thread; without one, after the first message. With `recall` the model gets two
    tools to look up what the view no longer shows. Cache marks are placed by Lowwater, unless another middleware further
    in does it (`AnthropicPromptCachingMiddleware`): then pass `marks=False`.
    """

    def __init__(self, lowwater: Lowwater, *, recall: bool = False, marks: bool = True) -> None:
        super().__init__()
        self._sessions = Sessions(lowwater, source="langchain")
        self.tools: Sequence[BaseTool] = _recall_tools() if recall else ()
        self._marks = marks

    def session(self, thread: str) -> Session:
        """Return the Lowwater session of a thread: status, checkpoints, rewind, recall."""
        return self._sessions.named(thread)

    def wrap_model_call(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        """Send the view, and record the answer."""
        session = self._session_for(request)
        sent = begin(session, units_of(request.messages, format_of(session)), _preamble(request))
        try:
            response = handler(self._changed(request, sent))
        except Exception as error:
            if not learns(session, error):
                raise
            sent = begin(session, units_of(request.messages, format_of(session)), _preamble(request))
            response = handler(self._changed(request, sent))
        for answer in _answers(response):
            session.record(answered(answer, format_of(session)).response(format_of(session)))
        return response

    async def awrap_model_call(
        self, request: Request, handler: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        """Do the same without blocking the event loop."""
        session = self._session_for(request)
        sent = await abegin(session, units_of(request.messages, format_of(session)), _preamble(request))
        try:
            response = await handler(self._changed(request, sent))
        except Exception as error:
            if not learns(session, error):
                raise
            sent = await abegin(session, units_of(request.messages, format_of(session)), _preamble(request))
            response = await handler(self._changed(request, sent))
        for answer in _answers(response):
            await session.arecord(answered(answer, format_of(session)).response(format_of(session)))
        return response

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Answer the recall tools; every other call goes on."""
        return self._recalled(request) if is_recall(request.tool_call["name"]) else handler(request)

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """Do the same for an agent that runs asynchronously."""
        if is_recall(request.tool_call["name"]):
            return await asyncio.to_thread(self._recalled, request)
        return await handler(request)

    def _recalled(self, request: ToolCallRequest) -> ToolMessage:
        call = request.tool_call
        session = self.session(_name(request.runtime, request.state["messages"]))
        said = session.recall_tools().handle(call["name"], call["args"])
        return ToolMessage(content=said, name=call["name"], tool_call_id=call["id"] or "")

    def _session_for(self, request: Request) -> Session:
        model: Any = request.model
        asked = getattr(model, "model_name", None) or getattr(model, "model", None) or ""
        return self._sessions.asking(_name(request.runtime, request.messages), str(asked))

    def _changed(self, request: Request, sent: Sending[Any]) -> Request:
        system: Any = request.system_message
        if system is not None and system_of(sent) != str(system.text):
            system = SystemMessage(system_of(sent))
        if system is not None and self._marks and sent.system_mark:
            system = marked(system, sent.system_mark)
        model, thinking = request.model, sent.thinking
        if thinking is not None and thinking != _thinking(request):
            model = model.model_copy(update={"thinking": thinking})
        return request.override(
            messages=messages_of(sent, marks=self._marks),
            system_message=system,
            model=model,
            model_settings={**_routing(request, sent), **request.model_settings},
        )


def _name(runtime: Any, messages: Sequence[AnyMessage]) -> str:  # noqa: ANN401 - of a model's call or of a tool's
    told = getattr(runtime, "execution_info", None)
    if told is None or not told.thread_id:
        return f"langchain-{messages[0].id}"
    # An agent that runs as another's tool has a namespace below the thread's, and a conversation of its own.
    below, _, _ = told.checkpoint_ns.rpartition("|")
    return f"{told.thread_id}/{below}" if below else str(told.thread_id)


def _preamble(request: Request) -> Preamble:
    return Preamble(
        system=str(request.system_prompt or ""),
        tools=[tool if isinstance(tool, dict) else convert_to_openai_tool(tool) for tool in request.tools],
        max_tokens=getattr(request.model, "max_tokens", None),
        thinking=_thinking(request),
    )


def _routing(request: Request, sent: Sending[Any]) -> dict[str, str]:
    """Return the setting by which OpenAI finds a conversation's cache, for its own models asked by its own client."""
    of_openai = any(kind.__name__ == "BaseChatOpenAI" for kind in type(request.model).__mro__)
    key = sent.request.cache_key if of_openai else ""
    return {"prompt_cache_key": key} if key else {}


def _thinking(request: Request) -> object:
    """Return what a Claude is told about thinking; other models have no such field, or one of another kind."""
    told = getattr(request.model, "thinking", None)
    return told if isinstance(told, dict) else None


def _answers(response: Response) -> list[AIMessage]:
    return [message for message in response.result if isinstance(message, AIMessage)]


def _recall_tools() -> list[BaseTool]:
    """Return the recall tools as the model sees them; the middleware answers their calls."""

    def elsewhere(**_: object) -> str:
        raise AssertionError("the middleware answers this call")

    return [
        StructuredTool.from_function(
            elsewhere,
            name=each["function"]["name"],
            description=each["function"]["description"],
            args_schema=each["function"]["parameters"],
        )
        for each in openai_tools()
    ]
