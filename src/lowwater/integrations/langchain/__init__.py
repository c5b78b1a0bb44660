"""Lowwater for LangChain and LangGraph: middleware for `langchain.agents.create_agent`."""

from lowwater.integrations.framework import missing_extra

try:
    from lowwater.integrations.langchain.middleware import LowwaterMiddleware
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] not in {"langchain", "langchain_core", "langgraph"}:
        raise
    raise missing_extra("LangChain", "langchain") from None

__all__ = ["LowwaterMiddleware"]
