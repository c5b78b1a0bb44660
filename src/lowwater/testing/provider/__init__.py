"""A provider for tests: a real server with the real rules and scripted answers."""

from lowwater.testing.provider.answers import (
    Answer,
    Call,
    CallTools,
    CutOff,
    DropConnection,
    Fail,
    Hang,
    Refuse,
    Say,
    Think,
)
from lowwater.testing.provider.prompt import Refusal, Violation
from lowwater.testing.provider.server import Provider, Seen

__all__ = [
    "Answer",
    "Call",
    "CallTools",
    "CutOff",
    "DropConnection",
    "Fail",
    "Hang",
    "Provider",
    "Refusal",
    "Refuse",
    "Say",
    "Seen",
    "Think",
    "Violation",
]
