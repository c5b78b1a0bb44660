"""Realistic long agent sessions from a seed: coding, research and support."""

from tests.generated.generate import count_characters, generate_session
from tests.generated.memory import Reference
from tests.generated.pauses import Pauses
from tests.generated.session import AnthropicForm, GeneratedSession, Kind, Tool

__all__ = [
    "AnthropicForm",
    "GeneratedSession",
    "Kind",
    "Pauses",
    "Reference",
    "Tool",
    "count_characters",
    "generate_session",
]
