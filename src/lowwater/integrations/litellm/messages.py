"""LiteLLM's answers, complete or streamed, and the session name of a request."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from lowwater.core.formats.streams import stream_for
from lowwater.core.messages import Format

Json = dict[str, Any]
_MESSAGE_FIELDS = ("role", "content", "tool_calls", "refusal", "reasoning_content")
_CALL_FIELDS = ("id", "type", "function")
_HEADERS = ("x-litellm-session-id", "x-claude-code-session-id", "x-session-id", "session_id")
_FIELDS = ("litellm_session_id", "prompt_cache_key")


def answer_of(response: object) -> Json | None:
    """Return a complete answer; None if it is not one of a conversation."""
    decoded = _plain(response)
    if "choices" in decoded:
        return _completion(decoded) if decoded["choices"] else None
    return decoded if "content" in decoded else None


class StreamListener:
    """Reads a stream along on its way to the client."""

    def __init__(self, format: Format) -> None:
        self._stream = stream_for(format)

    def hear(self, chunk: object) -> None:
        """Read what is sent next: an object of LiteLLM's, or server-sent events."""
        if isinstance(chunk, bytes):
            self._stream.feed(chunk)
        elif isinstance(chunk, str):
            self._stream.feed(chunk.encode())
        else:
            self._stream.feed(b"data: " + msgspec.json.encode(_plain(chunk), enc_hook=str) + b"\n\n")

    def answer(self) -> Json | None:
        """Return the complete answer after the end of the stream; None if there is none."""
        self._stream.end()
        raw = self._stream.answer()
        return answer_of(msgspec.json.decode(raw)) if raw else None


def _plain(value: Any) -> Json:  # noqa: ANN401 - a model of pydantic's, or a dict
    dump = getattr(value, "model_dump", None)
    plain: Json = dump() if callable(dump) else dict(value)
    return plain


def _completion(decoded: Mapping[str, Any]) -> Json:
    """Return a completion with what the provider is sent again, and none of what LiteLLM adds."""
    choice = decoded["choices"][0]
    said = choice["message"]
    message = {
        name: said[name] for name in _MESSAGE_FIELDS if said.get(name) is not None or name == "content"
    }
    if message.get("tool_calls"):
        message["tool_calls"] = [
            {name: call.get(name) for name in _CALL_FIELDS} for call in said["tool_calls"]
        ]
    else:
        message.pop("tool_calls", None)
    return {
        "choices": [{"message": message, "finish_reason": choice.get("finish_reason")}],
        "model": decoded.get("model"),
        "usage": decoded.get("usage"),
    }


def name_of(data: Mapping[str, Any], *, owner: str) -> str:
    """Return the name of the session for a request.

    The owner is part of it, so that nobody reads another's conversation by its id; and so are the first message of the user
    and whether there are tools, so that what a client asks beside a conversation, such as a title, is another one. Without
    an id of the client's, conversations of one owner that begin alike share a session.
    """
    beginning = next((each for each in data["messages"] if _role(each) == "user"), None)
    said = [_content(beginning), bool(data.get("tools"))]
    digest = blake2b(msgspec.json.encode(said, enc_hook=str), digest_size=8).hexdigest()
    return "/".join(("litellm", owner or "anyone", client_session_id(data) or "unnamed", digest))


def client_session_id(data: Mapping[str, Any]) -> str:
    """Return the id that a client gave its conversation; empty if it gave none."""
    request = data.get("proxy_server_request") or {}
    headers = {str(name).lower(): value for name, value in (request.get("headers") or {}).items()}
    metadata = data.get("metadata") or data.get("litellm_metadata") or {}
    found = [
        *(headers.get(name) for name in _HEADERS),
        *(data.get(name) for name in _FIELDS),
        metadata.get("session_id"),
    ]
    return next((str(each) for each in found if each), "")


def _role(message: object) -> object:
    return message.get("role") if isinstance(message, Mapping) else None


def _content(message: object) -> object:
    """Return what a message says, without cache marks."""
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, str) or not isinstance(content, Sequence):
        return content
    texts = [block.get("text") for block in content if isinstance(block, Mapping)]
    return texts[0] if len(texts) == 1 else texts
