"""A model for real clients: it has a shell run something three times for each question, whatever tools they offer."""

from collections.abc import Iterator
from typing import Any

from lowwater.testing.provider import Answer, Call, CallTools, Say, Seen

DONE = "It is done now."
SUMMARY = """<analysis>
Every command was run in turn.
</analysis>
<summary>
1. The user asked to run three commands in a shell and to report on what they say.
2. Each command prints a row of numbers, and all of them have ended without an error.
3. Nothing is left to be done until the user asks for three more of the same kind.
4. The user did not forbid anything, and no file was changed by what was run so far.
</summary>"""
_ASKS = (
    "create a detailed summary of the conversation",
    "CONTEXT CHECKPOINT COMPACTION",
    "Here is the conversation so far",
    "You are a summarization agent creating a context checkpoint",
)


class Work:
    """Answers as a model at work does; `command` gets the number of the call."""

    def __init__(self, command: str = "seq {0}000 {0}040", calls: int = 3) -> None:
        self._command = command
        self._each = calls
        self.calls = 0

    def __call__(self, seen: Seen) -> Answer:
        listed = [each for each in listed_in(seen) if each.get("role") != "system"]
        if any(asks in text_of(listed[-1]) for asks in _ASKS):
            return Say(text=SUMMARY)
        shell = _shell(tool_names(seen), self._command.format(self.calls))
        if shell is None:
            return Say(text="A short title")
        if is_result(listed[-1]) and self.calls % self._each == 0:
            return Say(text=DONE)
        self.calls += 1
        return CallTools(calls=(shell,), text="I run it. ")


def listed_in(seen: Seen) -> list[dict[str, Any]]:
    """Return a request's messages or items."""
    found: list[dict[str, Any]] = seen.body.get("messages") or seen.body.get("input") or []
    return found


def text_of(message: dict[str, Any]) -> str:
    """Return what a message says, without what tools said."""
    content = message.get("content")
    if isinstance(content, str):
        return "" if message.get("role") == "tool" else content
    return " ".join(part.get("text", "") for part in content or [] if part.get("type") != "tool_result")


def is_result(message: dict[str, Any]) -> bool:
    """Return whether a message brings what a tool said."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return (
        message.get("role") == "tool"
        or message.get("type", "").endswith("_output")
        or any(part.get("type") == "tool_result" for part in parts)
    )


def tool_names(seen: Seen) -> set[str]:
    """Return the names of the tools a request offers."""
    brought = [each for each in listed_in(seen) if each.get("type") == "additional_tools"]
    tools = [*(seen.body.get("tools") or []), *(tool for each in brought for tool in each["tools"])]
    return set(_names(tools))


def _names(tools: list[dict[str, Any]]) -> Iterator[str]:
    for tool in tools:
        if tool.get("type") == "namespace":
            yield from _names(tool["tools"])
        else:
            yield str(tool.get("name") or tool.get("function", {}).get("name") or "")


def _shell(names: set[str], command: str) -> Call | None:
    """Return a call of the shell by the name a client has for it: Claude Code, opencode, Codex with two kinds, Hermes."""
    for name in names & {"Bash", "bash"}:
        return Call(name=name, arguments={"command": command, "description": "counts"})
    if "exec_command" in names:
        return Call(name="exec_command", arguments={"cmd": command})
    if "exec" in names:
        return Call(name="exec", arguments={"input": f'text(await tools.exec_command({{cmd: "{command}"}}))'})
    if "terminal" in names:
        return Call(name="terminal", arguments={"command": command})
    return None
