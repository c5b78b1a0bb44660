"""A provider that answers at once: what is measured is what stands before it. Run as a program, it says its URL."""

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import uvicorn

from lowwater.gateway.relay import Receive, Scope, Send

_TEXT = "All is well, and the next step is to read the file again. "


def _events(pieces: int) -> list[bytes]:
    usage = {"input_tokens": 12, "cache_read_input_tokens": 200_000, "cache_creation_input_tokens": 900}
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-5-5",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage | {"output_tokens": 1},
    }
    told: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": _TEXT}}
            for _ in range(pieces)
        ),
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 12 * pieces},
        },
        {"type": "message_stop"},
    ]
    return [
        b"event: " + event["type"].encode() + b"\ndata: " + msgspec.json.encode(event) + b"\n\n"
        for event in told
    ]


ANSWER = _TEXT * 4
"""What every answer says."""


def app_with(pause: float) -> Callable[[Scope, Receive, Send], Awaitable[None]]:
    """Return an application that waits so many seconds before each event but the first."""
    events = _events(4)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        more = True
        while more:
            more = (await receive()).get("more_body", False)
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for number, event in enumerate(events):
            if pause and number:
                await asyncio.sleep(pause)
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    return app


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--pause", type=float, default=0.0)
    given = parser.parse_args()
    uvicorn.run(
        app_with(given.pause), host="127.0.0.1", port=given.port, log_level="error", lifespan="off", ws="none"
    )


if __name__ == "__main__":
    main()
