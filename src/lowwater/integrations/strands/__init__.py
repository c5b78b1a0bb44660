"""Lowwater for Strands Agents: a conversation manager for `strands.Agent`."""

from typing import TYPE_CHECKING

from lowwater.integrations.framework import needing

if TYPE_CHECKING:
    from lowwater.integrations.strands.manager import LowwaterConversationManager

__all__ = ["LowwaterConversationManager"]


def __getattr__(name: str) -> object:
    """Import the manager on first use, or raise an error that says what to install."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needing("strands", extra="strands", otherwise="Strands Agents 1.62 or newer is not installed"):
        from lowwater.integrations.strands.manager import LowwaterConversationManager  # noqa: PLC0415 - needs Strands
    return LowwaterConversationManager
