"""A Strands agent that stays inside the context window: pip install 'lowwater[strands]' 'strands-agents[openai]'."""

import os

from strands import Agent, tool
from strands.models.openai import OpenAIModel

from lowwater import Lowwater
from lowwater.integrations.strands import LowwaterConversationManager


@tool
def read_log(service: str) -> str:
    """Return today's log of a service."""
    return f"{service}: 12 connections refused"


model = os.environ.get("MODEL", "gpt-6.1-sol")
manager = LowwaterConversationManager(Lowwater(model=model), session="monday")
agent = Agent(
    model=OpenAIModel(client_args={"base_url": os.environ.get("OPENAI_BASE_URL")}, model_id=model),
    tools=[read_log, *manager.tools],
    conversation_manager=manager,
    callback_handler=None,
)

print(agent("What went wrong with mail?"))
print(manager.session(agent).status())
