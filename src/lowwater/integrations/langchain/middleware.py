"""The middleware: LangChain's state keeps every message, and the model is sent the view."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.types import Command

from lowwater.core.api_calls import Usage
from lowwater.core.messages import (
    Document,
    Format,
    Image,
    Message,
    ResultPart,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from lowwater.core.tools import is_recall
from lowwater.errors import BadInput
from lowwater.integrations.framework import (
    FrameworkSessions,
    MappedMessage,
    Mark,
    ModelAnswer,
    OutgoingRequest,
    RequestPreamble,
    SourcePart,
    ViewMessage,
    answer_for,
    aprepare_call,
    image_from_url,
    learn_limit,
    map_message,
    prepare_call,
    recall_functions,
    session_format,
    system_of,
    with_changes,
)
from lowwater.session.library import Lowwater
from lowwater.session.session import Session

OUTSIDE = -1
"""The position of reasoning that is not in the content but in `additional_kwargs`."""

CALLS = frozenset({"tool_use", "tool_call", "tool_call_chunk", "function_call", "invalid_tool_call"})
"""Types of blocks that repeat one of the message's calls in the provider's own form."""
_ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}
Content = list[str | dict[str, Any]]
Request = ModelRequest[Any]
Response = ModelResponse[Any]


def map_messages(messages: Sequence[AnyMessage], format: Format) -> list[MappedMessage[BaseMessage]]:
    """Return a conversation as mapped messages."""
    return [_map_message(message, format) for message in messages]


def model_answer(message: AIMessage, format: Format) -> ModelAnswer:
    """Return an answer with its usage, for the session to record."""
    told = message.response_metadata
    usage = message.usage_metadata
    details: Mapping[str, Any] = {} if usage is None else dict(usage.get("input_token_details") or {})
    return ModelAnswer(
        message=_map_message(message, format).message,
        usage=None if usage is None else _usage(usage, details),
        reports_cache=any(name.endswith("cache_read") for name in details),
        splits_writes=any(name.startswith("ephemeral_") for name in details),
        model=str(told.get("model_name") or told.get("model") or ""),
        stop=str(told.get("finish_reason") or told.get("stop_reason") or ""),
    )


def _map_message(message: BaseMessage, format: Format) -> MappedMessage[BaseMessage]:
    match message:
        case AIMessage():
            return map_message(message, "assistant", _of_assistant(message), format)
        case ToolMessage():
            result = ToolResult(
                call_id=message.tool_call_id,
                parts=tuple(_part(block) for block in blocks_of(message)),
                is_error=message.status == "error",
            )
            return map_message(message, "tool", [SourcePart(part=result)], format)
        case HumanMessage():
            return map_message(message, "user", _pieces(message), format)
        case SystemMessage():
            return map_message(message, "system", _pieces(message), format)
        case ChatMessage(role=role) if role in _ROLES:
            return map_message(message, _ROLES[role], _pieces(message), format)
    raise BadInput(
        f"a {type(message).__name__} is no message that a model is sent: leave it out of the state"
    )


def blocks_of(message: BaseMessage) -> list[Any]:
    """Return a message's content as blocks; a text is one block."""
    content = message.content
    return [content] if isinstance(content, str) else list(content)


def _pieces(message: BaseMessage) -> Iterator[SourcePart]:
    for at, block in enumerate(blocks_of(message)):
        yield SourcePart(part=_part(block), at=(at,))


def _of_assistant(message: AIMessage) -> Iterator[SourcePart]:
    beside = message.additional_kwargs.get("reasoning_content")
    if isinstance(beside, str) and beside:
        yield SourcePart(part=Thinking(text=beside), at=(OUTSIDE,))
    for at, block in enumerate(blocks_of(message)):
        kind = block.get("type") if isinstance(block, dict) else ""
        if kind in CALLS:
            continue
        thought = _thought(block, str(kind)) if kind else None
        yield SourcePart(part=_part(block) if thought is None else thought, at=(at,))
    for call in message.tool_calls:
        arguments = json.dumps(call["args"])
        yield SourcePart(part=ToolCall(id=call["id"] or "", name=call["name"], arguments=arguments))
    for broken in message.invalid_tool_calls:
        said = ToolCall(id=broken["id"] or "", name=broken["name"] or "", arguments=broken["args"] or "")
        yield SourcePart(part=said)


def _thought(block: Mapping[str, Any], kind: str) -> Thinking | None:
    """Return the thinking in a block, in a provider's form or in LangChain's own; None if it is something else."""
    match kind:
        case "thinking":
            return Thinking(text=str(block.get("thinking", "")), signature=str(block.get("signature") or ""))
        case "redacted_thinking":
            return Thinking(text="", signature=str(block.get("data", "")), redacted=True)
        case "reasoning" | "reasoning_content":
            extras = block.get("extras") or {}
            said = block.get("reasoning") or block.get("summary") or block.get("reasoning_content") or ""
            text = said if isinstance(said, str) else json.dumps(said)
            return Thinking(text=text, signature=str(extras.get("signature") or ""))
    return None


def _part(block: Any) -> ResultPart:  # noqa: ANN401 - whatever a provider's package puts there
    """Return the part for a block that is neither thinking nor a call; an unknown type becomes its JSON as text."""
    match block:
        case str():
            return Text(text=block)
        case {"type": "text", "text": str(text)}:
            return Text(text=text)
        case {"type": "image_url", "image_url": {"url": str(url)} | str(url)}:
            return image_from_url(url)
        case {"type": "image", "base64": str(data)} | {"type": "image", "source": {"data": str(data)}}:
            return Image(source="base64", data=data, media_type=_media_type(block))
        case {"type": "image", "url": str(url)} | {"type": "image", "source": {"url": str(url)}}:
            return image_from_url(url)
        case {"type": "file", "base64": str(data)} | {"type": "document", "source": {"data": str(data)}}:
            return Document(source="base64", data=data, media_type=_media_type(block))
        case _:
            return Text(text=json.dumps(block, sort_keys=True, default=str))


def _media_type(block: Mapping[Any, Any]) -> str:
    source = block.get("source")
    told = source.get("media_type") if isinstance(source, dict) else block.get("mime_type")
    return str(told or "image/png")


def _usage(usage: Mapping[str, Any], details: Mapping[str, Any]) -> Usage:
    """Return LangChain's usage; its input includes cache reads and writes, which are separated here."""
    tokens = {name: value or 0 for name, value in details.items()}
    read = next((value for name, value in tokens.items() if name.endswith("cache_read")), 0)
    long = tokens.get("ephemeral_1h_input_tokens", 0)
    written = next((value for name, value in tokens.items() if name.endswith("cache_creation")), 0)
    written += tokens.get("ephemeral_5m_input_tokens", 0)
    return Usage(
        uncached=max(0, usage["input_tokens"] - read - written - long),
        cache_read=read,
        cache_write=written,
        cache_write_long=long,
        output=usage["output_tokens"],
    )


def messages_of(sent: OutgoingRequest[BaseMessage], *, marks: bool) -> list[AnyMessage]:
    """Return the messages to send, with the cache marks of the request if `marks`."""
    view: list[Any] = []
    for at, shown in enumerate(sent.view):
        written = _written(shown)
        if sent.is_folded(at) and view and isinstance(view[-1], HumanMessage):
            written[0] = _joined(view.pop(), written[0], keep=shown.source is not None)
        if marks and shown.mark:
            written[-1] = marked(written[-1], shown.mark)
        view.extend(written)
    return view


def _text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _joined(before: BaseMessage, message: BaseMessage, *, keep: bool) -> BaseMessage:
    """Return two user messages merged into one; with `keep`, the result is based on the second, with its other fields."""
    content: Content = [*blocks_of(before), *blocks_of(message)]
    blocks = [_text_block(block) if isinstance(block, str) else block for block in content]
    return (message if keep else before).model_copy(update={"content": blocks})


def marked(message: BaseMessage, mark: Mark) -> BaseMessage:
    """Return a copy of the message with a cache mark on its last block that may carry one."""
    blocks = [_text_block(block) if isinstance(block, str) else block for block in blocks_of(message)]
    for at in range(len(blocks) - 1, -1, -1):
        block = blocks[at]
        if (
            block.get("type") in {"text", "image", "image_url", "file", "document"}
            and block.get("text") != ""
        ):
            blocks[at] = {**block, **mark}
            return message.model_copy(update={"content": blocks})
    return message


def _written(shown: ViewMessage[BaseMessage]) -> list[BaseMessage]:
    if shown.source is None:
        return _new(shown.message)
    message = _changed(shown.source, shown.changes) if shown.changes else shown.source
    return [_called(message, shown.calls) if shown.calls and isinstance(message, AIMessage) else message]


def _changed(message: BaseMessage, changes: Mapping[int, str | None]) -> BaseMessage:
    """Return the message with some texts replaced or dropped, and everything else unchanged."""
    said = changes.get(OUTSIDE)
    blocks = with_changes(blocks_of(message), changes, _text_block)
    content: Content = [
        *([] if said is None else [_text_block(said)]),
        *(each for each in blocks if each != ""),
    ]
    beside = dict(message.additional_kwargs)
    if OUTSIDE in changes:
        beside.pop("reasoning_content", None)
    return message.model_copy(update={"content": _plain(content, message), "additional_kwargs": beside})


def _called(message: AIMessage, calls: Mapping[str, str]) -> AIMessage:
    """Return the message with the arguments of calls replaced wherever it holds them."""
    update: dict[str, Any] = {
        "tool_calls": [
            {**call, "args": json.loads(calls[call["id"]])} if call["id"] and call["id"] in calls else call
            for call in message.tool_calls
        ],
        "invalid_tool_calls": [
            {**call, "args": calls[call["id"]]} if call["id"] and call["id"] in calls else call
            for call in message.invalid_tool_calls
        ],
    }
    if not isinstance(message.content, str):
        update["content"] = [_called_block(block, calls) for block in message.content]
    raw = message.additional_kwargs.get("tool_calls")
    if isinstance(raw, list):
        told = [_called_raw(call, calls) for call in raw]
        update["additional_kwargs"] = {**message.additional_kwargs, "tool_calls": told}
    return message.model_copy(update=update)


def _called_block(block: Any, calls: Mapping[str, str]) -> Any:  # noqa: ANN401 - whatever a provider's package puts there
    """Return a content block with its call's arguments replaced, in the form of its type."""
    kind = block.get("type") if isinstance(block, dict) else None
    arguments = calls.get(block.get("call_id") or block.get("id") or "") if kind in CALLS else None
    if arguments is None:
        return block
    match kind:
        case "tool_use":
            streamed = {key: value for key, value in block.items() if key != "partial_json"}
            return {**streamed, "input": json.loads(arguments)}
        case "tool_call":
            return {**block, "args": json.loads(arguments)}
        case "function_call":
            return {**block, "arguments": arguments}
    return {**block, "args": arguments}


def _called_raw(call: Any, calls: Mapping[str, str]) -> Any:  # noqa: ANN401 - the provider's own
    """Return a call with its arguments replaced, in the form in which OpenAI's package keeps it outside the content."""
    match call:
        case {"id": str(id), "function": dict(function)} if id in calls:
            return {**call, "function": {**function, "arguments": calls[id]}}
    return call


def _plain(content: Content, message: BaseMessage) -> str | Content:
    """Return a single text block as a string, if the message had or may have a string."""
    match content:
        case [str(text)] | [{"type": "text", "text": str(text)}] if not isinstance(message, AIMessage):
            return text
        case []:
            return ""
        case _:
            return content


def _new(message: Message) -> list[BaseMessage]:
    """Return messages for what Lowwater wrote: a summary, or the result of a call that has none."""
    answers: Sequence[BaseMessage] = [
        ToolMessage(
            content=result.text,
            tool_call_id=result.call_id,
            status="error" if result.is_error else "success",
        )
        for result in message.results
    ]
    if answers:
        said = [HumanMessage(message.text)] if message.text else []
        return [*answers, *said]
    kinds: dict[str, type[BaseMessage]] = {"assistant": AIMessage, "system": SystemMessage}
    return [kinds.get(message.role, HumanMessage)(content=message.text)]


class LowwaterMiddleware(AgentMiddleware[Any, Any, Any]):
    """Sends the model a view of the conversation that fits, and records what each call cost.

    The Lowwater session is named after the thread; without one, after the first message. With `recall` the model gets two
    tools to look up what the view no longer shows. Cache marks are placed by Lowwater, unless another middleware further
    in does it (`AnthropicPromptCachingMiddleware`): then pass `marks=False`.
    """

    def __init__(self, lowwater: Lowwater, *, recall: bool = False, marks: bool = True) -> None:
        super().__init__()
        self._sessions = FrameworkSessions(lowwater, source="langchain")
        self.tools: Sequence[BaseTool] = _recall_tools() if recall else ()
        self._marks = marks

    def session(self, thread: str) -> Session:
        """Return the Lowwater session of a thread: status, checkpoints, rewind, recall."""
        return self._sessions.session(thread)

    def wrap_model_call(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        """Send the view and record the answer."""
        session = self._session_for(request)
        sent = prepare_call(
            session, map_messages(request.messages, session_format(session)), _preamble(request)
        )
        try:
            response = handler(self._changed(request, sent))
        except Exception as error:
            if not learn_limit(session, error):
                raise
            sent = prepare_call(
                session, map_messages(request.messages, session_format(session)), _preamble(request)
            )
            response = handler(self._changed(request, sent))
        for answer in _answers(response):
            session.record(answer_for(session, model_answer, answer))
        return response

    async def awrap_model_call(
        self, request: Request, handler: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        """Do the same without blocking the event loop."""
        session = self._session_for(request)
        sent = await aprepare_call(
            session, map_messages(request.messages, session_format(session)), _preamble(request)
        )
        try:
            response = await handler(self._changed(request, sent))
        except Exception as error:
            if not learn_limit(session, error):
                raise
            sent = await aprepare_call(
                session, map_messages(request.messages, session_format(session)), _preamble(request)
            )
            response = await handler(self._changed(request, sent))
        for answer in _answers(response):
            await session.arecord(answer_for(session, model_answer, answer))
        return response

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Answer calls of the recall tools; pass every other call on."""
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
        return self._sessions.session_for_model(_name(request.runtime, request.messages), str(asked))

    def _changed(self, request: Request, sent: OutgoingRequest[Any]) -> Request:
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
    # An agent that runs as another agent's tool has a namespace below the thread's, and its own conversation.
    below, _, _ = told.checkpoint_ns.rpartition("|")
    return f"{told.thread_id}/{below}" if below else str(told.thread_id)


def _preamble(request: Request) -> RequestPreamble:
    return RequestPreamble(
        system=str(request.system_prompt or ""),
        tools=[tool if isinstance(tool, dict) else convert_to_openai_tool(tool) for tool in request.tools],
        max_tokens=getattr(request.model, "max_tokens", None),
        thinking=_thinking(request),
    )


def _routing(request: Request, sent: OutgoingRequest[Any]) -> dict[str, str]:
    """Return the prompt cache key, for OpenAI's own models called through its own client."""
    of_openai = any(kind.__name__ == "BaseChatOpenAI" for kind in type(request.model).__mro__)
    key = sent.request.cache_key if of_openai else ""
    return {"prompt_cache_key": key} if key else {}


def _thinking(request: Request) -> object:
    """Return Claude's `thinking` field; other models have none, or another kind."""
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
            name=each["name"],
            description=each["description"],
            args_schema=each["parameters"],
        )
        for each in recall_functions()
    ]
