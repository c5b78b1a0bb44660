"""Clients that compact by themselves: their request for a summary, and the shorter list that follows it."""

import re
from collections.abc import Sequence
from hashlib import blake2b

from lowwater.core.messages import Message

_ASKS = (
    re.compile(r"create a detailed summary of (the|our|this) conversation", re.IGNORECASE),  # Claude Code
    re.compile(r"CONTEXT CHECKPOINT COMPACTION"),  # Codex
    re.compile(r"detailed (prompt|summary) for continuing (our|the) conversation", re.IGNORECASE),  # opencode
    re.compile(r"\AHere is the conversation so far:\s+<conversation>"),  # opencode, apart from its list
    re.compile(r"\AYou are a summarization agent creating a context checkpoint"),  # Hermes, likewise
    re.compile(r"summari[sz]e (our|the|this) (entire |whole )?conversation", re.IGNORECASE),
    re.compile(
        r"(generate|provide|write) (a|the) .{0,40}<state_snapshot>", re.IGNORECASE | re.DOTALL
    ),  # Gemini CLI
    re.compile(
        r"provide a (concise|detailed|structured) summary of the (conversation|session)", re.IGNORECASE
    ),
)
_LOOKED_AT = 20_000
"""Characters of a message's end and beginning in which a question is looked for."""
_EDGE = 6
"""Messages at each end of a list in which a summary is looked for: Claude Code's begins with it, Codex's ends with it, Hermes keeps a few before."""
_LONG_LINE = 40
_MOST_LINES = 60


def asks_for_summary(message: Message) -> bool:
    """Return whether a client's newest message asks the model to summarise the conversation; what tools said does not ask."""
    if message.role != "user":
        return False
    text = message.text
    looked_at = text if len(text) <= 2 * _LOOKED_AT else text[:_LOOKED_AT] + text[-_LOOKED_AT:]
    return any(asks.search(looked_at) for asks in _ASKS)


def beside_question(message: Message) -> Message | None:
    """Return what a client sends in one message with its question: the results of tools, or nothing."""
    return message.with_parts(message.results) if message.results else None


def lines_of(text: str) -> list[bytes]:
    """Return keys of a text's long lines: a client that puts a summary into its next list may change what is around them."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    longest = [line for line in lines if len(line) >= _LONG_LINE][:_MOST_LINES]
    return [blake2b(b"line\0" + line.encode(errors="replace"), digest_size=16).digest() for line in longest]


def lines_in(messages: Sequence[Message]) -> tuple[bytes, ...]:
    """Return keys of the long lines in the first and the last messages of a list."""
    edges = messages if len(messages) <= 2 * _EDGE else [*messages[:_EDGE], *messages[-_EDGE:]]
    return tuple(dict.fromkeys(key for message in edges for key in lines_of(message.text)))
