"""Lowwater for the OpenAI Agents SDK: a session whose runs send the model a view that fits."""

from lowwater.integrations.framework import missing

try:
    from lowwater.integrations.openai_agents.session import LowwaterSession
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] not in {"agents", "openai"}:
        raise
    raise missing("The OpenAI Agents SDK", "openai-agents") from None

__all__ = ["LowwaterSession"]
