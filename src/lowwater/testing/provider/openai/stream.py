"""A chat completion as server-sent events."""

from collections.abc import Iterator

from lowwater.testing.provider.dialect import slices, write
from lowwater.testing.provider.rule import Json


def stream(reply: Json, *, include_usage: bool) -> Iterator[bytes]:
    """Yield the chunks of a whole answer, then its usage if asked for, then the end mark."""
    choice = reply["choices"][0]
    head = {key: reply[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    tail = {"usage": None} if include_usage else {}
    for delta in _deltas(choice["message"]):
        yield _event({**head, "choices": [_choice(delta, None)], **tail})
    yield _event({**head, "choices": [_choice({}, choice["finish_reason"])], **tail})
    if include_usage:
        yield _event({**head, "choices": [], "usage": reply["usage"]})
    yield b"data: [DONE]\n\n"


def _deltas(message: Json) -> Iterator[Json]:
    yield {"role": "assistant", "content": None if message["content"] is None else "", "refusal": None}
    for name in ("content", "refusal"):
        for piece in slices(message[name] or ""):
            yield {name: piece}
    for index, call in enumerate(message.get("tool_calls", [])):
        function = call["function"]
        yield {"tool_calls": [{**call, "index": index, "function": {**function, "arguments": ""}}]}
        for piece in slices(function["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _choice(delta: Json, finish_reason: str | None) -> Json:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}


def _event(value: Json) -> bytes:
    return f"data: {write(value)}\n\n".encode()
