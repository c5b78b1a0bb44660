"""pydantic-ai's `Agent`, each turn a run that goes on with the messages of the one before."""

from importlib import import_module
from importlib.metadata import version
from typing import Any

from pydantic_ai import Agent, Tool
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import UsageLimits

from bench.frameworks.task import Tool as TaskTool
from bench.frameworks.task import task_of
from bench.frameworks.worker import Report, Told, run

CONVERSATION = "bench"


def tool_for(tool: TaskTool) -> Tool[None]:
    async def call(**arguments: Any) -> str:  # noqa: ANN401 - as a model wrote them
        return tool.call(arguments)

    return Tool.from_schema(call, name=tool.name, description=tool.words, json_schema=tool.schema)


def model_for(told: Told) -> Any:  # noqa: ANN401 - of either provider
    if told.speaks_anthropic:
        from anthropic import AsyncAnthropic  # noqa: PLC0415 - only where it is asked for
        from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415 - likewise
        from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415 - likewise

        claude = AsyncAnthropic(base_url=told.base_url, api_key="k", max_retries=0)
        return AnthropicModel(told.model, provider=AnthropicProvider(anthropic_client=claude))
    from openai import AsyncOpenAI  # noqa: PLC0415 - only where it is asked for
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415 - likewise
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415 - likewise

    client = AsyncOpenAI(base_url=told.openai_url, api_key="k", max_retries=0)
    return OpenAIChatModel(told.model, provider=OpenAIProvider(openai_client=client))


def capabilities_for(told: Told, report: Report) -> list[Any]:
    if told.compaction == "lowwater":
        from bench.frameworks.books import keeper_for  # noqa: PLC0415 - only with Lowwater
        from lowwater.integrations.pydantic_ai import LowwaterCapability  # noqa: PLC0415 - likewise

        return [LowwaterCapability(keeper_for(told, report, session=CONVERSATION))]
    if told.compaction == "own":
        # In an environment of its own, so that nothing is known of it here.
        harness: Any = import_module("pydantic_ai_harness.compaction")
        report.how = "TieredCompaction(ClearToolResults, SummarizingCompaction), target 80 %"
        tiers = [
            harness.ClearToolResults(max_messages=1),
            harness.SummarizingCompaction(max_messages=1, keep_messages=20),
        ]
        return [harness.TieredCompaction(tiers=tiers, target_tokens=told.window * 8 // 10)]
    return []


def settings_for(told: Told) -> ModelSettings:
    """Return the settings of the model; without Lowwater they ask for its cache."""
    if told.compaction == "lowwater":
        return ModelSettings(max_tokens=told.max_tokens)
    return ModelSettings(max_tokens=told.max_tokens, cache=True)


async def play(told: Told, report: Report) -> None:
    report.version = version("pydantic-ai-slim")
    task = task_of(told.turns, told.recorded)
    agent = Agent(
        model_for(told),
        instructions=task.system,
        tools=[tool_for(tool) for tool in task.tools],
        capabilities=capabilities_for(told, report),
        model_settings=settings_for(told),
    )
    messages: list[Any] = []
    for step, question in enumerate(task.questions, start=1):
        done = await agent.run(
            question,
            message_history=messages,
            conversation_id=CONVERSATION,
            usage_limits=UsageLimits(request_limit=None),
        )
        messages = done.all_messages()
        report.turns = step
        held = str(messages)
        report.kept = sum(fact in held for fact in task.facts_until(step))


if __name__ == "__main__":
    run(play)
