"""Real runs of the OpenAI Agents SDK on Lowwater, against the rules-checking provider."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import pytest
from agents import (
    Agent,
    ModelResponse,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    RunHooks,
    Runner,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)

from bench.frameworks.task import SYSTEM, log_of, question
from lowwater.integrations.openai_agents import LowwaterSession
from lowwater.testing.provider import Answer, Call, CallTools, Say, Seen
from tests.integrations.played_agents import TURNS, Played, played
from tests.sdk_clients import async_openai_client

NAME = "monday"
AnyModel: TypeAlias = OpenAIChatCompletionsModel | OpenAIResponsesModel


@function_tool
def read_log(service: str, day: int) -> str:
    """Return the log of a service on a day."""
    return log_of(service, day)


@pytest.fixture(autouse=True)
def untraced() -> Iterator[None]:
    set_tracing_disabled(True)
    yield
    set_tracing_disabled(False)


@asynccontextmanager
async def model_for(play: Played, kind: type[AnyModel]) -> AsyncIterator[AnyModel]:
    """The model behind the provider, for one event loop."""
    async with async_openai_client(play.provider) as client:
        yield kind(play.model, client)


def agent_for(model: AnyModel, *tools: Any, name: str = "on call") -> Agent[Any]:
    return Agent(
        name=name,
        instructions=SYSTEM,
        tools=[read_log, *tools],
        model=model,
        model_settings=ModelSettings(max_tokens=2_000, include_usage=True),
    )


def session_for(play: Played, **options: Any) -> LowwaterSession:
    play.session(NAME)
    return LowwaterSession(NAME, play.lowwater, **options)


def talk(
    play: Played,
    talking: Callable[[AnyModel], Awaitable[Any]],
    kind: type[AnyModel] = OpenAIChatCompletionsModel,
) -> Any:
    async def held() -> Any:
        async with model_for(play, kind) as model:
            return await talking(model)

    return asyncio.run(held())


async def all_turns(session: LowwaterSession, model: AnyModel) -> str:
    agent = agent_for(model)
    for step in range(1, TURNS + 1):
        await Runner.run(agent, question(step), **session.run_options())
    return await kept(session)


async def kept(session: LowwaterSession) -> str:
    return "\n".join(str(item.get("output", "")) for item in await session.get_items())


@pytest.mark.parametrize("model", [pytest.param("gpt-5.5", marks=pytest.mark.full), "gpt-6.1-sol"])
def test_runs_beyond_the_window(model: str) -> None:
    with played(model) as play:
        session = session_for(play)
        held = talk(play, lambda model: all_turns(session, model))
        play.check(kept=held, session=NAME, keyed=False)  # the SDK sends a key to OpenAI's own address only


@pytest.mark.parametrize("thinks", [False, True], ids=["without reasoning", "with reasoning"])
def test_runs_over_the_responses_api(thinks: bool) -> None:
    with played("gpt-5.5", thinks=thinks) as play:
        session = session_for(play)
        held = talk(play, lambda model: all_turns(session, model), OpenAIResponsesModel)
        assert {seen.path for seen in play.provider.requests} == {"/v1/responses"}
        play.check(kept=held, session=NAME, keyed=False)
        kinds = [item.get("type") for item in asyncio.run(session.get_items())]
        assert kinds.count("reasoning") == thinks * len(play.provider.requests)


def test_between_compactions_the_very_bytes_leave_again() -> None:
    with played("gpt-5.5") as play:
        session = session_for(play)
        talk(play, lambda model: all_turns(session, model))
    calm = 0
    seen = play.provider.requests
    for at in range(1, len(seen)):
        if play.compacted[at] == play.compacted[at - 1]:
            before, _, behind = seen[at - 1].raw.partition(b'],"max_tokens":2000')
            assert behind
            assert seen[at].raw.startswith(before)
            calm += 1
    assert calm > TURNS


def test_streamed() -> None:
    async def streamed(model: AnyModel) -> str:
        agent, said = agent_for(model), ""
        for step in range(1, TURNS + 1):
            run = Runner.run_streamed(agent, question(step), **session.run_options())
            async for event in run.stream_events():
                if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                    said += event.data.delta
        play.check(kept=await kept(session), session=NAME, keyed=False)
        return said

    with played("gpt-5.5") as play:
        session = session_for(play)
        assert f"In step {TURNS} " in talk(play, streamed)
        assert all(seen.body["stream"] for seen in play.provider.requests)


def test_with_a_history_a_configuration_and_hooks_of_ones_own(tmp_path: Any) -> None:
    class Counting(RunHooks[Any]):
        answers = 0

        async def on_llm_end(self, context: Any, agent: Any, response: ModelResponse) -> None:
            self.answers += 1

    hooks, history = Counting(), SQLiteSession(NAME, tmp_path / "items.db")
    config = RunConfig(workflow_name="mine")
    with played("gpt-5.5") as play:
        session = session_for(play, history=history)
        options = session.run_options(run_config=config, hooks=hooks)
        talk(play, lambda model: Runner.run(agent_for(model), question(1), **options))
        assert hooks.answers == len(play.provider.requests) == 2
        assert isinstance(options["run_config"], RunConfig)
        assert options["run_config"].workflow_name == "mine"
        assert config.call_model_input_filter is None, "the user's own configuration stays as it is"
        assert play.recorded(NAME) == play.billed()
    assert (
        len(asyncio.run(history.get_items())) == len(session.session.history()) + 1
    )  # words and call are two
    history.close()


def test_the_model_recalls_what_it_no_longer_sees() -> None:
    answers: list[Answer] = [
        *(CallTools((Call("read_log", {"service": "mail", "day": day}),)) for day in range(1, 17)),
        CallTools(
            (Call("lowwater_search", {"query": "incident"}), Call("lowwater_expand", {"handle": "lw:3"}))
        ),
        Say("Found."),
    ]

    async def recalling(model: AnyModel) -> list[Any]:
        agent = agent_for(model, *session.recall_tools())
        options: Any = {**session.run_options(), "max_turns": 30}
        await Runner.run(agent, question(1), **options)
        return await session.get_items()

    with played("gpt-5.5", script=lambda _: answers.pop(0)) as play:
        session = session_for(play)
        items = talk(play, recalling)
        assert play.provider.refusals == ()
        assert play.compacted[-1] > 0
    found = [item["output"] for item in items if item.get("type") == "function_call_output"][-2:]
    assert "lw:" in found[0]
    assert log_of("mail", 1)[:200] in found[1]


def test_an_agent_that_is_a_tool_of_another_has_a_session_of_its_own() -> None:
    def script(seen: Seen) -> Answer:
        last = seen.body["messages"][-1]
        if last["role"] == "tool":
            return Say("Done.")
        inner = "inner" in str(last["content"])
        name, given = ("read_log", {"service": "mail", "day": 1}) if inner else ("ask", {"input": "inner"})
        return CallTools((Call(name, given),))

    async def nested(model: AnyModel) -> None:
        helper = agent_for(model, name="helper")
        outer = agent_for(model, helper.as_tool("ask", "Ask the helper."))
        await Runner.run(outer, "outer", **session.run_options())
        await Runner.run(outer, "outer again", **session.run_options())

    with played("gpt-5.5", script=script) as play:
        session = session_for(play)
        talk(play, nested)
        assert play.provider.refusals == ()
        history = session.session.history()
        assert [message["role"] for message in history] == ["user", "assistant", "tool", "assistant"] * 2
        assert "inner" not in str(history[0])


@pytest.mark.moves_prefix(reason="a rewind brings back what was compacted")
def test_rewind_and_taking_back_are_reached_through_the_sessions() -> None:
    async def back_and_forth(model: AnyModel) -> None:
        await all_turns(session, model)
        compacted = session.session.status().prompt
        session.session.rewind("before-compaction-1")
        assert session.session.status().prompt > compacted
        assert (await session.pop_item())["role"] == "assistant"
        await Runner.run(agent_for(model), question(TURNS + 1), **session.run_options())
        assert play.provider.refusals == ()
        await session.clear_session()
        await Runner.run(agent_for(model), question(1), **session.run_options())
        assert len(play.provider.requests[-2].body["messages"]) == 2
        assert [message["role"] for message in session.session.view()] == [
            "user",
            "assistant",
            "tool",
            "assistant",
        ]
        assert len(play.lowwater.store.sessions()) == 1

    with played("gpt-5.5") as play:
        session = session_for(play)
        talk(play, back_and_forth)
        assert play.provider.refusals == ()
