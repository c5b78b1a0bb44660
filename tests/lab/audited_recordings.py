"""Recorded sessions written down call by call, for tests of the audit."""

from typing import Any, Literal

from lowwater.core.api_calls import Usage
from lowwater.core.messages import AnyPart, Message, Role, Text, ToolCall, ToolResult
from lowwater.lab.audit.calls import AuditedCall, ModelPrices, audited_calls
from lowwater.lab.audit.findings import AuditedSession
from lowwater.lab.audit.session import audit_session
from lowwater.logs.recording import NativeCompaction, RecordedCall, RecordedMessage, Recording

OPUS, GPT = "claude-opus-4-6", "gpt-5.5"
PRICING = ModelPrices()
NOON = 1_770_638_400.0
"""2026-02-09, 12:00 UTC."""


class Talk:
    """A session that grows by what is said, and by calls with the usage they reported."""

    def __init__(self, model: str = OPUS, *, at: float = NOON) -> None:
        self.model, self.now = model, at
        self._messages: list[RecordedMessage] = []
        self._compactions: list[NativeCompaction] = []
        self._tools = 0

    def says(self, text: str = "go on", *, kind: str = "") -> "Talk":
        """The user speaks."""
        return self._add("user", Text(text=text), kind=kind)

    def call(
        self, *, prompt: int, read: int, wait: float = 10.0, model: str = "", long: bool = False, **more: Any
    ) -> "Talk":
        """The model answers after a pause; what it did not read is written, or plain input for OpenAI's."""
        model = model or self.model
        self.now += wait
        if "usage" not in more:
            rest = prompt - read
            field = "uncached" if model.startswith("gpt") else "cache_write_long" if long else "cache_write"
            more["usage"] = Usage(cache_read=read, output=more.pop("output", 0), **{field: rest})
        call = RecordedCall(model=model, asked_at=self.now, **more)
        self.now += 1
        return self._add("assistant", Text(text="I see."), call=call)

    def tool(
        self,
        result: str,
        *,
        prompt: int,
        read: int,
        role: Literal["tool", "user"] = "tool",
        named: str = "Read",
        **more: Any,
    ) -> "Talk":
        """A tool is called and answers, in a message of its own role or of the user's, then the model does."""
        self._tools += 1
        name = f"t{self._tools}"
        self._add("assistant", ToolCall(id=name, name=named, arguments='{"file_path": "a.py"}'))
        self._add(role, ToolResult(call_id=name, parts=(Text(text=result),)))
        return self.call(prompt=prompt, read=read, **more)

    def compacts(self, *, trigger: str = "auto", summary: str = "so far: " + "work " * 400) -> "Talk":
        """The client replaces what came before by a summary."""
        self._compactions.append(
            NativeCompaction(index=len(self._messages), at=self.now, trigger=trigger, before=None)
        )
        return self.says(summary, kind="compact_summary")

    def prunes(self, *cleared: str, removed: int | None = None) -> "Talk":
        """The client clears results that came before."""
        self._compactions.append(
            NativeCompaction(
                index=len(self._messages),
                kind="prune",
                at=self.now,
                trigger="auto",
                removed=removed,
                cleared=cleared,
            )
        )
        return self

    def recording(self, **fields: Any) -> Recording:
        """Return what was recorded."""
        given: dict[str, Any] = {"id": "s1", "agent": "claude-code", "path": "/logs/project/s1.jsonl"}
        return Recording(
            messages=tuple(self._messages),
            model=self.model,
            compactions=tuple(self._compactions),
            **given | fields,
        )

    def calls(self, **fields: Any) -> tuple[AuditedCall, ...]:
        """Return its calls as the audit sees them."""
        return audited_calls(self.recording(), PRICING, **fields)

    def audited(self, **fields: Any) -> AuditedSession:
        """Return what the audit finds, days told in UTC."""
        recording = self.recording(**fields)
        return audit_session(recording, audited_calls(recording, PRICING), day_of=utc_day)

    def _add(self, role: Role, part: AnyPart, *, kind: str = "", call: RecordedCall | None = None) -> "Talk":
        message = Message(role=role, parts=(part,))
        self._messages.append(RecordedMessage(message=message, at=self.now, call=call, kind=kind))
        return self


def utc_day(at: float) -> str:
    """Return the day of a moment, whatever the time zone of the machine."""
    from datetime import UTC, datetime

    return f"{datetime.fromtimestamp(at, tz=UTC):%Y-%m-%d}"


def growing(talk: Talk, count: int, *, start: int = 30_000, step: int = 2_000, read: int = 0) -> Talk:
    """Let a session go on by tool results, every call reading the prompt before."""
    prompt = start
    talk.says().call(prompt=prompt, read=read)
    for _ in range(count - 1):
        talk.tool("line of text\n" * 300, prompt=prompt + step, read=prompt)
        prompt += step
    return talk
