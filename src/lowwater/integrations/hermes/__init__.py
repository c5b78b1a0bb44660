"""The Hermes plugin: found through the entry-point group `hermes_agent.plugins`, chosen by `context.engine: lowwater`."""

from typing import TYPE_CHECKING, Any

from lowwater.integrations.framework import needing

if TYPE_CHECKING:
    from lowwater.integrations.hermes.engine import LowwaterEngine

__all__ = ["LowwaterEngine", "register"]


def register(ctx: Any) -> None:  # noqa: ANN401 - Hermes' PluginContext
    """Register the engine and, if this version of Hermes supports it, the middleware around each call of a model."""
    from lowwater.integrations.hermes.engine import LowwaterEngine  # noqa: PLC0415 - needs Hermes
    from lowwater.integrations.hermes.history import around_call  # noqa: PLC0415 - loaded only when the plugin is used

    wraps_calls = callable(getattr(ctx, "register_middleware", None))
    if wraps_calls:
        ctx.register_middleware("llm_execution", around_call)
    ctx.register_context_engine(LowwaterEngine(wraps_calls=wraps_calls))


def __getattr__(name: str) -> object:
    """Import the engine on first use, or raise an error that says what to install."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needing(
        "agent",
        otherwise="Hermes is not installed here: pip install lowwater in the environment of hermes-agent",
    ):
        from lowwater.integrations.hermes.engine import LowwaterEngine  # noqa: PLC0415 - needs Hermes
    return LowwaterEngine
