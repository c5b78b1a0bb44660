"""Telling the formats apart by what only one of them says."""

from collections.abc import Collection, Iterable, Sequence

from msgspec import Raw, Struct

from lowwater.errors import BadInput
from lowwater.values.message import Format
from lowwater.wire.reading import read_json

_ANTHROPIC_BLOCKS = frozenset(
    {
        "tool_use",
        "tool_result",
        "thinking",
        "redacted_thinking",
        "image",
        "document",
        "server_tool_use",
        "compaction",
    }
)
_CHAT_BLOCKS = frozenset({"image_url", "input_audio", "file", "refusal"})
_CHAT_ROLES = frozenset({"tool", "system", "developer", "function"})
_ANTHROPIC_FIELDS = frozenset(
    {"system", "anthropic_version", "stop_sequences", "thinking", "context_management"}
)
_CHAT_FIELDS = frozenset(
    {"max_completion_tokens", "stream_options", "response_format", "reasoning_effort", "n"}
)


class _Block(Struct):
    type: str = ""


class _Hint(Struct):
    role: str = ""
    content: list[_Block] | str | None = None
    tool_calls: Raw = Raw(b"")


def detect(messages: Sequence[bytes], fields: Collection[str] = ()) -> Format:
    """Return the format of raw messages and of the request fields around them.

    The first message that only one format allows decides, then the fields; a conversation of plain text reads the
    same in both and counts as chat.
    """
    told = told_format(messages)
    if told is not None:
        return told
    anthropic, chat = len(_ANTHROPIC_FIELDS.intersection(fields)), len(_CHAT_FIELDS.intersection(fields))
    return "anthropic" if anthropic > chat else "openai_chat"


def told_format(messages: Iterable[bytes]) -> Format | None:
    """Return the format of the first message that only one format allows; None if all read the same in both."""
    return next((found for found in map(_tells, messages) if found is not None), None)


def _tells(raw: bytes) -> Format | None:
    try:
        hint = read_json(raw, _Hint)
    except BadInput:
        return None  # whatever is wrong with it, decoding it will say so with its index
    if hint.role in _CHAT_ROLES or bytes(hint.tool_calls):
        return "openai_chat"
    kinds = {block.type for block in hint.content} if isinstance(hint.content, list) else set()
    if kinds & _ANTHROPIC_BLOCKS:
        return "anthropic"
    return "openai_chat" if kinds & _CHAT_BLOCKS else None
