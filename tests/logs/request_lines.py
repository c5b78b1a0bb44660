"""Lines of request logs, and what is read from them."""

import json
from pathlib import Path
from typing import Any

from lowwater.core.api_calls import Usage
from lowwater.logs.importers import recordings
from lowwater.logs.recording import Recording
from lowwater.logs.request_logs import RequestLogs

FORMATS = (RequestLogs(),)
START = 1_767_225_600
Fields = dict[str, Any]

USAGE = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 60}}
BILLED = Usage(uncached=40, cache_read=60, output=5)


def user(text: str) -> Fields:
    return {"role": "user", "content": text}


def model(text: str) -> Fields:
    return {"role": "assistant", "content": text}


def completion(text: str) -> Fields:
    choice = {"index": 0, "message": model(text), "finish_reason": "stop"}
    return {"id": f"chatcmpl-{text}", "created": START, "model": "gpt-x", "choices": [choice], "usage": USAGE}


def message(text: str) -> Fields:
    usage = {
        "input_tokens": 40,
        "cache_read_input_tokens": 60,
        "cache_creation_input_tokens": 0,
        "output_tokens": 5,
    }
    blocks = [{"type": "text", "text": text}]
    return {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": blocks,
        "usage": usage,
    }


def body(*messages: Fields, **fields: object) -> Fields:
    return {"model": "asked", "messages": list(messages)} | fields


def pair(messages: list[Fields], text: str, at: int = START) -> Fields:
    return {"timestamp": at, "request": body(*messages), "response": completion(text)}


def written(folder: Path, *lines: Fields | bytes, name: str = "log.any") -> Path:
    path = folder / name
    encoded = (line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    path.write_bytes(b"\n".join(encoded))
    return path


def read(path: Path) -> list[Recording]:
    return list(recordings([path], formats=FORMATS))


def texts(recording: Recording) -> list[str]:
    return [one.message.text for one in recording.messages]


def usages(recording: Recording) -> list[Usage | None]:
    return [one.call.usage for one in recording.messages if one.call is not None]


FIRST = [user("a")]
SECOND = [*FIRST, model("b"), user("c")]
THIRD = [*SECOND, model("d"), user("e")]
TOOLS = [{"name": "read", "input_schema": {"type": "object"}}]
SENT = body(*FIRST, system="Be kind.", tools=TOOLS)
EVENTS = "".join(
    f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
    for event in (
        {"type": "message_start", "message": message("") | {"content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "b"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
    )
)
CHUNKS = [
    {"id": "c", "model": "gpt-x", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
    {"id": "c", "model": "gpt-x", "choices": [{"index": 0, "delta": {"content": "b"}}]},
    {"id": "c", "model": "gpt-x", "choices": [], "usage": USAGE},
]
STREAM = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in CHUNKS) + "data: [DONE]\n\n"
