"""Lowwater for the OpenAI Agents SDK: a session whose runs send the model a view that fits."""

from lowwater.integrations.framework import needing

with needing("agents", "openai", extra="openai-agents", otherwise="The OpenAI Agents SDK is not installed"):
    from lowwater.integrations.openai_agents.session import LowwaterSession

__all__ = ["LowwaterSession"]
