"""The session that the demo plays, which is shipped as data."""

import lzma
from importlib.resources import files
from typing import Any

import msgspec
from msgspec import Raw, Struct

from lowwater.core.formats.anthropic import decode_message
from lowwater.core.formats.codec import encode_messages
from lowwater.core.formats.convert import tools_as
from lowwater.core.messages import Format, Message, Role, Text
from lowwater.core.strict_json import write_json, write_object
from lowwater.errors import BadSetting
from lowwater.logs.recording import RecordedMessage, Recording

_FILE = "demo-session.jsonl.xz"


class Header(Struct, frozen=True, kw_only=True):
    """The first line of the file; `tools` are in the form of a chat request."""

    id: str
    model: str
    system: str
    tools: Raw


class DemoLine(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message: `content` as Anthropic has it, but each tool result is a message of its own, with the role `tool`."""

    role: Role
    name: str = ""
    content: Raw
    at: float
    mentions: tuple[str, ...] = ()


class DemoSession(Struct, frozen=True, kw_only=True):
    """A generated session of a coding agent, with the time of every message."""

    recording: Recording
    mentions: tuple[tuple[str, ...], ...]
    """For each message, the names in it that an earlier message introduced: what should still be in view."""

    @property
    def system(self) -> str:
        """The system prompt."""
        return msgspec.json.decode(self.recording.system, type=str)

    def tools(self, format: Format = "openai_chat") -> list[dict[str, Any]]:
        """Return the tools as a request of `format` lists them."""
        return msgspec.json.decode(tools_as(self.recording.tools, format), type=list[dict[str, Any]])

    def as_openai_chat(self) -> list[dict[str, Any]]:
        """Return the messages of a chat request, the system prompt first."""
        system = Message(role="system", parts=(Text(text=self.system),))
        return self._encoded("openai_chat", system)

    def as_anthropic(self) -> list[dict[str, Any]]:
        """Return the messages of an Anthropic request, which has its system prompt elsewhere."""
        return self._encoded("anthropic")

    def _encoded(self, format: Format, *before: Message) -> list[dict[str, Any]]:
        messages = [*before, *(each.message for each in self.recording.messages)]
        return [msgspec.json.decode(raw) for raw in encode_messages(messages, format)]


def demo_session(*, turns: int | None = None) -> DemoSession:
    """Return the session that `lowwater demo` plays: 472 calls of a model, some 420,000 tokens, on claude-haiku-4-5.

    With `turns`, the session ends after that many calls, where the next request would be sent.
    """
    if turns is not None and turns < 0:
        raise BadSetting(f"turns is {turns}: it must not be negative")
    data = lzma.decompress(files("lowwater").joinpath("data", _FILE).read_bytes())
    first, *rest = data.splitlines()
    header = msgspec.json.decode(first, type=Header)
    lines = [msgspec.json.decode(line, type=DemoLine) for line in rest]
    answers = [index for index, line in enumerate(lines) if line.role == "assistant"]
    if turns is not None and turns < len(answers):
        lines = lines[: answers[turns]]
    return DemoSession(
        recording=Recording(
            id=header.id,
            agent="generated",
            path="",
            model=header.model,
            messages=tuple(
                RecordedMessage(message=_message(line, index), at=line.at) for index, line in enumerate(lines)
            ),
            system=msgspec.json.encode(header.system),
            tools=bytes(header.tools),
        ),
        mentions=tuple(line.mentions for line in lines),
    )


def _message(line: DemoLine, index: int) -> Message:
    role = "user" if line.role == "tool" else line.role
    fields = {"role": write_json(role), "content": bytes(line.content)}
    return Message(role=line.role, name=line.name, parts=decode_message(write_object(fields), index).parts)
