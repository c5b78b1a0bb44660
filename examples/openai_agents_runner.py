"""An OpenAI Agents SDK run that stays inside the context window: pip install 'lowwater[openai-agents]'."""

import os

from agents import Agent, Runner, function_tool, set_default_openai_api, set_tracing_disabled

from lowwater import Lowwater
from lowwater.integrations.openai_agents import LowwaterSession


@function_tool
def read_log(service: str) -> str:
    """Return today's log of a service."""
    return f"{service}: 12 connections refused"


set_default_openai_api("chat_completions")
set_tracing_disabled(True)
model = os.environ.get("MODEL", "gpt-6.1-sol")
session = LowwaterSession("monday", Lowwater(model=model))
agent = Agent(name="on call", model=model, tools=[read_log, *session.recall_tools()])

done = Runner.run_sync(agent, "What went wrong with mail?", **session.run_options())
print(done.final_output)
print(session.session.status())
