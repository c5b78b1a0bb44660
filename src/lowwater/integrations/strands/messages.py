"""Converts Strands' messages to those of the Messages API, and the view to Strands' messages."""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lowwater.core.entries import Edit
from lowwater.core.ledger import Ledger
from lowwater.core.messages import AnyPart, Text, ToolCall, ToolResult
from lowwater.core.reconcile import branch_of
from lowwater.core.view import Edited, Summary
from lowwater.session.request import PreparedRequest

Json = dict[str, Any]


def message_of(message: Mapping[str, Any]) -> Json:
    """Return a message with one block for each of its own; fields other than role and content are dropped."""
    return {"role": message["role"], "content": [_block(block) for block in message["content"]]}


def answer_of(message: Mapping[str, Any], usage: Mapping[str, int], *, stop: str, inclusive: bool) -> Json:
    """Return a model's answer with its usage; `inclusive`: its input tokens include cache reads and writes."""
    if not all(isinstance(usage[name], int) for name in ("inputTokens", "outputTokens")):
        # Inconsistent figures: the session ignores such usage and logs that.
        told = {"input_tokens": usage["inputTokens"], "output_tokens": usage["outputTokens"]}
        return {**message_of(message), "usage": told, "stop_reason": stop}
    read, written = usage.get("cacheReadInputTokens") or 0, usage.get("cacheWriteInputTokens") or 0
    told = {
        "input_tokens": usage["inputTokens"] - (read + written if inclusive else 0),
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "output_tokens": usage["outputTokens"],
    }
    is_known = usage["inputTokens"] + read + written > 0
    return {**message_of(message), "usage": told if is_known else None, "stop_reason": stop}


def _block(block: Mapping[str, Any]) -> Json:
    match block:
        case {"text": str(text)}:
            return {"type": "text", "text": text}
        case {"toolUse": use}:
            return {"type": "tool_use", "id": use["toolUseId"], "name": use["name"], "input": use["input"]}
        case {"toolResult": result}:
            return {
                "type": "tool_result",
                "tool_use_id": result["toolUseId"],
                "content": [_within(each) for each in result["content"]],
                "is_error": result.get("status") == "error",
            }
        case {"reasoningContent": {"reasoningText": thought}}:
            return {
                "type": "thinking",
                "thinking": thought.get("text") or "",
                "signature": thought.get("signature") or "",
            }
        case {"reasoningContent": {"redactedContent": hidden}}:
            return {"type": "redacted_thinking", "data": b64encode(hidden).decode()}
    return _medium(block)


def _within(block: Mapping[str, Any]) -> Json:
    """Return a block inside a tool's result; data is shown to the model as text."""
    if "json" in block:
        return {"type": "text", "text": json.dumps(block["json"])}
    return {"type": "text", "text": block["text"]} if "text" in block else _medium(block)


def _medium(block: Mapping[str, Any]) -> Json:
    match block:
        case {"image": {"format": form, "source": source}}:
            return {"type": "image", "source": _source(source, f"image/{form}")}
        case {"document": {"format": form, "source": source, "name": name}}:
            return {"type": "document", "source": _source(source, f"application/{form}"), "title": name}
    return {"type": next(iter(block), "nothing"), "body": json.loads(json.dumps(block, default=_bytes))}


def _source(source: Mapping[str, Any], media_type: str) -> Json:
    if "bytes" in source:
        return {"type": "base64", "media_type": media_type, "data": b64encode(source["bytes"]).decode()}
    return {"type": "url", "url": str((source.get("location") or {}).get("uri") or "")}


def _bytes(value: object) -> str:
    return b64encode(value).decode() if isinstance(value, bytes) else str(value)


def view_of(ledger: Ledger, messages: Sequence[Json], request: PreparedRequest, *, marks: bool) -> list[Json]:
    """Return what to send of a whole conversation; adjacent messages of one role are merged."""
    known = dict(zip(branch_of(ledger), messages, strict=False))
    marked = _marked(request, len(ledger.view.items)) if marks else {}
    view: list[Json] = []
    for at, item in enumerate(ledger.view.items):
        if isinstance(item, Summary):
            shown: Json = {"role": item.message.role, "content": [{"text": item.message.text}]}
        else:
            shown = known[item.number]
            if isinstance(item, Edited):
                shown = {**shown, "content": _edited(shown["content"], item.edits)}
        point = [{"cachePoint": marked[at]}] if at in marked else []
        if view and view[-1]["role"] == shown["role"]:
            view[-1] = {**view[-1], "content": [*view[-1]["content"], *shown["content"], *point]}
        else:
            view.append({**shown, "content": [*shown["content"], *point]} if point else shown)
    return view


def system_of(system: Any, request: PreparedRequest) -> Any:  # noqa: ANN401 - Strands' SystemPrompt
    """Return the system prompt with the request's cache point after it; unchanged if it has one of its own."""
    blocks = [{"text": system}] if isinstance(system, str) else list(system or ())
    written = request.as_anthropic().get("system")
    marks = [
        block["cache_control"]
        for block in written or ()
        if isinstance(block, dict) and "cache_control" in block
    ]
    if not marks or not blocks or any("cachePoint" in block for block in blocks):
        return system
    return [*blocks, {"cachePoint": point_of(marks[-1])}]


def point_of(mark: Mapping[str, Any]) -> Json:
    """Return a cache mark as a cache point of Strands'."""
    return {"type": "default"} | ({"ttl": mark["ttl"]} if "ttl" in mark else {})


def _marked(request: PreparedRequest, count: int) -> dict[int, Json]:
    """Return the cache marks of a request by the index of their message."""
    messages = request.as_anthropic()["messages"]
    lasts = request.last_indexes
    if (
        request.marks is None
        or request.marks.breakpoints
        or (len(messages), len(request.messages)) != (len(lasts), count)
    ):
        return {}
    return {
        at: point_of(block["cache_control"])
        for at, message in zip(lasts, messages, strict=True)
        if isinstance(message["content"], list)
        for block in message["content"]
        if "cache_control" in block
    }


def _edited(content: Sequence[Json], edits: Sequence[Edit]) -> list[Json]:
    """Return blocks with edits applied; paths refer to the original blocks."""
    blocks: list[Json | None] = list(content)
    for edit in edits:
        at, *within = edit.path
        block = blocks[at]
        if not within:
            blocks[at] = None if edit.by is None else _written_block(edit.by)
        elif block is not None:
            result = block["toolResult"]
            inside = list(result["content"])
            inside[within[0]] = None if edit.by is None else _written_block(edit.by)
            blocks[at] = {"toolResult": {**result, "content": inside}}
    return [_without_gaps(block) for block in blocks if block is not None]


def _without_gaps(block: Json) -> Json:
    result = block.get("toolResult")
    if result is None or None not in result["content"]:
        return block
    return {"toolResult": {**result, "content": [each for each in result["content"] if each is not None]}}


def _written_block(part: AnyPart) -> Json:
    """Return the block that Lowwater put in place of another."""
    match part:
        case Text():
            return {"text": part.text}
        case ToolCall():
            use = {"toolUseId": part.id, "name": part.name, "input": json.loads(part.arguments)}
            return {"toolUse": use}
        case ToolResult():
            status = "error" if part.is_error else "success"
            inside = [_written_block(each) for each in part.parts]
            return {"toolResult": {"toolUseId": part.call_id, "status": status, "content": inside}}
    return {"text": msgspec.json.encode(part).decode()}
