"""Answers that were recorded as they were streamed, put together into the answers they would have been otherwise."""

from collections.abc import Iterable, Iterator
from typing import Any

from lowwater.errors import BadInput
from lowwater.wire.reading import read_json, write_json

Fields = dict[str, Any]


def answer_in_events(text: str) -> bytes:
    """Return the answer in server-sent events; empty if there is none."""
    data = (line.removeprefix("data:").strip() for line in text.splitlines() if line.startswith("data:"))
    return answer_in_chunks(event.encode(errors="replace") for event in data)


def answer_in_chunks(chunks: Iterable[bytes]) -> bytes:
    """Return the answer in the events of a stream, in either provider's format; empty if there is none."""
    events = list(_objects(chunks))
    anthropic = any(event.get("type") == "message_start" for event in events)
    answer = _message(events) if anthropic else _completion(events)
    try:
        return write_json(answer) if answer else b""
    except BadInput:
        return b""


def _objects(chunks: Iterable[bytes]) -> Iterator[Fields]:
    for chunk in chunks:
        try:
            yield read_json(chunk, Fields)
        except BadInput:
            continue  # `[DONE]`, or a piece that was cut


def _completion(events: Iterable[Fields]) -> Fields:
    """Return a chat completion of the first choice."""
    message: Fields = {"role": "assistant", "content": ""}
    calls: dict[int, Fields] = {}
    answer: Fields = {}
    for event in events:
        answer |= {name: event[name] for name in ("id", "model", "created", "usage") if event.get(name)}
        for choice in _listed(event.get("choices"))[:1]:
            delta = _dict(choice.get("delta"))
            for name in ("content", "reasoning_content", "reasoning", "refusal"):
                if isinstance(delta.get(name), str):
                    message[name] = message.get(name, "") + delta[name]
            for piece in _listed(delta.get("tool_calls")):
                _add_call(calls, piece)
            answer["choices"] = [{"message": message, "finish_reason": choice.get("finish_reason")}]
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    return answer if "choices" in answer else {}


def _add_call(calls: dict[int, Fields], piece: Fields) -> None:
    index = piece.get("index")
    begun = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
    call = calls.setdefault(index if isinstance(index, int) else len(calls), begun)
    call["id"] = call["id"] or piece.get("id") or ""
    for name, said in _dict(piece.get("function")).items():
        if name in call["function"] and isinstance(said, str):
            call["function"][name] += said


def _message(events: Iterable[Fields]) -> Fields:
    """Return an Anthropic message; figures of the usage that come later count."""
    answer: Fields = {}
    blocks: dict[Any, Fields] = {}
    inputs: dict[Any, str] = {}
    for event in events:
        match event.get("type"):
            case "message_start":
                answer = dict(_dict(event.get("message")))
            case "content_block_start":
                blocks[str(event.get("index"))] = dict(_dict(event.get("content_block")))
            case "content_block_delta":
                _add_delta(blocks, inputs, str(event.get("index")), _dict(event.get("delta")))
            case "message_delta":
                later = {name: told for name, told in _dict(event.get("usage")).items() if told is not None}
                answer["usage"] = _dict(answer.get("usage")) | later
                answer["stop_reason"] = _dict(event.get("delta")).get("stop_reason")
            case _:
                pass
    for index, written in inputs.items():
        blocks.get(index, {})["input"] = _parsed(written)
    return answer | {"role": "assistant", "content": list(blocks.values())}


def _add_delta(blocks: dict[Any, Fields], inputs: dict[Any, str], index: str, delta: Fields) -> None:
    block = blocks.setdefault(index, {"type": "text", "text": ""})
    if isinstance(delta.get("partial_json"), str):
        inputs[index] = inputs.get(index, "") + delta["partial_json"]
    for name in ("text", "thinking", "signature"):
        if isinstance(delta.get(name), str):
            before = block.get(name)
            block[name] = (before if isinstance(before, str) else "") + delta[name]


def _parsed(written: str) -> object:
    try:
        return read_json(written.encode(errors="replace"), Fields) if written else {}
    except BadInput:
        return {}


def _listed(told: object) -> list[Fields]:
    return [one for one in told if isinstance(one, dict)] if isinstance(told, list) else []


def _dict(told: object) -> Fields:
    return told if isinstance(told, dict) else {}
