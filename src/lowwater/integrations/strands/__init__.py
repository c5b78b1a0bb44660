"""Lowwater for Strands Agents: a conversation manager for `strands.Agent`."""

from typing import TYPE_CHECKING

from lowwater.integrations.framework import missing_extra

if TYPE_CHECKING:
    from lowwater.integrations.strands.manager import LowwaterConversationManager

__all__ = ["LowwaterConversationManager"]


def __getattr__(name: str) -> object:
    """Import the manager on first use, or raise an error that says what to install."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from lowwater.integrations.strands import manager  # noqa: PLC0415 - needs Strands
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "strands":
            raise
        raise missing_extra("Strands Agents 1.62 or newer", "strands") from None
    return manager.LowwaterConversationManager
