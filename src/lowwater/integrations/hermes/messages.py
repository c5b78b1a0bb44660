"""Hermes' messages as chat messages: what is said in one, and how Hermes itself writes a list."""

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any

Json = dict[str, Any]

_SENT_INSTEAD = "api_content"
"""The field in which Hermes keeps the text that it sends in place of the one that it shows."""
_BOOKKEEPING = frozenset(
    {
        _SENT_INSTEAD,
        "reasoning",
        "finish_reason",
        "timestamp",
        "tool_name",
        "effect_disposition",
        "codex_reasoning_items",
        "codex_message_items",
    }
)
_MARK = "cache_control"


def sent_form(message: Mapping[str, Any]) -> Json:
    """Return a message of Hermes' own list as it is sent: without what Hermes notes on it."""
    sent = {
        name: value
        for name, value in message.items()
        if name not in _BOOKKEEPING and not name.startswith("_") and value is not None
    }
    if message.get("role") in ("user", "assistant") and isinstance(message.get(_SENT_INSTEAD), str):
        sent["content"] = message[_SENT_INSTEAD] or message.get("content")
    content = sent.setdefault("content", "" if "tool_calls" not in sent else None)
    if isinstance(content, str):
        sent["content"] = content.strip()
    return sent


def key_of(message: Mapping[str, Any]) -> bytes:
    """Return what tells a message from others: role, words, calls; not marks, blanks, spelling or notes."""
    said = [
        message.get("role"),
        _words(message.get("content")),
        [_call(call) for call in message.get("tool_calls") or ()],
        message.get("tool_call_id") or "",
    ]
    return blake2b(json.dumps(said, sort_keys=True).encode(), digest_size=16).digest()


def with_users_joined(messages: Iterable[Json]) -> list[Json]:
    """Return the list with neighbouring user messages as one, which is what Hermes makes of them."""
    joined: list[Json] = []
    for message in messages:
        before = joined[-1] if joined else None
        if before is not None and are_joined(before, message):
            joined[-1] = joined_to(before, message)
        else:
            joined.append(message)
    return joined


def are_joined(before: Mapping[str, Any], message: Mapping[str, Any]) -> bool:
    """Return whether Hermes makes one message of two."""
    return all(
        each.get("role") == "user" and isinstance(each.get("content"), str) for each in (before, message)
    )


def joined_to(before: Json, message: Json) -> Json:
    """Return the one message that Hermes makes of two."""
    return {**before, "content": f"{before['content']}\n\n{message['content']}".strip()}


def keys_of(messages: Iterable[Json]) -> list[bytes]:
    """Return the keys of a list."""
    return [key_of(message) for message in messages]


def taken_from(theirs: Sequence[Json], keys: Iterable[bytes], wanted: Iterable[Json]) -> list[Json]:
    """Return the wanted messages, as the dicts of `theirs` wherever those say the same by their `keys`."""
    known: defaultdict[bytes, deque[Json]] = defaultdict(deque)
    for key, message in zip(keys, theirs, strict=True):
        known[key].append(message)
    return [same.popleft() if (same := known[key_of(message)]) else message for message in wanted]


def sent_for(ours: Json, theirs: Json) -> Json:
    """Return one of two messages that say the same: ours, whose bytes were sent before, unless Hermes adds something."""
    adds = set(theirs) - set(ours) or _MARK in json.dumps(theirs.get("content"))
    return theirs if adds else ours


def _words(content: object) -> object:
    """Return content without marks; text alone is text, however it is wrapped."""
    if not isinstance(content, list):
        return content.strip() if isinstance(content, str) else content or ""
    blocks = [
        {name: value for name, value in block.items() if name != _MARK} if isinstance(block, dict) else block
        for block in content
    ]
    if len(blocks) == 1 and isinstance(blocks[0], dict) and set(blocks[0]) == {"type", "text"}:
        return str(blocks[0]["text"]).strip()
    return blocks


def _call(call: Mapping[str, Any]) -> list[object]:
    function = call.get("function") or {}
    arguments: object = function.get("arguments") or ""
    with suppress(ValueError):
        arguments = json.loads(str(arguments))
    return [call.get("id"), function.get("name"), arguments]
