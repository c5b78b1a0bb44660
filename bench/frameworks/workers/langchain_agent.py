"""LangChain's `create_agent` with a checkpointer, one thread for the whole session."""

from importlib.metadata import version
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver

from bench.frameworks.task import Tool, task_of
from bench.frameworks.worker import Report, Told, run

THREAD = "bench"


def tool_for(tool: Tool) -> StructuredTool:
    def call(**arguments: Any) -> str:  # noqa: ANN401 - as a model wrote them
        return tool.call(arguments)

    return StructuredTool(name=tool.name, description=tool.words, args_schema=tool.schema, func=call)


def model_for(told: Told) -> BaseChatModel:
    profile: Any = {"max_input_tokens": told.window}
    options: Any = {"model": told.model, "api_key": "k", "max_retries": 0, "profile": profile}
    if told.speaks_anthropic:
        from langchain_anthropic import ChatAnthropic  # noqa: PLC0415 - only where it is asked for

        return ChatAnthropic(base_url=told.base_url, max_tokens_to_sample=told.max_tokens, **options)
    from langchain_openai import ChatOpenAI  # noqa: PLC0415 - only where it is asked for

    return ChatOpenAI(
        base_url=told.openai_url, use_responses_api=False, max_completion_tokens=told.max_tokens, **options
    )


def middleware_for(told: Told, model: BaseChatModel, report: Report) -> list[AgentMiddleware[Any, Any, Any]]:
    if told.compaction == "lowwater":
        from bench.frameworks.books import keeper_for  # noqa: PLC0415 - only with Lowwater
        from lowwater.integrations.langchain import LowwaterMiddleware  # noqa: PLC0415 - likewise

        return [LowwaterMiddleware(keeper_for(told, report, session=THREAD))]
    if told.compaction == "own":
        report.how = "SummarizationMiddleware, trigger 80 %"
        middleware: Any = SummarizationMiddleware(model, trigger=("fraction", 0.8))
        return [middleware, *_caching(told)]
    return _caching(told)


def _caching(told: Told) -> list[AgentMiddleware[Any, Any, Any]]:
    """Return what marks a request for Claude's cache: without it nothing would be read from it."""
    if not told.speaks_anthropic:
        return []
    from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware  # noqa: PLC0415 - likewise

    return [AnthropicPromptCachingMiddleware()]


def play(told: Told, report: Report) -> None:
    report.version = version("langchain")
    model, task = model_for(told), task_of(told.turns, told.recorded)
    agent: Any = create_agent(
        model,
        tools=[tool_for(tool) for tool in task.tools],
        system_prompt=task.system,
        middleware=middleware_for(told, model, report),
        checkpointer=InMemorySaver(),
    )
    config = {"configurable": {"thread_id": THREAD}, "recursion_limit": 1_000}
    for step, question in enumerate(task.questions, start=1):
        done = agent.invoke({"messages": [{"role": "user", "content": question}]}, config)
        report.turns = step
        held = "\n".join(str(message.content) for message in done["messages"])
        report.kept = sum(fact in held for fact in task.facts_until(step))


if __name__ == "__main__":
    run(play)
