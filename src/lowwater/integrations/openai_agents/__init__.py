"""Lowwater for the OpenAI Agents SDK: a session whose runs send the model a view that fits."""

from lowwater.integrations.framework import missing_extra

try:
    from lowwater.integrations.openai_agents.session import LowwaterSession
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] not in {"agents", "openai"}:
        raise
    raise missing_extra("The OpenAI Agents SDK", "openai-agents") from None

__all__ = ["LowwaterSession"]
