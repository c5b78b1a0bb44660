"""What LiteLLM answers, whole or streamed, as the session records it."""

from collections.abc import Mapping
from typing import Any

import msgspec

from lowwater.core.formats.streams import stream_for
from lowwater.core.messages import Format

Json = dict[str, Any]

_SAID = ("role", "content", "tool_calls", "refusal", "reasoning_content")
_CALLED = ("id", "type", "function")


def answer_of(response: object) -> Json | None:
    """Return a whole answer; None if it is none that a conversation goes on with."""
    told = _plain(response)
    if "choices" in told:
        return _completion(told) if told["choices"] else None
    return told if "content" in told else None


class Listening:
    """Hears a stream on its way to the client."""

    def __init__(self, format: Format) -> None:
        self._stream = stream_for(format)

    def hear(self, chunk: object) -> None:
        """Take in what is sent next: an object of LiteLLM's, or server-sent events."""
        if isinstance(chunk, bytes):
            self._stream.feed(chunk)
        elif isinstance(chunk, str):
            self._stream.feed(chunk.encode())
        else:
            self._stream.feed(b"data: " + msgspec.json.encode(_plain(chunk), enc_hook=str) + b"\n\n")

    def answer(self) -> Json | None:
        """Return the whole answer, now that no more comes; None if there is none."""
        self._stream.end()
        raw = self._stream.answer()
        return answer_of(msgspec.json.decode(raw)) if raw else None


def _plain(value: Any) -> Json:  # noqa: ANN401 - a model of pydantic's, or a dict
    dump = getattr(value, "model_dump", None)
    plain: Json = dump() if callable(dump) else dict(value)
    return plain


def _completion(told: Mapping[str, Any]) -> Json:
    """Return a completion with what the provider is sent again, and none of what LiteLLM adds."""
    choice = told["choices"][0]
    said = choice["message"]
    message = {name: said[name] for name in _SAID if said.get(name) is not None or name == "content"}
    if message.get("tool_calls"):
        message["tool_calls"] = [{name: call.get(name) for name in _CALLED} for call in said["tool_calls"]]
    else:
        message.pop("tool_calls", None)
    return {
        "choices": [{"message": message, "finish_reason": choice.get("finish_reason")}],
        "model": told.get("model"),
        "usage": told.get("usage"),
    }
