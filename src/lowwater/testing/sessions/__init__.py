"""Realistic long agent sessions from a seed: coding, research and support."""

from lowwater.testing.sessions.generate import count_characters, generate_session
from lowwater.testing.sessions.memory import Reference
from lowwater.testing.sessions.pauses import Pauses
from lowwater.testing.sessions.session import AnthropicForm, GeneratedSession, Kind, Tool

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
