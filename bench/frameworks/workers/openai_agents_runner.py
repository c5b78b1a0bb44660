"""The OpenAI Agents SDK's `Runner` with a session, over chat completions or the Responses API."""

from importlib.metadata import version
from typing import Any

from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesCompactionSession,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from agents.extensions import ToolOutputTrimmer
from openai import AsyncOpenAI

from bench.frameworks.task import SYSTEM, TOOL_WORDS, facts_until, log_of, question
from bench.frameworks.worker import Report, Told, run


@function_tool(description_override=TOOL_WORDS)
def read_log(service: str, day: int) -> str:
    return log_of(service, day)


def options_for(told: Told, report: Report, client: AsyncOpenAI | None) -> Any:  # noqa: ANN401 - the SDK's RunOptions
    """Return how it runs; with a `client` it is one of the Responses API."""
    if told.compaction == "lowwater":
        from bench.frameworks.books import keeper_for  # noqa: PLC0415 - only with Lowwater
        from lowwater.integrations.openai_agents import LowwaterSession  # noqa: PLC0415 - likewise

        return LowwaterSession("bench", keeper_for(told, report, session="bench")).run_options()
    options: dict[str, Any] = {"session": SQLiteSession("bench")}
    if told.compaction == "own" and client is not None:
        report.how = "OpenAIResponsesCompactionSession"
        options["session"] = OpenAIResponsesCompactionSession(
            "bench", options["session"], client=client, model=told.model, compaction_mode="input"
        )
    elif told.compaction == "own":
        report.how = "ToolOutputTrimmer()"
        options["run_config"] = RunConfig(call_model_input_filter=ToolOutputTrimmer())
    return options


async def play(told: Told, report: Report, *, responses: bool = False) -> None:
    report.version = version("openai-agents")
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=told.openai_url, api_key="k", max_retries=0)
    agent = Agent(
        name="bench",
        instructions=SYSTEM,
        tools=[read_log],
        model=(OpenAIResponsesModel if responses else OpenAIChatCompletionsModel)(told.model, client),
        model_settings=ModelSettings(max_tokens=told.max_tokens),
    )
    options = options_for(told, report, client if responses else None)
    for step in range(1, told.turns + 1):
        await Runner.run(agent, question(step), **options)
        report.turns = step
        held = "\n".join(str(item.get("output", "")) for item in await options["session"].get_items())
        report.kept = sum(fact in held for fact in facts_until(step))


if __name__ == "__main__":
    run(play)
