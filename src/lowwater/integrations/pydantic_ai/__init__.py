"""Lowwater for pydantic-ai: a capability for its agents."""

from lowwater.integrations.framework import missing_extra

try:
    from lowwater.integrations.pydantic_ai.capability import LowwaterCapability
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] != "pydantic_ai":
        raise
    raise missing_extra("pydantic-ai", "pydantic-ai") from None

__all__ = ["LowwaterCapability"]
