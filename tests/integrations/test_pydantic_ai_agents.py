"""Real pydantic-ai agents on Lowwater, against the rules-checking provider."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import pytest
from pydantic_ai import Agent, AgentRunResultEvent
from pydantic_ai.messages import PartDeltaEvent, TextPartDelta, ToolReturnPart
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings

from bench.frameworks.task import SYSTEM, log_of, question
from lowwater.integrations.pydantic_ai import LowwaterCapability
from lowwater.testing.provider import Answer, Call, CallTools, Say, Seen
from tests.integrations.played_agents import TURNS, WINDOW, Played, played
from tests.sdk_clients import async_anthropic_client, async_openai_client

NAME = "monday"


def read_log(service: str, day: int) -> str:
    """Return the log of a service on a day."""
    return log_of(service, day)


def model_for(play: Played) -> tuple[Any, Any]:
    """The model behind the provider, and its client, which one event loop may use."""
    if play.model.startswith("claude"):
        claude = async_anthropic_client(play.provider)
        return AnthropicModel(play.model, provider=AnthropicProvider(anthropic_client=claude)), claude
    client = async_openai_client(play.provider)
    return OpenAIChatModel(play.model, provider=OpenAIProvider(openai_client=client)), client


def talk(
    play: Played,
    talking: Callable[[Agent[None, str]], Awaitable[Any]],
    *,
    recall: bool = False,
    tools: Sequence[Any] = (read_log,),
    kind: type[LowwaterCapability] = LowwaterCapability,
    **settings: Any,
) -> Any:
    """Let an agent talk in an event loop of its own."""

    async def held() -> Any:
        model, client = model_for(play)
        async with client:
            agent = Agent(
                model,
                instructions=SYSTEM,
                tools=tools,
                capabilities=[kind(play.lowwater, recall=recall)],
                model_settings=cast(ModelSettings, {"max_tokens": 2_000, **settings}),
            )
            return await talking(agent)

    play.session(NAME)
    return asyncio.run(held())


async def all_turns(agent: Agent[None, str], turns: int = TURNS) -> list[Any]:
    messages: list[Any] = []
    for step in range(1, turns + 1):
        done = await agent.run(question(step), message_history=messages, conversation_id=NAME)
        messages = done.all_messages()
    return messages


async def one_turn(agent: Agent[None, str]) -> list[Any]:
    return await all_turns(agent, 1)


async def three_turns(agent: Agent[None, str]) -> list[Any]:
    return await all_turns(agent, 3)


@pytest.mark.parametrize(
    "model", [pytest.param("gpt-5.5", marks=pytest.mark.full), "gpt-6.1-sol", "claude-haiku-4-5"]
)
def test_a_conversation_beyond_the_window(model: str) -> None:
    with played(model) as play:
        play.check(kept=str(talk(play, all_turns)), session=NAME, keyed=model.startswith("gpt"))


@pytest.mark.parametrize("model", ["gpt-5.5", pytest.param("claude-haiku-4-5", marks=pytest.mark.full)])
def test_streamed(model: str) -> None:
    async def streamed(agent: Agent[None, str]) -> tuple[str, list[Any]]:
        messages: list[Any] = []
        said = ""
        for step in range(1, TURNS + 1):
            async with agent.run_stream_events(
                question(step), message_history=messages, conversation_id=NAME
            ) as events:
                async for event in events:
                    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                        said += event.delta.content_delta
                    elif isinstance(event, AgentRunResultEvent):
                        messages = event.result.all_messages()
        return said, messages

    with played(model) as play:
        said, messages = talk(play, streamed)
        assert "refused connections and dropped batches" in said
        assert all(seen.body["stream"] for seen in play.provider.requests)
        play.check(kept=str(messages), session=NAME, keyed=model.startswith("gpt"))


@pytest.mark.parametrize(
    ("model", "thinking"),
    [
        ("claude-opus-5-5", {"type": "adaptive"}),
        ("claude-haiku-4-5", {"type": "enabled", "budget_tokens": 1_024}),
    ],
    ids=["bound adaptive", "unbound budget"],
)
def test_thinking_is_kept_or_dropped_as_the_model_wants(model: str, thinking: Any) -> None:
    with played(model, thinks=True) as play:
        messages = talk(play, all_turns, anthropic_thinking=thinking)
        assert play.provider.refusals == ()
        assert play.compacted[-1] > 0
        assert str(messages).count("let me see") == len(play.provider.requests)
        assert max(seen.raw.count(b"let me see") for seen in play.provider.requests) > 3


def test_settings_about_caching_are_the_users() -> None:
    with played("claude-haiku-4-5") as play:
        talk(play, three_turns, anthropic_cache_instructions=True)
        marked = [seen.raw.count(b'"cache_control"') for seen in play.provider.requests]
        assert marked == [1] * len(marked)
    with played("claude-haiku-4-5") as play:
        talk(play, three_turns)
        assert play.provider.requests[-1].raw.count(b'"cache_control"') > 1


def test_what_was_not_changed_is_the_very_object_of_the_history() -> None:
    with played("gpt-5.5") as play:
        seen: list[Any] = []

        class Watching(LowwaterCapability):
            async def prepare_model_request(self, ctx: Any, request_context: Any) -> Any:
                before = list(request_context.messages)
                changed = await super().prepare_model_request(ctx, request_context)
                seen.append((before, list(changed.messages)))
                return changed

        talk(play, all_turns, kind=Watching)
    history, view = seen[-1]
    known = {id(message) for message in history}
    assert {id(message) for message in view[-4:]} <= known
    assert any(id(message) not in known for message in view)


def test_the_model_recalls_what_it_no_longer_sees() -> None:
    answers: list[Answer] = [
        *(CallTools((Call("read_log", {"service": "mail", "day": day}),)) for day in range(1, 17)),
        CallTools(
            (Call("lowwater_search", {"query": "incident"}), Call("lowwater_expand", {"handle": "lw:3"}))
        ),
        Say("Found."),
    ]
    with played("gpt-5.5", script=lambda _: answers.pop(0)) as play:
        messages = talk(play, one_turn, recall=True)
        assert play.provider.refusals == ()
        assert play.compacted[-1] > 0
    found = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)][-2:]
    assert [part.tool_name for part in found] == ["lowwater_search", "lowwater_expand"]
    assert log_of("mail", 1)[:200] in str(found[1].content)


def test_each_conversation_is_a_session_and_an_agent_inside_a_tool_has_its_own() -> None:
    def script(seen: Seen) -> Answer:
        last = seen.body["messages"][-1]
        if last["role"] == "tool":
            return Say("Done.")
        inner = "inner" in str(last["content"])
        name, given = ("read_log", {"service": "mail", "day": 1}) if inner else ("ask", {"what": "inner"})
        return CallTools((Call(name, given),))

    async def nested(helper: Agent[None, str]) -> None:
        async def ask(what: str) -> str:
            """Ask the helper."""
            return (await helper.run(what)).output

        capability = LowwaterCapability(play.lowwater)
        outer = Agent(helper.model, tools=[ask, read_log], capabilities=[capability])
        first = await outer.run("outer", conversation_id=NAME)
        await outer.run("outer again", message_history=first.all_messages())

    with played("gpt-5.5", script=script) as play:
        talk(play, nested)
        assert play.provider.refusals == ()
        history = play.lowwater.session(NAME).history()
        roles = [message["role"] for message in history]
        assert roles == ["user", "assistant", "tool", "assistant"] * 2
        assert "inner" not in str(history[0])


def test_a_window_smaller_than_believed_is_learned_from_the_refusal() -> None:
    with played("gpt-5.5", learned=False) as play:
        talk(play, all_turns)
        assert len(play.provider.refusals) == 1
        assert play.lowwater.session(NAME).status().context == WINDOW


@pytest.mark.moves_prefix(reason="a rewind brings back what was compacted")
def test_rewind_is_reached_through_the_session() -> None:
    async def back(agent: Agent[None, str]) -> None:
        messages = await all_turns(agent)
        session = play.lowwater.session(NAME)
        compacted = session.status().prompt
        session.rewind("before-compaction-1")
        assert session.status().prompt > compacted
        await agent.run(question(TURNS + 1), message_history=messages)

    with played("gpt-5.5") as play:
        talk(play, back)
        assert play.provider.refusals == ()
