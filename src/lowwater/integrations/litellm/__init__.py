"""Lowwater for LiteLLM's proxy: a hook that sends each conversation as the view, whoever the client is."""

from typing import TYPE_CHECKING

from lowwater.integrations.framework import needing

if TYPE_CHECKING:
    from lowwater.integrations.litellm.hook import LowwaterHook

__all__ = ["LowwaterHook"]


def __getattr__(name: str) -> object:
    """Import the hook on first use, or raise an error that says what to install."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needing("litellm", extra="litellm", otherwise="LiteLLM is not installed"):
        from lowwater.integrations.litellm.hook import LowwaterHook  # noqa: PLC0415 - needs LiteLLM
    return LowwaterHook
