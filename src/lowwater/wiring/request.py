"""What a session hands its user to send: the view in either provider's form, marked for its cache."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from lowwater.assemble.marks import Marks
from lowwater.values.decision import Decision
from lowwater.values.message import Format, Message
from lowwater.values.parts import Text
from lowwater.wire.anthropic.marks import mark_content, unmark_content, unmark_message
from lowwater.wire.anthropic.marks import mark_message as mark_anthropic
from lowwater.wire.anthropic.thinking import thinking_for
from lowwater.wire.formats import encode_messages, reread
from lowwater.wire.openai_chat.marks import mark_message as mark_chat
from lowwater.wire.reading import write_json
from lowwater.wire.tools import tools_as

_NOTHING = frozenset({b"", b"[]", b'""', b"null"})
_MARK = b'"cache_control"'
_MOST_MARKS = 4
"""What Anthropic's API takes."""


class PreparedRequest(Struct, frozen=True, kw_only=True):
    """A request ready to be sent; pass it on with `**request.as_anthropic()` or `**request.as_openai()`."""

    messages: tuple[Message, ...]
    told: Format | None = None
    """The format that one of the messages told; None if they read the same in both."""
    assumed: Format | None = None
    """The format in which they were read before one did."""
    system: bytes = b""
    tools: bytes = b""
    thinking: bytes = b""
    """The request's `thinking` at Anthropic, if it was given to `prepare`."""
    marks: Marks | None = None
    """Where cache marks go; None where the provider takes none."""
    tokens: int = 0
    """The size of the prompt, in the model's tokens, as far as can be told before sending."""
    decision: Decision | None = None

    def as_anthropic(self) -> dict[str, Any]:
        """Return `messages`, and `system`, `tools` and `thinking` where there are any, for the Anthropic SDK or API."""
        system, messages = self.system, self._read_as("anthropic")
        if self.told == "openai_chat":
            system, messages = _system_apart(system, messages)
        raws = encode_messages(messages, "anthropic")
        tools = tools_as(self.tools, "anthropic")
        if self.marks is not None:
            raws = [unmark_message(raw) for raw in raws]
            for index in self.marks.last(len(raws)):
                raws[index] = mark_anthropic(raws[index], self.marks.ttl)
            bare = unmark_content(system)
            system = (mark_content(bare, self.marks.ttl) or bare) if bare else bare
            tools = unmark_content(tools)
        else:
            raws = _with_marks_left(raws, system, tools)
        thinking = thinking_for(self.thinking, raws) if self.thinking else b""
        return _fields(raws, system=system, tools=tools, thinking=thinking)

    def as_openai(self) -> dict[str, Any]:
        """Return `messages`, and `tools` where there are any, for the OpenAI SDK or a compatible API."""
        messages = self._read_as("openai_chat")
        if self.system not in _NOTHING:
            messages = [_system_message(self.system), *messages]
        raws = encode_messages(messages, "openai_chat")
        if self.marks is not None and self.marks.in_chat:
            raws = [unmark_message(raw) for raw in raws]
            first = 1 if messages and messages[0].role in {"system", "developer"} else 0
            wanted = [*range(first), *(first + index for index in self.marks.last(len(raws) - first))]
            for index in wanted:
                raws[index] = mark_chat(raws[index], self.marks.ttl)
        return _fields(raws, tools=tools_as(self.tools, "openai_chat"))

    def _read_as(self, format: Format) -> list[Message]:
        return reread(self.messages, assumed=self.assumed, format=self.told or format)


def _fields(raws: Sequence[bytes], **others: bytes) -> dict[str, Any]:
    fields: dict[str, Any] = {"messages": [msgspec.json.decode(raw) for raw in raws]}
    return fields | {
        name: msgspec.json.decode(value) for name, value in others.items() if value not in _NOTHING
    }


def _with_marks_left(raws: Sequence[bytes], system: bytes, tools: bytes) -> list[bytes]:
    """Return messages with the client's own marks, less the first ones if a repeated message made them too many."""
    over = sum(part.count(_MARK) for part in (system, tools, *raws)) - _MOST_MARKS
    kept: list[bytes] = []
    for raw in raws:
        kept.append(unmark_message(raw) if over > 0 else raw)
        over -= raw.count(_MARK)
    return kept


def _system_apart(system: bytes, messages: Sequence[Message]) -> tuple[bytes, list[Message]]:
    """Return the system prompt of a chat conversation and the messages without it."""
    told = [message.text for message in messages if message.role in {"system", "developer"}]
    others = [message for message in messages if message.role not in {"system", "developer"}]
    if system and told:
        told.insert(0, _text_of(system))
    return (write_json("\n\n".join(told)) if told else system), others


def _system_message(system: bytes) -> Message:
    return Message(role="system", parts=(Text(text=_text_of(system)),))


def _text_of(system: bytes) -> str:
    value = msgspec.json.decode(system)
    return value if isinstance(value, str) else "\n\n".join(block.get("text", "") for block in value)
