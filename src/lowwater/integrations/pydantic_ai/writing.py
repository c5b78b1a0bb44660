"""The view to pydantic-ai's messages: those that stand as they came are the very objects of the history."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai.messages import (
    CachePoint,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from lowwater.core.messages import Message
from lowwater.integrations.pydantic_ai.reading import Source, is_seen, items_of, riders_of
from lowwater.integrations.shown import Sending, Shown

_NOBODY = "unknown"
"""The name of a tool whose call nobody recorded."""


def messages_of(sent: Sending[Source], history: Sequence[ModelMessage], *, marks: bool) -> list[ModelMessage]:
    """Return the messages to send; parts of one request that are still together stay in one.

    With `marks` a cache point stands behind each message that the request marks, and is not one of the model's.
    """
    view: list[ModelMessage] = []
    asked: list[ModelRequestPart] = _carried(sent, history)
    owner: ModelRequest | None = None
    names = _names(history)
    for shown in sent.view:
        message = shown.source.message if shown.source is not None else None
        if isinstance(message, ModelResponse) or (message is None and shown.message.role == "assistant"):
            view.extend(_request(owner, asked))
            owner = None
            view.append(_response(shown))
            asked = _points(shown) if marks else []
            continue
        if message is not owner and message is not None:
            if owner is not None:
                view.extend(_request(owner, asked))
                asked = []
            owner = message
        asked.extend(_parts(shown, names))
        if marks:
            asked.extend(_points(shown))
    view.extend(_request(owner, asked))
    return view


def _points(shown: Shown[Source]) -> list[ModelRequestPart]:
    """Return a cache point for what stands right before it, if the request marks that."""
    if not shown.mark:
        return []
    told = shown.mark.get("cache_control") or {}
    return [UserPromptPart([CachePoint(ttl="1h" if told.get("ttl") == "1h" else "5m")])]


def _request(owner: ModelRequest | None, parts: list[ModelRequestPart]) -> list[ModelMessage]:
    """Return a request with these parts: the one that they came in, if they are all of it as they were."""
    if owner is None:
        return [ModelRequest(parts=parts)] if parts else []
    seen = [part for part in owner.parts if is_seen(part)]
    if len(parts) == len(seen) and all(one is other for one, other in zip(parts, seen, strict=True)):
        return [owner]
    return [replace(owner, parts=[*parts, *riders_of(owner)])]


def _carried(sent: Sending[Source], history: Sequence[ModelMessage]) -> list[ModelRequestPart]:
    """Return what no model sees of requests that are in the view no more: tools and settings that changed there."""
    kept = {id(shown.source.message) for shown in sent.view if shown.source is not None}
    gone = [message for message in history if isinstance(message, ModelRequest) and id(message) not in kept]
    return [part for message in gone for part in riders_of(message)]


def _parts(shown: Shown[Source], names: Mapping[str, str]) -> list[ModelRequestPart]:
    source = shown.source
    if source is None or not isinstance(source.message, ModelRequest):
        return _new(shown.message, names)
    part = source.message.parts[source.at]
    return [_changed(part, shown.changes) if shown.changes else part]


def _changed(part: Any, changes: Mapping[int, str | None]) -> ModelRequestPart:  # noqa: ANN401 - no common base
    """Return the part with other text in some places."""
    content: list[Any] = []
    for at, item in enumerate(items_of(part)):
        text = changes.get(at)
        if text is not None:
            content.append(text)
        elif at not in changes:
            content.append(item)
    alone = content[0] if len(content) == 1 and isinstance(content[0], str) else content
    if isinstance(part, UserPromptPart):
        return replace(part, content=alone)
    if isinstance(part, SystemPromptPart):
        return replace(part, content="\n".join(map(str, content)))
    return ToolReturnPart(
        tool_name=part.tool_name or _NOBODY,
        content=alone,
        tool_call_id=part.tool_call_id,
        timestamp=part.timestamp,
        outcome=getattr(part, "outcome", "retried"),
    )


def _response(shown: Shown[Source]) -> ModelResponse:
    source = shown.source.message if shown.source is not None else None
    if not isinstance(source, ModelResponse):
        return ModelResponse(parts=[TextPart(shown.message.text)])
    if not shown.is_changed:
        return source
    parts: list[Any] = []
    for at, part in enumerate(source.parts):
        text = shown.changes.get(at)
        if text is not None:
            parts.append(TextPart(text))
        elif at not in shown.changes:
            parts.append(_called(part, shown.calls))
    dropped = [part for at, part in enumerate(source.parts) if at in shown.changes]
    if any(isinstance(part, ThinkingPart) and part.id for part in dropped):
        parts = [_without_id(part) for part in parts]
    return replace(source, parts=parts)


def _called(part: Any, calls: Mapping[str, str]) -> Any:  # noqa: ANN401 - no common base
    """Return a call with other arguments, in text or in objects as it had them; everything else as it is."""
    if not isinstance(part, ToolCallPart) or part.tool_call_id not in calls:
        return part
    arguments = calls[part.tool_call_id]
    return replace(part, args=arguments if isinstance(part.args, str) else json.loads(arguments))


def _without_id(part: Any) -> Any:  # noqa: ANN401 - no common base
    """By the ids of what is left OpenAI would miss the reasoning that went."""
    return replace(part, id=None) if isinstance(part, TextPart | ToolCallPart) else part


def _new(message: Message, names: Mapping[str, str]) -> list[ModelRequestPart]:
    """Return parts for what Lowwater wrote: a summary, a result that nobody recorded."""
    results: list[ModelRequestPart] = [
        ToolReturnPart(
            tool_name=names.get(result.call_id, _NOBODY),
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
