"""Detecting the format of messages by the roles, fields and block types that only some formats have."""

from collections.abc import Collection, Iterable, Sequence

from msgspec import Raw, Struct

from lowwater.core.formats.openai_responses import is_item_type
from lowwater.core.messages import Format
from lowwater.core.strict_json import read_json
from lowwater.errors import BadInput

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
_CHAT_BLOCKS = frozenset({"image_url", "input_audio", "file"})
_RESPONSES_BLOCKS = frozenset({"input_text", "output_text", "input_image", "input_file"})
_CHAT_ROLES = frozenset({"tool", "function"})
_OPENAI_ROLES = frozenset({"system", "developer"})
_ANTHROPIC_FIELDS = frozenset(
    {"system", "anthropic_version", "stop_sequences", "thinking", "context_management"}
)
_CHAT_FIELDS = frozenset(
    {"max_completion_tokens", "stream_options", "response_format", "reasoning_effort", "n"}
)

_Formats = frozenset[Format]
_ANY: _Formats = frozenset({"openai_chat", "anthropic", "openai_responses"})
_ANTHROPIC: _Formats = frozenset({"anthropic"})
_CHAT: _Formats = frozenset({"openai_chat"})
_RESPONSES: _Formats = frozenset({"openai_responses"})
_OPENAI: _Formats = frozenset({"openai_chat", "openai_responses"})
_NOT_RESPONSES: _Formats = frozenset({"openai_chat", "anthropic"})


class _Block(Struct):
    type: str = ""


class _Hint(Struct):
    role: str = ""
    type: str = ""
    content: list[_Block] | str | None = None
    tool_calls: Raw = Raw(b"")
    stop_reason: Raw = Raw(b"")


def detect(messages: Sequence[bytes], fields: Collection[str] = ()) -> Format:
    """Return the format of raw messages, with the names of the request's other fields as further evidence.

    The first message that only one format allows decides, then the fields. A conversation of plain text looks the same
    in every format and counts as chat.
    """
    found = told_format(messages)
    if found is not None:
        return found
    anthropic, chat = len(_ANTHROPIC_FIELDS.intersection(fields)), len(_CHAT_FIELDS.intersection(fields))
    return "anthropic" if anthropic > chat else "openai_chat"


def told_format(messages: Iterable[bytes]) -> Format | None:
    """Return the only format that the messages allow; None if they look the same in every format.

    Messages that fit both of OpenAI's formats but not Anthropic's count as chat.
    """
    left = _ANY
    for raw in messages:
        allowed = possible_formats(raw)
        if len(allowed) == 1:
            return next(iter(allowed))
        left = left & allowed or left
        if len(left) == 1:
            return next(iter(left))
    return None if "anthropic" in left else "openai_chat"


def possible_formats(raw: bytes) -> frozenset[Format]:
    """Return the formats that a message could be in."""
    if raw.lstrip()[:1] == b"[":
        return _RESPONSES  # the items of one answer
    try:
        hint = read_json(raw, _Hint)
    except BadInput:
        return _ANY  # decoding reports what is wrong, with the message's index
    if hint.role in _CHAT_ROLES or bytes(hint.tool_calls):
        return _CHAT
    kinds = {block.type for block in hint.content} if isinstance(hint.content, list) else set()
    if kinds & _ANTHROPIC_BLOCKS:
        return _ANTHROPIC
    if kinds & _RESPONSES_BLOCKS or (is_item_type(hint.type) and not _is_anthropic_answer(hint, kinds)):
        return _RESPONSES
    if kinds & _CHAT_BLOCKS:
        return _CHAT
    if "refusal" in kinds or hint.role in _OPENAI_ROLES:
        return _CHAT if "text" in kinds else _OPENAI
    return _NOT_RESPONSES if kinds else _ANY


def _is_anthropic_answer(hint: _Hint, kinds: set[str]) -> bool:
    """Return whether it is an answer from Anthropic: those have the type `message`, like items of the Responses format."""
    return hint.type == "message" and (bytes(hint.stop_reason) != b"" or "text" in kinds)
