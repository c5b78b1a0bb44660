"""Which conversation a request belongs to: what its client says, whose it is, and how it begins."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

_HEADERS = ("x-litellm-session-id", "x-claude-code-session-id", "x-session-id", "session_id")
_FIELDS = ("litellm_session_id", "prompt_cache_key")


def name_of(data: Mapping[str, Any], *, owner: str) -> str:
    """Return the name of the session for a request.

    The owner is part of it, so that nobody reads another's conversation by its id; and so are the first message of the user
    and whether there are tools, so that what a client asks beside a conversation, such as a title, is another one. Without
    an id of the client's, conversations of one owner that begin alike share a session.
    """
    beginning = next((each for each in data["messages"] if _role(each) == "user"), None)
    said = [_content(beginning), bool(data.get("tools"))]
    digest = blake2b(msgspec.json.encode(said, enc_hook=str), digest_size=8).hexdigest()
    return "/".join(("litellm", owner or "anyone", told_id(data) or "unnamed", digest))


def told_id(data: Mapping[str, Any]) -> str:
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
