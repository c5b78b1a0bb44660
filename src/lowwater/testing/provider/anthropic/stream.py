"""A Messages answer as server-sent events."""

from collections.abc import Iterator

from lowwater.testing.provider.dialect import slices, write
from lowwater.testing.provider.rule import Json


def stream(reply: Json) -> Iterator[bytes]:
    """Yield the events of a whole answer: its start, each block in pieces, its end."""
    usage = reply["usage"]
    opening = {**reply, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    opening.pop("stop_details", None)
    yield _event("message_start", message=opening)
    yield _event("ping")
    for index, block in enumerate(reply["content"]):
        yield from _block(index, block)
    end = {"stop_reason": reply["stop_reason"], "stop_sequence": None}
    if "stop_details" in reply:
        end["stop_details"] = reply["stop_details"]
    totals = {key: value for key, value in usage.items() if key not in ("cache_creation", "service_tier")}
    yield _event("message_delta", delta=end, usage=totals)
    yield _event("message_stop")


def _block(index: int, block: Json) -> Iterator[bytes]:
    opening: Json
    match block:
        case {"type": "text", "text": text}:
            opening = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in slices(text)]
        case {"type": "thinking", "thinking": text, "signature": signature}:
            opening = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in slices(text)]
            deltas.append({"type": "signature_delta", "signature": signature})
        case {"type": "tool_use"}:
            opening = {**block, "input": {}}
            written = write(block["input"]) if block["input"] else ""
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *slices(written))]
        case _:
            opening, deltas = block, []
    yield _event("content_block_start", index=index, content_block=opening)
    for delta in deltas:
        yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _event(name: str, **fields: object) -> bytes:
    return f"event: {name}\ndata: {write({'type': name, **fields})}\n\n".encode()
