"""Strands' `Agent`, one for the whole session; its messages stay in the process."""

import asyncio
from importlib.metadata import version
from typing import Any

from strands import Agent, tool  # type: ignore[import-not-found]  # in its own environment
from strands.agent.conversation_manager import (  # type: ignore[import-not-found]  # likewise
    NullConversationManager,
    SlidingWindowConversationManager,
)

from bench.frameworks.task import SYSTEM, TOOL_WORDS, facts_until, log_of, question
from bench.frameworks.worker import Report, Told, run


def read_log(service: str, day: int) -> str:
    return log_of(service, day)


read_log.__doc__ = TOOL_WORDS


def model_for(told: Told) -> Any:  # noqa: ANN401 - Strands is not installed where this is checked
    if told.speaks_anthropic:
        from strands.models.anthropic import AnthropicModel  # type: ignore[import-not-found]  # noqa: PLC0415
        from strands.models.model import CacheConfig  # type: ignore[import-not-found]  # noqa: PLC0415

        caching = {} if told.compaction == "lowwater" else {"cache_config": CacheConfig(strategy="auto")}
        return AnthropicModel(
            client_args={"base_url": told.base_url, "api_key": "k", "max_retries": 0},
            model_id=told.model,
            max_tokens=2_000,
            context_window_limit=told.window,
            **caching,
        )
    from strands.models.openai import OpenAIModel  # type: ignore[import-not-found]  # noqa: PLC0415

    return OpenAIModel(
        client_args={"base_url": told.openai_url, "api_key": "k", "max_retries": 0},
        model_id=told.model,
        params={"max_tokens": 2_000},
        context_window_limit=told.window,
    )


def manager_for(told: Told, report: Report) -> Any:  # noqa: ANN401 - likewise
    if told.compaction == "own":
        # The default. Its summarizing manager asks without tools about messages with tool calls, which both providers refuse.
        report.how = "SlidingWindowConversationManager, proactive at 70 %"
        return SlidingWindowConversationManager(proactive_compression=True)
    if told.compaction == "none":
        report.how = "NullConversationManager"
        return NullConversationManager()
    from lowwater import Lowwater  # noqa: PLC0415 - only where it is asked for
    from lowwater.integrations.strands import LowwaterConversationManager  # noqa: PLC0415 - likewise

    report.how = "LowwaterConversationManager"
    lowwater = Lowwater(model=told.model, base_url=told.base_url, store="memory:")
    return LowwaterConversationManager(lowwater, session="bench")


def play(told: Told, report: Report) -> None:
    report.version = version("strands-agents")
    # One event loop for the session: a client's connections are those of the loop they were opened in.
    asyncio.run(converse(told, report))


async def converse(told: Told, report: Report) -> None:
    manager = manager_for(told, report)
    agent = Agent(
        model=model_for(told),
        system_prompt=SYSTEM,
        tools=[tool(name="read_log")(read_log)],
        conversation_manager=manager,
        callback_handler=None,
    )
    for step in range(1, told.turns + 1):
        await agent.invoke_async(question(step))
        report.turns = step
        held = str(agent.messages)
        report.kept = sum(fact in held for fact in facts_until(step))
        if told.compaction == "lowwater":
            report.compactions = manager.session(agent).status().compaction_count


if __name__ == "__main__":
    run(play)
