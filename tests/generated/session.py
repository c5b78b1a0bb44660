"""A generated session, and the forms it can be had in."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Literal, NamedTuple

import msgspec
from msgspec import Raw, Struct

from lowwater.core.api_calls import Usage
from lowwater.core.formats.codec import encode_messages
from lowwater.core.messages import Format, Message, Text
from lowwater.logs.recording import RecordedMessage, Recording
from tests.generated.memory import Reference

Kind = Literal["coding", "research", "support"]


class Tool(Struct, frozen=True, kw_only=True):
    """A tool the model may call: its parameters as a JSON schema's properties, the required ones by name."""

    name: str
    description: str
    properties: dict[str, object]
    required: tuple[str, ...] = ()

    def schema(self) -> dict[str, object]:
        """Return the JSON schema of the arguments."""
        return {"type": "object", "properties": self.properties, "required": list(self.required)}


class AnthropicForm(NamedTuple):
    """System prompt (JSON) and messages of one session as Anthropic wants them, apart."""

    system: bytes
    messages: list[bytes]


class GeneratedSession(Struct, frozen=True, kw_only=True):
    """A whole session: equal arguments give equal ones, byte for byte.

    `times` has one entry per message (seconds since the epoch), `usages` one per assistant message. The system prompt
    is not among the messages.
    """

    id: str
    kind: Kind
    model: str
    system: str
    tools: tuple[Tool, ...]
    messages: tuple[Message, ...]
    times: tuple[float, ...]
    usages: tuple[Usage, ...]
    references: tuple[Reference, ...]
    """What later messages name of earlier ones: the ground truth for anything that measures recall."""

    def tools_json(self, format: Format) -> bytes:
        """Return the tools as a request of `format` carries them."""
        return tools_json(self.tools, format)

    def as_openai_chat(self) -> list[bytes]:
        """Return the messages of a chat request, the system prompt first."""
        system = Message(role="system", parts=(Text(text=self.system),))
        return encode_messages([system, *self.messages], "openai_chat")

    def as_anthropic(self) -> AnthropicForm:
        """Return the system prompt and the messages of an Anthropic request."""
        return AnthropicForm(msgspec.json.encode(self.system), encode_messages(self.messages, "anthropic"))

    def as_recording(self) -> Recording:
        """Return the session as an importer would."""
        messages = zip(self.messages, self.times, strict=True)
        return Recording(
            id=self.id,
            agent="generated",
            path="",
            model=self.model,
            messages=tuple(RecordedMessage(message=message, at=at) for message, at in messages),
            system=msgspec.json.encode(self.system),
            tools=self.tools_json("openai_chat"),
        )

    def as_canonical_jsonl(self) -> bytes:
        """Return the recording: a header, then chat messages with `ts`, `usage` and what else is known of each."""
        lines = [msgspec.json.encode(line) for line in (self._header(), *self._lines())]
        return b"\n".join(lines) + b"\n"

    def _header(self) -> dict[str, object]:
        return {
            "id": self.id,
            "source": "lowwater.testing",
            "license": "Apache-2.0",
            "model": self.model,
            "agent": f"generated-{self.kind}",
            "started": _stamp(self.times[0]),
            "ended": _stamp(self.times[-1]),
            "first_request_input_tokens": self.usages[0].prompt,
            "native_compactions": [],
            "stub_results": 0,
            "orphan_results_dropped": 0,
        }

    def _lines(self) -> Iterator[dict[str, object]]:
        usages = iter(self.usages)
        system, *encoded = self.as_openai_chat()
        yield {**_fields(system), "ts": _stamp(self.times[0])}
        for message, raw, time in zip(self.messages, encoded, self.times, strict=True):
            line: dict[str, object] = {**_fields(raw), "ts": _stamp(time)}
            if message.role == "assistant":
                line |= {"model": self.model, "usage": _reported(next(usages))}
            if message.role == "tool":
                line["name"] = message.name
            if any(result.is_error for result in message.results):
                line["is_error"] = True
            yield line


def tools_json(tools: tuple[Tool, ...], format: Format) -> bytes:
    """Return `tools` as a request of `format` carries them."""
    match format:
        case "anthropic":
            return msgspec.json.encode(
                [{"name": t.name, "description": t.description, "input_schema": t.schema()} for t in tools]
            )
        case "openai_chat" | "openai_responses":
            functions = [
                {"name": t.name, "description": t.description, "parameters": t.schema()} for t in tools
            ]
            if format == "openai_responses":
                return msgspec.json.encode([{"type": "function", **function} for function in functions])
            return msgspec.json.encode([{"type": "function", "function": function} for function in functions])


def _fields(raw: bytes) -> dict[str, Raw]:
    return msgspec.json.decode(raw, type=dict[str, Raw])


def _stamp(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _reported(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.uncached,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write,
        "output_tokens": usage.output,
    }
