"""The view to LangChain's messages: those that stand as they came are the very objects of the state."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from lowwater.core.messages import Message
from lowwater.integrations.langchain.reading import CALLS, OUTSIDE, blocks_of
from lowwater.integrations.shown import Mark, Sending, Shown

Content = list[str | dict[str, Any]]


def messages_of(sent: Sending[BaseMessage], *, marks: bool) -> list[AnyMessage]:
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


def _joined(before: BaseMessage, message: BaseMessage, *, keep: bool) -> BaseMessage:
    """Return two messages of the user as one; the second is the one to `keep`, with what it holds beside its content."""
    content: Content = [*blocks_of(before), *blocks_of(message)]
    blocks = [{"type": "text", "text": block} if isinstance(block, str) else block for block in content]
    return (message if keep else before).model_copy(update={"content": blocks})


def marked(message: BaseMessage, mark: Mark) -> BaseMessage:
    """Return the message with a cache mark on its last block that may carry one; the message itself stays as it is."""
    blocks = [
        {"type": "text", "text": block} if isinstance(block, str) else block for block in blocks_of(message)
    ]
    for at in range(len(blocks) - 1, -1, -1):
        block = blocks[at]
        if (
            block.get("type") in {"text", "image", "image_url", "file", "document"}
            and block.get("text") != ""
        ):
            blocks[at] = {**block, **mark}
            return message.model_copy(update={"content": blocks})
    return message


def _written(shown: Shown[BaseMessage]) -> list[BaseMessage]:
    if shown.source is None:
        return _new(shown.message)
    message = _changed(shown.source, shown.changes) if shown.changes else shown.source
    return [_called(message, shown.calls) if shown.calls and isinstance(message, AIMessage) else message]


def _changed(message: BaseMessage, changes: Mapping[int, str | None]) -> BaseMessage:
    """Return the message with other text in some places; everything else of it stays."""
    said = changes.get(OUTSIDE)
    content: Content = [] if said is None else [{"type": "text", "text": said}]
    for at, block in enumerate(blocks_of(message)):
        text = changes.get(at)
        if text is not None:
            content.append({"type": "text", "text": text})
        elif at not in changes and block != "":
            content.append(block)
    beside = dict(message.additional_kwargs)
    if OUTSIDE in changes:
        beside.pop("reasoning_content", None)
    return message.model_copy(update={"content": _plain(content, message), "additional_kwargs": beside})


def _called(message: AIMessage, calls: Mapping[str, str]) -> AIMessage:
    """Return the message with other arguments wherever it holds those of a call."""
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
    """Return a block of the content with the arguments of its call, in the form of its kind."""
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
    """Return a call as OpenAI's package keeps it beside the content, with its arguments."""
    match call:
        case {"id": str(id), "function": dict(function)} if id in calls:
            return {**call, "function": {**function, "arguments": calls[id]}}
    return call


def _plain(content: Content, message: BaseMessage) -> str | Content:
    """Return a single text as words, if that is what the message held or can hold."""
    match content:
        case [str(text)] | [{"type": "text", "text": str(text)}] if not isinstance(message, AIMessage):
            return text
        case []:
            return ""
        case _:
            return content


def _new(message: Message) -> list[BaseMessage]:
    """Return messages for what Lowwater wrote: a summary, a result that nobody recorded."""
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
