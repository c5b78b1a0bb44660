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
from lowwater.wire.formats import encode_messages
from lowwater.wire.openai_chat.marks import mark_message as mark_chat
from lowwater.wire.reading import write_json


class PreparedRequest(Struct, frozen=True, kw_only=True):
    """A request ready to be sent; pass it on with `**request.as_anthropic()` or `**request.as_openai()`."""

    messages: tuple[Message, ...]
    format: Format
    system: bytes = b""
    tools: bytes = b""
    marks: Marks | None = None
    """Where cache marks go; None where the provider takes none."""
    tokens: int = 0
    """The size of the prompt, in the model's tokens, as far as can be told before sending."""
    decision: Decision | None = None

    def as_anthropic(self) -> dict[str, Any]:
        """Return `messages`, and `system` and `tools` where there are any, for the Anthropic SDK or API."""
        system, others = self.system, self.messages
        if self.format != "anthropic":
            system, others = _system_apart(self.system, self.messages)
        raws = encode_messages(others, "anthropic")
        tools = self.tools
        if self.marks is not None:
            raws = [unmark_message(raw) for raw in raws]
            for index in self.marks.last(len(raws)):
                raws[index] = mark_anthropic(raws[index], self.marks.ttl)
            system = unmark_content(system) and (
                mark_content(unmark_content(system), self.marks.ttl) or system
            )
            tools = unmark_content(tools)
        return _fields(raws, system=system, tools=tools)

    def as_openai(self) -> dict[str, Any]:
        """Return `messages`, and `tools` where there are any, for the OpenAI SDK or a compatible API."""
        messages = self.messages
        if self.system and self.format == "anthropic":
            messages = (_system_message(self.system), *messages)
        raws = encode_messages(messages, "openai_chat")
        if self.marks is not None and self.marks.in_chat:
            raws = [unmark_message(raw) for raw in raws]
            first = 1 if messages and messages[0].role in {"system", "developer"} else 0
            wanted = [*range(first), *(first + index for index in self.marks.last(len(raws) - first))]
            for index in wanted:
                raws[index] = mark_chat(raws[index], self.marks.ttl)
        return _fields(raws, tools=self.tools)


def _fields(raws: Sequence[bytes], *, system: bytes = b"", tools: bytes = b"") -> dict[str, Any]:
    fields: dict[str, Any] = {"messages": [msgspec.json.decode(raw) for raw in raws]}
    for name, value in (("system", system), ("tools", tools)):
        if value:
            fields[name] = msgspec.json.decode(value)
    return fields


def _system_apart(system: bytes, messages: Sequence[Message]) -> tuple[bytes, tuple[Message, ...]]:
    """Return the system prompt of a chat conversation and the messages without it."""
    told = [message.text for message in messages if message.role in {"system", "developer"}]
    others = tuple(message for message in messages if message.role not in {"system", "developer"})
    return (write_json("\n\n".join(told)) if told else system), others


def _system_message(system: bytes) -> Message:
    value = msgspec.json.decode(system)
    text = value if isinstance(value, str) else "\n\n".join(block.get("text", "") for block in value)
    return Message(role="system", parts=(Text(text=text),))
