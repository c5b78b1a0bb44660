"""Lowwater for pydantic-ai: a capability for its agents."""

from lowwater.integrations.framework import needing

with needing("pydantic_ai", extra="pydantic-ai", otherwise="pydantic-ai is not installed"):
    from lowwater.integrations.pydantic_ai.capability import LowwaterCapability

__all__ = ["LowwaterCapability"]
