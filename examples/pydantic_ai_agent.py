"""A pydantic-ai agent that stays inside the context window: pip install 'lowwater[pydantic-ai]' 'pydantic-ai-slim[openai]'."""

import os

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel

from lowwater import Lowwater
from lowwater.integrations.pydantic_ai import LowwaterCapability


def read_log(service: str) -> str:
    """Return today's log of a service."""
    return f"{service}: 12 connections refused"


model = os.environ.get("MODEL", "gpt-6.1-sol")
capability = LowwaterCapability(Lowwater(model=model), recall=True)
agent = Agent(OpenAIChatModel(model), tools=[read_log], capabilities=[capability])

done = agent.run_sync("What went wrong with mail?", conversation_id="monday")
more = agent.run_sync("And with search?", message_history=done.all_messages())
print(more.output)
print(capability.session("monday").status())
