"""Long conversations as clients send them: the whole list, each time a little longer."""

import random
from typing import Any

import msgspec

from bench.gateway.upstream import ANSWER
from lowwater.core.formats.codec import decode_messages
from lowwater.core.tokens.counting import count_message
from lowwater.session.factories import counter_for, framing_for

MODEL = "claude-opus-5-5"
_WORDS = (
    "the reader opens a file and counts its lines while a second task waits for the lock that guards the index "
    "of names and their places so that a later search may find what was written before it was moved"
).split()


class Conversation:
    """A list of messages that grows by two with each turn; there is nothing in it that could be compacted away."""

    def __init__(self, number: int, tokens: int) -> None:
        self._draw = random.Random(number)
        self._messages: list[bytes] = []
        counter, framing = counter_for(MODEL), framing_for(MODEL)
        size = 0
        while size < tokens or len(self._messages) % 2 == 0:
            role = "user" if len(self._messages) % 2 == 0 else "assistant"
            raw = _message(role, self._said(350))
            size += count_message(decode_messages([raw], "anthropic")[0], counter, framing=framing)
            self._messages.append(raw)
        self.tokens = size

    def body(self) -> bytes:
        """Return the next request."""
        head = msgspec.json.encode(
            {"model": MODEL, "max_tokens": 4_000, "stream": True, "system": "You work."}
        )
        return head[:-1] + b',"messages":[' + b",".join(self._messages) + b"]}"

    def answered(self) -> None:
        """Add the provider's answer, and what the user says to it."""
        self._messages.append(
            msgspec.json.encode({"role": "assistant", "content": [{"type": "text", "text": ANSWER}]})
        )
        self._messages.append(_message("user", self._said(60)))

    def _said(self, words: int) -> str:
        return " ".join(self._draw.choices(_WORDS, k=words))


def _message(role: str, text: str) -> bytes:
    message: dict[str, Any] = {"role": role, "content": text}
    return msgspec.json.encode(message)
