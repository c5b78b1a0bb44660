"""A LangChain agent that stays inside the context window: pip install 'lowwater[langchain]' langchain-openai."""

import os

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

from lowwater import Lowwater
from lowwater.integrations.langchain import LowwaterMiddleware


def read_log(service: str) -> str:
    """Return today's log of a service."""
    return f"{service}: 12 connections refused"


model = os.environ.get("MODEL", "gpt-6.1-sol")
middleware = LowwaterMiddleware(Lowwater(model=model), recall=True)
chat = ChatOpenAI(model=model, use_responses_api=False)
agent = create_agent(chat, [read_log], middleware=[middleware], checkpointer=InMemorySaver())

question = {"role": "user", "content": "What went wrong with mail?"}
done = agent.invoke({"messages": [question]}, {"configurable": {"thread_id": "monday"}})
print(done["messages"][-1].text)
print(middleware.session("monday").status())
