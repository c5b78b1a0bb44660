"""The capability: pydantic-ai's history keeps every message, and the model is sent the view."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from pydantic_ai import FunctionToolset, RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import RetryModelRequest
from pydantic_ai.messages import (
    BinaryContent,
    CachePoint,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.settings import ModelSettings
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.usage import RequestUsage

from lowwater.core.api_calls import Usage
from lowwater.core.messages import (
    AnyPart,
    Document,
    Format,
    Image,
    Message,
    ResultPart,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from lowwater.integrations.framework import (
    FrameworkSessions,
    MappedMessage,
    ModelAnswer,
    OutgoingRequest,
    RequestPreamble,
    SourcePart,
    ViewMessage,
    answer_for,
    aprepare_call,
    function_tool,
    image_from_url,
    learn_limit,
    map_message,
    recall_functions,
    session_format,
    with_changes,
)
from lowwater.session.library import Lowwater
from lowwater.session.session import Session

_TEXT_PARTS = frozenset({"system-prompt", "user-prompt", "retry-prompt", "retry-feedback"})
_UNKNOWN_TOOL = "unknown"
"""The tool name for a result whose call is missing."""
Context = RunContext[Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class MappedSource:
    """A response, or one part of a request, as the source of a mapped message."""

    message: ModelMessage
    at: int = -1
    """Which part of the request; -1 for a response."""


def map_messages(messages: Sequence[ModelMessage], format: Format) -> list[MappedMessage[MappedSource]]:
    """Return a conversation as mapped messages, without the parts that no model sees (changes of tools and settings)."""
    return [mapped for message in messages for mapped in _map_request(message, format)]


def model_answer(response: ModelResponse, format: Format) -> ModelAnswer:
    """Return an answer with its usage, for the session to record."""
    return ModelAnswer(
        message=_answer(response, format).message,
        usage=_usage(response.usage) if response.usage.input_tokens else None,
        splits_writes=False,
        model=response.model_name or "",
        stop=response.finish_reason or "",
    )


def is_seen(part: ModelRequestPart) -> bool:
    """Return whether the model sees a part of a request."""
    return _is_result(part) or part.part_kind in _TEXT_PARTS


def items_of(part: Any) -> list[Any]:  # noqa: ANN401 - the parts of a request have no common base
    """Return the items of a request's part: texts, images, files."""
    if isinstance(part, ToolReturnPart):
        return list(part.content_items(mode="str", wrap_if_error=False))
    content = part.content
    if isinstance(content, str):
        return [content]
    return list(content) if isinstance(part, UserPromptPart) else [_as_text(content)]


def _map_request(message: ModelMessage, format: Format) -> Iterator[MappedMessage[MappedSource]]:
    if isinstance(message, ModelResponse):
        yield _answer(message, format)
        return
    for at, part in enumerate(message.parts):
        source = MappedSource(message=message, at=at)
        if _is_result(part):
            yield map_message(source, "tool", [SourcePart(part=_result(part))], format)
        elif is_seen(part):
            pieces = [
                SourcePart(part=_part(item), at=(within,))
                for within, item in enumerate(items_of(part))
                if not isinstance(item, CachePoint)
            ]
            yield map_message(
                source, "system" if isinstance(part, SystemPromptPart) else "user", pieces, format
            )


def _answer(response: ModelResponse, format: Format) -> MappedMessage[MappedSource]:
    pieces = [SourcePart(part=_response_part(part), at=(at,)) for at, part in enumerate(response.parts)]
    return map_message(MappedSource(message=response), "assistant", pieces, format)


def _is_result(part: Any) -> bool:  # noqa: ANN401 - likewise
    """Return whether a part answers a call; a retry prompt may do so too."""
    return isinstance(part, ToolReturnPart) or (
        part.part_kind == "retry-prompt" and part.tool_name is not None
    )


def _result(part: Any) -> ToolResult:  # noqa: ANN401 - likewise
    failed = getattr(part, "outcome", "retried") in {"failed", "retried"}
    return ToolResult(
        call_id=part.tool_call_id, parts=tuple(_part(item) for item in items_of(part)), is_error=failed
    )


def _response_part(part: Any) -> AnyPart:  # noqa: ANN401 - the parts of a response have no common base
    match part:
        case TextPart():
            return Text(text=part.content)
        case ThinkingPart():
            redacted = part.id == "redacted_thinking"
            return Thinking(text=part.content, signature=part.signature or "", redacted=redacted)
        case ToolCallPart():
            return ToolCall(id=part.tool_call_id, name=part.tool_name, arguments=part.args_as_json_str())
        case _:
            return Text(text=_as_text(part))


def _part(item: Any) -> ResultPart:  # noqa: ANN401 - whatever may stand in a prompt
    match item:
        case str():
            return Text(text=item)
        case TextContent():
            return Text(text=item.content)
        case ImageUrl():
            return image_from_url(item.url)
        case BinaryContent() if item.is_image:
            return Image(source="base64", data=item.base64, media_type=item.media_type)
        case BinaryContent():
            return Document(source="base64", data=item.base64, media_type=item.media_type)
        case _:
            return Text(text=_as_text(item))


def _as_text(value: object) -> str:
    """Return any other value as text."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=repr)


def _usage(usage: RequestUsage) -> Usage:
    """Return the usage; pydantic-ai's input includes cache reads and writes, which are separated here."""
    read, written = usage.cache_read_tokens, usage.cache_write_tokens
    return Usage(
        uncached=max(0, usage.input_tokens - read - written),
        cache_read=read,
        cache_write=written,
        output=usage.output_tokens,
    )


def unseen_parts(message: ModelRequest) -> list[ModelRequestPart]:
    """Return the parts of a request that no model sees but that have to be sent along."""
    return [part for part in message.parts if not is_seen(part)]


def messages_of(
    sent: OutgoingRequest[MappedSource], history: Sequence[ModelMessage], *, marks: bool
) -> list[ModelMessage]:
    """Return the messages to send; parts of one request that are still together stay in one.

    With `marks` a cache point stands behind each message that the request marks, and is not one of the model's.
    """
    view: list[ModelMessage] = []
    asked: list[ModelRequestPart] = _orphaned_parts(sent, history)
    owner: ModelRequest | None = None
    names = _names(history)
    for shown in sent.view:
        message = shown.source.message if shown.source is not None else None
        if isinstance(message, ModelResponse) or (message is None and shown.message.role == "assistant"):
            view.extend(_request(owner, asked))
            owner = None
            view.append(_response(shown))
            asked = _cache_points(shown) if marks else []
            continue
        if message is not owner and message is not None:
            if owner is not None:
                view.extend(_request(owner, asked))
                asked = []
            owner = message
        asked.extend(_parts(shown, names))
        if marks:
            asked.extend(_cache_points(shown))
    view.extend(_request(owner, asked))
    return view


def _cache_points(shown: ViewMessage[MappedSource]) -> list[ModelRequestPart]:
    """Return a cache point to follow a message, if the request marks it."""
    if not shown.mark:
        return []
    told = shown.mark.get("cache_control") or {}
    return [UserPromptPart([CachePoint(ttl="1h" if told.get("ttl") == "1h" else "5m")])]


def _request(owner: ModelRequest | None, parts: list[ModelRequestPart]) -> list[ModelMessage]:
    """Return a request with these parts; the original one if it has exactly these."""
    if owner is None:
        return [ModelRequest(parts=parts)] if parts else []
    seen = [part for part in owner.parts if is_seen(part)]
    if len(parts) == len(seen) and all(one is other for one, other in zip(parts, seen, strict=True)):
        return [owner]
    return [replace(owner, parts=[*parts, *unseen_parts(owner)])]


def _orphaned_parts(
    sent: OutgoingRequest[MappedSource], history: Sequence[ModelMessage]
) -> list[ModelRequestPart]:
    """Return the parts that no model sees of requests that are no longer in the view: changes of tools and settings."""
    kept = {id(shown.source.message) for shown in sent.view if shown.source is not None}
    gone = [message for message in history if isinstance(message, ModelRequest) and id(message) not in kept]
    return [part for message in gone for part in unseen_parts(message)]


def _parts(shown: ViewMessage[MappedSource], names: Mapping[str, str]) -> list[ModelRequestPart]:
    source = shown.source
    if source is None or not isinstance(source.message, ModelRequest):
        return _new(shown.message, names)
    part = source.message.parts[source.at]
    return [_changed(part, shown.changes) if shown.changes else part]


def _changed(part: Any, changes: Mapping[int, str | None]) -> ModelRequestPart:  # noqa: ANN401 - no common base
    """Return the part with some texts replaced or dropped."""
    content: list[Any] = list(with_changes(items_of(part), changes, str))
    alone = content[0] if len(content) == 1 and isinstance(content[0], str) else content
    if isinstance(part, UserPromptPart):
        return replace(part, content=alone)
    if isinstance(part, SystemPromptPart):
        return replace(part, content="\n".join(map(str, content)))
    return ToolReturnPart(
        tool_name=part.tool_name or _UNKNOWN_TOOL,
        content=alone,
        tool_call_id=part.tool_call_id,
        timestamp=part.timestamp,
        outcome=getattr(part, "outcome", "retried"),
    )


def _response(shown: ViewMessage[MappedSource]) -> ModelResponse:
    source = shown.source.message if shown.source is not None else None
    if not isinstance(source, ModelResponse):
        return ModelResponse(parts=[TextPart(shown.message.text)])
    if not shown.is_changed:
        return source
    called = (_called(part, shown.calls) for part in source.parts)
    parts: list[Any] = list(with_changes(called, shown.changes, TextPart))
    dropped = [part for at, part in enumerate(source.parts) if at in shown.changes]
    if any(isinstance(part, ThinkingPart) and part.id for part in dropped):
        parts = [_without_id(part) for part in parts]
    return replace(source, parts=parts)


def _called(part: Any, calls: Mapping[str, str]) -> Any:  # noqa: ANN401 - no common base
    """Return a call with replaced arguments, as text or objects as before; any other part unchanged."""
    if not isinstance(part, ToolCallPart) or part.tool_call_id not in calls:
        return part
    arguments = calls[part.tool_call_id]
    return replace(part, args=arguments if isinstance(part.args, str) else json.loads(arguments))


def _without_id(part: Any) -> Any:  # noqa: ANN401 - no common base
    """Return a part without its id, by which OpenAI would notice that the reasoning before it was removed."""
    return replace(part, id=None) if isinstance(part, TextPart | ToolCallPart) else part


def _new(message: Message, names: Mapping[str, str]) -> list[ModelRequestPart]:
    """Return parts for what Lowwater wrote: a summary, or the result of a call that has none."""
    results: list[ModelRequestPart] = [
        ToolReturnPart(
            tool_name=names.get(result.call_id, _UNKNOWN_TOOL),
            content=result.text,
            tool_call_id=result.call_id,
            outcome="failed" if result.is_error else "success",
        )
        for result in message.results
    ]
    if results and not message.text:
        return results
    kind = SystemPromptPart if message.role == "system" else UserPromptPart
    return [*results, kind(message.text)]


def _names(history: Sequence[ModelMessage]) -> dict[str, str]:
    return {
        part.tool_call_id: part.tool_name
        for message in history
        if isinstance(message, ModelResponse)
        for part in message.parts
        if isinstance(part, ToolCallPart)
    }


class LowwaterCapability(AbstractCapability[Any]):
    """Sends the model a view of the conversation that fits, and records what each call cost.

    The Lowwater session is named after the conversation: `conversation_id`, which `message_history` carries on. With
    `recall` the model gets two tools to look up what the view no longer shows. Cache marks are placed by Lowwater, unless the
    agent's settings say anything about caching.
    """

    def __init__(self, lowwater: Lowwater, *, recall: bool = False) -> None:
        self.id = "lowwater"
        self._sessions = FrameworkSessions(lowwater, source="pydantic-ai")
        self.recall = recall

    def session(self, conversation: str) -> Session:
        """Return the Lowwater session of a conversation: status, checkpoints, rewind, recall."""
        return self._sessions.session(conversation)

    async def prepare_model_request(
        self, ctx: Context, request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Send the view; the history of the run is not changed."""
        session = self._sessions.session_for_model(_name(ctx), request_context.model.model_name)
        history = request_context.messages
        sent = await aprepare_call(
            session, map_messages(history, session_format(session)), _preamble(request_context)
        )
        settings: dict[str, Any] = {**(request_context.model_settings or {})}
        marks = not any("cache" in name for name in settings)
        if marks and sent.system_mark:
            settings |= {"cache": False, "anthropic_cache_instructions": True}
        if sent.request.cache_key:
            settings.setdefault("openai_prompt_cache_key", sent.request.cache_key)
        if sent.thinking is not None:
            settings["anthropic_thinking"] = sent.thinking
        return replace(
            request_context,
            messages=messages_of(sent, history, marks=marks),
            model_settings=cast(ModelSettings, settings),
        )

    async def after_model_request(
        self,
        ctx: Context,
        *,
        request_context: ModelRequestContext,  # noqa: ARG002 - the framework names it
        response: ModelResponse,
    ) -> ModelResponse:
        """Record the answer."""
        session = self._session_of(ctx)
        await session.arecord(answer_for(session, model_answer, response))
        return response

    async def on_model_request_error(
        self, ctx: Context, *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        """Retry once if the error shows that the context is smaller than assumed."""
        if request_context.attempt == 1 and learn_limit(self._session_of(ctx), error):
            raise RetryModelRequest from error
        raise error

    def get_toolset(self) -> AbstractToolset[Any] | None:
        """Return the recall tools, if they are offered."""
        return FunctionToolset(tools=self._recall_tools()) if self.recall else None

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """Return None: a capability with a library cannot be serialised."""
        return None

    def _session_of(self, ctx: Context) -> Session:
        return self.session(_name(ctx))

    def _recall_tools(self) -> list[Tool[Any]]:
        def tool(name: str, said: str, schema: dict[str, Any]) -> Tool[Any]:
            def handle(ctx: Context, **arguments: object) -> str:
                return self._session_of(ctx).recall_tools().handle(name, arguments)

            return Tool.from_schema(handle, name, said, schema, takes_ctx=True)

        return [tool(each["name"], each["description"], each["parameters"]) for each in recall_functions()]


def _name(ctx: Context) -> str:
    return ctx.conversation_id or ctx.run_id or "pydantic-ai"


def _preamble(request: ModelRequestContext) -> RequestPreamble:
    asked = request.model_request_parameters
    parts = asked.instruction_parts or ()
    spoken = [part.content for part in parts]
    if not spoken:
        told = (
            message.instructions
            for message in reversed(request.messages)
            if isinstance(message, ModelRequest)
        )
        spoken = [next(told, None) or ""]
    settings: Any = request.model_settings or {}
    return RequestPreamble(
        system="\n\n".join(spoken),
        tools=[
            function_tool(tool.name, tool.description, tool.parameters_json_schema)
            for tool in (*asked.function_tools, *asked.output_tools)
        ],
        max_tokens=settings.get("max_tokens"),
        thinking=settings.get("anthropic_thinking"),
    )
