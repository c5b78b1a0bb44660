"""A response as server-sent events."""

from collections.abc import Iterator
from itertools import count

from lowwater.testing.provider.dialect import slices, write
from lowwater.testing.provider.rule import Json, Violation


def stream(reply: Json) -> Iterator[bytes]:
    """Yield the events of a whole answer: its start, each item in pieces and whole, and all of it once more."""
    number = count()
    begun = {**reply, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    for name in ("created", "in_progress"):
        yield _event(f"response.{name}", next(number), response=begun)
    for at, item in enumerate(reply["output"]):
        for event in _item(at, item):
            yield _event(event.pop("type"), next(number), **event)
    yield _event(f"response.{reply['status']}", next(number), response=reply)


def refused(begun: Json, violation: Violation) -> Iterator[bytes]:
    """Yield the events of an answer that is refused after it has begun."""
    opened = {**begun, "status": "in_progress", "output": [], "error": None, "incomplete_details": None}
    for at, name in enumerate(("created", "in_progress")):
        yield _event(f"response.{name}", at, response=opened)
    said = {
        "type": violation.type,
        "code": violation.code,
        "message": violation.message,
        "param": violation.param,
    }
    yield _event("error", 2, error=said)
    error = {"code": violation.code, "message": violation.message}
    yield _event("response.failed", 3, response={**opened, "status": "failed", "error": error})


def _item(at: int, item: Json) -> Iterator[Json]:
    place = {"output_index": at, "item_id": item["id"]}
    opened: Json
    match item:
        case {"type": "message", "content": content}:
            opened = {**item, "content": [], "status": "in_progress"}
            pieces = [event for index, part in enumerate(content) for event in _content(place, index, part)]
        case {"type": "reasoning", "summary": summary}:
            opened = {**item, "summary": []}
            pieces = [event for index, part in enumerate(summary) for event in _summary(place, index, part)]
        case {"type": "function_call", "arguments": arguments}:
            opened = {**item, "arguments": "", "status": "in_progress"}
            ended = {"arguments": arguments, "name": item["name"]}
            pieces = list(_text("response.function_call_arguments", arguments, place, ended))
        case {"type": "custom_tool_call", "input": written}:
            opened = {**item, "input": "", "status": "in_progress"}
            pieces = list(_text("response.custom_tool_call_input", written, place, {"input": written}))
        case _:
            opened, pieces = item, []
    yield {"type": "response.output_item.added", "output_index": at, "item": opened}
    yield from pieces
    yield {"type": "response.output_item.done", "output_index": at, "item": item}


def _content(place: Json, index: int, part: Json) -> Iterator[Json]:
    place = {**place, "content_index": index}
    name = "text" if part["type"] == "output_text" else "refusal"
    yield {"type": "response.content_part.added", **place, "part": {**part, name: ""}}
    if name == "text":
        place = {**place, "logprobs": []}
    yield from _text(
        f"response.{'output_text' if name == 'text' else 'refusal'}", part[name], place, {name: part[name]}
    )
    place.pop("logprobs", None)
    yield {"type": "response.content_part.done", **place, "part": part}


def _summary(place: Json, index: int, part: Json) -> Iterator[Json]:
    place = {**place, "summary_index": index}
    yield {"type": "response.reasoning_summary_part.added", **place, "part": {**part, "text": ""}}
    yield from _text("response.reasoning_summary_text", part["text"], place, {"text": part["text"]})
    yield {"type": "response.reasoning_summary_part.done", **place, "part": part}


def _text(name: str, text: str, place: Json, ended: Json) -> Iterator[Json]:
    for piece in slices(text):
        yield {"type": f"{name}.delta", **place, "delta": piece}
    yield {"type": f"{name}.done", **place, **ended}


def _event(name: str, number: int, /, **fields: object) -> bytes:
    told = {"type": name, "sequence_number": number, **fields}
    return f"event: {name}\ndata: {write(told)}\n\n".encode()
