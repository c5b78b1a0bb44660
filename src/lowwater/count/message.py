"""Sizes one message: its texts, calls, results, thinking, pictures and documents, and what stands around them."""

import re

import msgspec
from msgspec import Raw

from lowwater.count.document import count_document
from lowwater.count.framing import Framing, framing_of
from lowwater.count.picture import count_picture
from lowwater.ports import Tokenizer
from lowwater.values.message import Message
from lowwater.values.parts import AnyPart, Document, Image, Opaque, Text, Thinking, ToolCall, ToolResult

SIGNATURE_TOKENS = 0.18
"""Tokens of thinking per character of its signature beyond the first 200.

A signature grows with the thinking it vouches for, of which the text beside it may be a digest or nothing. On recorded
Claude Code sessions (Opus 4.5 and 4.6, Sonnet 4.5) the prompt grows by 0.20 to 0.21 tokens per character, which is 0.18
in o200k; the median miss on answers of Opus 4.6 with thinking falls from 136 tokens by the text to 71.
"""
SIGNATURE_ENVELOPE = 200
DATA_TOKENS = 1_600
"""What a stretch of base64 inside a block of unknown type counts: media are not read as text."""

_BASE64 = re.compile(r"[A-Za-z0-9+/=_-]{2000,}")


def count_message(message: Message, tokenizer: Tokenizer, *, framing: Framing | None = None) -> int:
    """Return how many tokens `message` is in a prompt; every text in it is given to `tokenizer` once.

    Without a framing it is that of the format the message came in. Thinking counts, whether or not the provider will
    leave it out of later prompts: see `count_thinking`.
    """
    around = framing_of(message) if framing is None else framing
    name = 1 + tokenizer.count(message.name) if message.name and message.role == "user" else 0
    return around.message + name + sum(_count_part(part, tokenizer, around) for part in message.parts)


def count_thinking(message: Message, tokenizer: Tokenizer) -> int:
    """Return how many tokens of `count_message` are thinking, which some models drop at the user's next message."""
    return sum(_count_thought(part, tokenizer) for part in message.thinking)


def _count_part(part: AnyPart, tokenizer: Tokenizer, around: Framing) -> int:
    match part:
        case Text():
            return tokenizer.count(part.text)
        case ToolCall():
            arguments = _count_arguments(part.arguments, tokenizer, around)
            return around.call + tokenizer.count(part.name) + arguments
        case ToolResult():
            return around.result + sum(_count_part(inner, tokenizer, around) for inner in part.parts)
        case Thinking():
            return _count_thought(part, tokenizer)
        case Image():
            return count_picture(part, around.pictures)
        case Document():
            return count_document(part, tokenizer)
        case Opaque():
            return _count_opaque(part.body, tokenizer)


def _count_thought(part: Thinking, tokenizer: Tokenizer) -> int:
    signed = int((len(part.signature) - SIGNATURE_ENVELOPE) * SIGNATURE_TOKENS)
    return max(signed, tokenizer.count(part.text))


def _count_arguments(arguments: str, tokenizer: Tokenizer, around: Framing) -> int:
    values = _bare_values(arguments) if around.arguments == "values" else None
    if values is None:
        return tokenizer.count(arguments)
    return sum(around.argument + tokenizer.count(value) for value in values)


def _bare_values(arguments: str) -> list[str] | None:
    """Return the values of a JSON object, strings without their quotes; None if `arguments` is no such object."""
    try:
        values = msgspec.json.decode(arguments, type=dict[str, Raw])
        return [_bare(bytes(value)) for value in values.values()]
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None


def _bare(value: bytes) -> str:
    return msgspec.json.decode(value, type=str) if value.startswith(b'"') else value.decode()


def _count_opaque(body: str, tokenizer: Tokenizer) -> int:
    text, media = _BASE64.subn("", body)
    return tokenizer.count(text) + media * DATA_TOKENS
