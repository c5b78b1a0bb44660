"""Real LangChain agents on Lowwater, against the rules-checking provider."""

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, ToolMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

from bench.frameworks.task import SYSTEM, log_of, question
from lowwater.integrations.langchain import LowwaterMiddleware
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.testing.provider import Answer, Call, CallTools, Provider, Say, Seen
from tests.integrations.played_agents import SETTINGS, TURNS, WINDOW, Played, played

THREAD = "monday"
CONFIG: Any = {"configurable": {"thread_id": THREAD}, "recursion_limit": 50}


def read_log(service: str, day: int) -> str:
    """Return the log of a service on a day."""
    return log_of(service, day)


def chat_for(provider: Provider, model: str, **options: Any) -> Any:
    options |= {"model": model, "api_key": "k", "max_retries": 0}
    if model.startswith("claude"):
        return ChatAnthropic(base_url=provider.anthropic_base_url, **{"max_tokens": 2_000, **options})
    return ChatOpenAI(
        base_url=provider.openai_base_url,
        use_responses_api=False,
        stream_usage=True,
        max_completion_tokens=2_000,
        **options,
    )


def agent_for(play: Played, *, recall: bool = False, checkpointer: Any = None, **options: Any) -> Any:
    play.session(THREAD)
    return create_agent(
        chat_for(play.provider, play.model, **options),
        [read_log],
        system_prompt=SYSTEM,
        middleware=[LowwaterMiddleware(play.lowwater, recall=recall)],
        checkpointer=checkpointer or InMemorySaver(),
    )


def asked(step: int) -> Any:
    return {"messages": [{"role": "user", "content": question(step)}]}


def kept(agent: Any) -> str:
    return "\n".join(str(message.content) for message in agent.get_state(CONFIG).values["messages"])


@pytest.mark.parametrize(
    "model", [pytest.param("gpt-5.5", marks=pytest.mark.full), "gpt-6.1-sol", "claude-haiku-4-5"]
)
def test_a_session_beyond_the_window(model: str) -> None:
    with played(model) as play:
        agent = agent_for(play)
        for step in range(1, TURNS + 1):
            agent.invoke(asked(step), CONFIG)
        play.check(kept=kept(agent), session=THREAD, keyed=play.model.startswith("gpt"))


@pytest.mark.parametrize("model", ["gpt-5.5", pytest.param("claude-haiku-4-5", marks=pytest.mark.full)])
def test_asynchronously_and_streamed(model: str) -> None:
    async def talk(agent: Any) -> str:
        said = ""
        for step in range(1, TURNS + 1):
            async for piece, _ in agent.astream(asked(step), CONFIG, stream_mode="messages"):
                said += piece.text if isinstance(piece, AIMessage) else ""
        return said

    with played(model) as play:
        agent = agent_for(play, streaming=True)
        assert f"In step {TURNS} " in asyncio.run(talk(agent))
        assert all(seen.body["stream"] for seen in play.provider.requests)
        play.check(kept=kept(agent), session=THREAD, keyed=play.model.startswith("gpt"))


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
        agent = agent_for(play, thinking=thinking)
        for step in range(1, TURNS + 1):
            agent.invoke(asked(step), CONFIG)
        assert play.provider.refusals == ()
        assert play.compacted[-1] > 0
        assert kept(agent).count("let me see") == len(play.provider.requests)
        sent = [seen.raw.count(b"let me see") for seen in play.provider.requests]
        assert max(sent) > 3


def test_what_was_not_changed_is_the_very_object_of_the_state() -> None:
    with played("gpt-5.5") as play:
        seen: list[Any] = []

        class Watching(LowwaterMiddleware):
            def wrap_model_call(self, request: Any, handler: Any) -> Any:
                def watched(changed: Any) -> Any:
                    seen.append((list(request.messages), list(changed.messages)))
                    return handler(changed)

                return super().wrap_model_call(request, watched)

        play.session(THREAD)
        agent: Any = create_agent(
            chat_for(play.provider, play.model),
            [read_log],
            middleware=[Watching(play.lowwater)],
            checkpointer=InMemorySaver(),
        )
        for step in range(1, TURNS + 1):
            agent.invoke(asked(step), CONFIG)
    state, view = seen[-1]
    assert {id(message) for message in view[-5:]} <= {id(message) for message in state}
    changed = [message for message in view if id(message) not in {id(each) for each in state}]
    assert changed
    assert len(state) > len(view) or any(isinstance(message, ToolMessage) for message in changed)


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_the_model_recalls_what_it_no_longer_sees(way: str) -> None:
    answers: list[Answer] = [
        *(CallTools((Call("read_log", {"service": "mail", "day": day}),)) for day in range(1, 14)),
        CallTools(
            (Call("lowwater_search", {"query": "incident"}), Call("lowwater_expand", {"handle": "lw:3"}))
        ),
        Say("Found."),
    ]
    with played("gpt-5.5", script=lambda _: answers.pop(0)) as play:
        agent = agent_for(play, recall=True)
        done = (
            agent.invoke(asked(1), CONFIG)
            if way == "invoke"
            else asyncio.run(agent.ainvoke(asked(1), CONFIG))
        )
        assert play.provider.refusals == ()
    found = [message for message in done["messages"] if isinstance(message, ToolMessage)][-2:]
    assert [message.name for message in found] == ["lowwater_search", "lowwater_expand"]
    assert "lw:" in found[0].text
    assert log_of("mail", 1)[:200] in found[1].text


def test_each_thread_is_a_session_and_so_is_each_list_without_a_thread() -> None:
    with played("gpt-5.5") as play:
        middleware = LowwaterMiddleware(play.lowwater)
        chat = chat_for(play.provider, play.model)
        threads: Any = create_agent(chat, [read_log], middleware=[middleware], checkpointer=InMemorySaver())
        for thread in ("one", "two"):
            threads.invoke(asked(1), {"configurable": {"thread_id": thread}})
        assert len(middleware.session("one").history()) == len(middleware.session("two").history()) == 4
        bare: Any = create_agent(chat, [read_log], middleware=[middleware])
        first = bare.invoke(asked(1))["messages"]
        second = bare.invoke({"messages": [*first, {"role": "user", "content": question(2)}]})["messages"]
        assert len(middleware.session(f"langchain-{first[0].id}").history()) == len(second) == 8


def test_an_agent_that_is_a_tool_of_another_has_a_session_of_its_own() -> None:
    def script(seen: Seen) -> Answer:
        last = seen.body["messages"][-1]
        if last["role"] == "tool":
            return Say("Done.")
        inner = "inner" in str(last["content"])
        name, given = ("read_log", {"service": "mail", "day": 1}) if inner else ("ask", {"what": "inner"})
        return CallTools((Call(name, given),))

    with played("gpt-5.5", script=script) as play:
        middleware = LowwaterMiddleware(play.lowwater)
        chat = chat_for(play.provider, play.model)
        helper: Any = create_agent(chat, [read_log], middleware=[middleware])

        def ask(what: str) -> str:
            """Ask the helper."""
            return str(helper.invoke({"messages": [{"role": "user", "content": what}]})["messages"][-1].text)

        outer: Any = create_agent(chat, [ask], middleware=[middleware], checkpointer=InMemorySaver())
        outer.invoke({"messages": [{"role": "user", "content": "outer"}]}, CONFIG)
        assert play.provider.refusals == ()
        history = middleware.session(THREAD).history()
        assert [message["role"] for message in history] == ["user", "assistant", "tool", "assistant"]
        assert "inner" not in str(history[0])


def test_a_window_smaller_than_believed_is_learned_from_the_refusal() -> None:
    with played("gpt-5.5", learned=False) as play:
        middleware = LowwaterMiddleware(play.lowwater)
        agent: Any = create_agent(
            chat_for(play.provider, play.model),
            [read_log],
            middleware=[middleware],
            checkpointer=InMemorySaver(),
        )
        for step in range(1, TURNS + 1):
            agent.invoke(asked(step), CONFIG)
        assert len(play.provider.refusals) == 1
        assert middleware.session(THREAD).status().context == WINDOW


def test_another_failure_is_raised_and_leaves_the_session_as_it_was() -> None:
    with played("gpt-5.5") as play:
        agent = agent_for(play)
        agent.invoke(asked(1), CONFIG)
        before = len(play.lowwater.session(THREAD).history())
    with pytest.raises(Exception, match=r"[Cc]onnection"):
        agent.invoke(asked(2), CONFIG)
    assert len(play.lowwater.session(THREAD).history()) == before + 1


def test_the_session_goes_on_with_the_model_that_is_asked() -> None:
    with played("gpt-5.5") as play:
        middleware, checkpointer = LowwaterMiddleware(play.lowwater), InMemorySaver()
        for step, model in enumerate(("gpt-5.5", "gpt-5-mini", "gpt-5.5"), start=1):
            chat = chat_for(play.provider, model)
            agent: Any = create_agent(chat, [read_log], middleware=[middleware], checkpointer=checkpointer)
            agent.invoke(asked(step), CONFIG)
            assert internals(middleware.session(THREAD)).route.model == model
            assert middleware.session(THREAD).about.source == "langchain"
        assert play.provider.refusals == ()


@pytest.mark.moves_prefix(reason="a rewind brings back what was compacted")
def test_checkpoints_and_rewind_are_reached_through_the_session() -> None:
    with played("gpt-5.5") as play:
        agent = agent_for(play)
        for step in range(1, TURNS + 1):
            agent.invoke(asked(step), CONFIG)
        session = play.lowwater.session(THREAD)
        session.checkpoint("here")
        compacted = session.status().prompt
        session.rewind("before-compaction-1")
        assert session.status().prompt > compacted
        agent.invoke(asked(TURNS + 1), CONFIG)
        assert {"here", "before-compaction-1"} <= {each.name for each in session.checkpoints()}
        assert play.provider.refusals == ()


@pytest.mark.moves_prefix(reason="the thread goes on from where it was before the last compaction")
def test_a_thread_that_goes_on_from_an_earlier_checkpoint_of_its_own() -> None:
    with played("gpt-5.5") as play:
        agent = agent_for(play)
        for step in range(1, TURNS + 1):
            agent.invoke(asked(step), CONFIG)
        ended = [state for state in agent.get_state_history(CONFIG) if not state.next]
        earlier = ended[4]
        done = agent.invoke(asked(TURNS + 1), earlier.config)
        assert play.provider.refusals == ()
        assert len(done["messages"]) == len(earlier.values["messages"]) + 4
        shown = play.lowwater.session(THREAD).view()
        assert question(TURNS) not in str(shown)
        assert question(TURNS + 1) in str(shown)


def test_a_process_that_comes_later_goes_on_with_the_thread(tmp_path: Any) -> None:
    store, checkpointer = f"sqlite:///{tmp_path / 'kept.db'}", InMemorySaver()
    with played("gpt-5.5") as play:
        for step in range(1, TURNS + 1):
            keeper = Lowwater(model=play.model, store=store, sinks=[play.sink], settings=SETTINGS)
            keeper.session(THREAD).learn_context_length(WINDOW)
            agent: Any = create_agent(
                chat_for(play.provider, play.model),
                [read_log],
                system_prompt=SYSTEM,
                middleware=[LowwaterMiddleware(keeper)],
                checkpointer=checkpointer,
            )
            agent.invoke(asked(step), CONFIG)
            keeper.close()
        play.lowwater = Lowwater(model=play.model, store=store)
        play.check(kept=kept(agent), session=THREAD, keyed=play.model.startswith("gpt"))
        play.lowwater.close()
