"""A chat for tests: real tools in a directory, a store in memory or a file, what it showed kept to look at."""

from pathlib import Path
from typing import Any

from lowwater.chat.chat import Chat
from lowwater.chat.model_access import ModelAccess
from lowwater.chat.tools import Memory, ToolOutcome
from lowwater.core.limits import UsageWarning
from lowwater.core.messages import Format, ToolCall
from lowwater.settings import Settings
from lowwater.stores.addresses import open_store
from lowwater.testing.fakes import RecordingSink
from lowwater.testing.provider import Provider

MODELS: dict[Format, str] = {"anthropic": "claude-haiku-4-5", "openai_chat": "gpt-5.4"}
FORMATS: tuple[Format, ...] = ("anthropic", "openai_chat")


class Watched:
    """Keeps what a chat shows."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.outcomes: list[tuple[ToolCall, ToolOutcome]] = []
        self.notes: list[str] = []
        self.warnings: list[UsageWarning] = []
        self.questions: list[str] = []
        self.sink = RecordingSink()

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def on_text(self, piece: str, /) -> None:
        self.pieces.append(piece)

    def on_tool_call(self, call: ToolCall, /) -> None:
        pass

    def on_tool_result(self, call: ToolCall, outcome: ToolOutcome, /) -> None:
        self.outcomes.append((call, outcome))

    def on_notice(self, sentence: str, /) -> None:
        self.notes.append(sentence)


def chat_with(directory: Path, watched: Watched, *, store: str = "memory:", **options: Any) -> Chat:
    """Return a chat with the script, or with whatever the options say; everything is allowed."""

    def allow(question: str) -> bool:
        watched.questions.append(question)
        return True

    given: dict[str, Any] = {
        "reach": ModelAccess(is_scripted=True),
        "model": "claude-haiku-4-5",
        "store": open_store(store),
        "settings": Settings(),
        "directory": directory,
        "memory": Memory(directory.parent / "memory.md"),
        "watcher": watched,
        "allow": allow,
        "sinks": [watched.sink],
        "on_warning": watched.warnings.append,
    }
    return Chat(**given | options)


def reach_to(provider: Provider, format: Format) -> ModelAccess:
    """Return how to reach the rules-checking provider in one format."""
    url = provider.anthropic_base_url if format == "anthropic" else provider.openai_base_url
    return ModelAccess(base_url=url, format=format, api_key="k")


def chat_at(provider: Provider, format: Format, directory: Path, watched: Watched, **options: Any) -> Chat:
    """Return a chat with the rules-checking provider."""
    options.setdefault("model", MODELS[format])
    return chat_with(directory, watched, reach=reach_to(provider, format), **options)
