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
from lowwater.testing.provider.provider import Provider
from lowwater.testing.provider.records import Seen
from lowwater.testing.provider.rule import Refusal, Violation

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
