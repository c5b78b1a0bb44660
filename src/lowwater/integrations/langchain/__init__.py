"""Lowwater for LangChain and LangGraph: middleware for `langchain.agents.create_agent`."""

from lowwater.integrations.framework import needing

with needing(
    "langchain", "langchain_core", "langgraph", extra="langchain", otherwise="LangChain is not installed"
):
    from lowwater.integrations.langchain.middleware import LowwaterMiddleware

__all__ = ["LowwaterMiddleware"]
