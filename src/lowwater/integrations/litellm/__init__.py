"""Lowwater for LiteLLM's proxy: a hook that sends each conversation as the view, whoever the client is."""

from typing import TYPE_CHECKING

from lowwater.integrations.framework import missing_extra

if TYPE_CHECKING:
    from lowwater.integrations.litellm.hook import LowwaterHook

__all__ = ["LowwaterHook"]


def __getattr__(name: str) -> object:
    """Import the hook on first use, or raise an error that says what to install."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from lowwater.integrations.litellm import hook  # noqa: PLC0415 - needs LiteLLM
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "litellm":
            raise
        raise missing_extra("LiteLLM", "litellm") from None
    return hook.LowwaterHook
