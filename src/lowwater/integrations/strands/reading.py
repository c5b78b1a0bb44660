"""Strands' messages as the Messages API has them: one block, one block, so that an edit finds its place again."""

import json
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]


def message_of(message: Mapping[str, Any]) -> Json:
    """Return a message with as many blocks as it has; what is noted on it beside role and content stays behind."""
    return {"role": message["role"], "content": [_block(block) for block in message["content"]]}


def answer_of(message: Mapping[str, Any], usage: Mapping[str, int], *, stop: str, inclusive: bool) -> Json:
    """Return a model's answer with its usage; `inclusive` says that its input counts what was read from and written to a cache."""
    if not all(isinstance(usage[name], int) for name in ("inputTokens", "outputTokens")):
        # Nothing can be reckoned with these; the session does not believe them, and says so.
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
