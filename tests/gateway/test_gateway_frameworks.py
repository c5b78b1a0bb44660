"""Agents of frameworks through the gateway: nothing but a base URL tells them of it."""

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from bench.peers.environment import python_with
from lowwater.settings import CompressionSettings, Settings
from lowwater.testing.provider import Answer, Call, CallTools, Say, Seen
from tests.gateway.conftest import Starting, Through
from tests.gateway.request_prefixes import moves
from tests.gateway.scripted_work import is_result, listed_in
from tests.sdk_clients import async_anthropic_client, async_openai_client

SIZES = pytest.mark.parametrize(
    ("lines", "compacts"), [(3, False), (400, True)], ids=["small", "compacted in between"]
)
COVERING = pytest.mark.parametrize(
    ("api", "streams", "lines", "compacts"),
    [
        ("messages", False, 3, False),
        ("messages", True, 400, True),
        ("chat", True, 3, False),
        ("chat", False, 400, True),
        ("responses", False, 3, False),
        ("responses", True, 400, True),
    ],
)
"""Each form whole and streamed, small and compacted in between."""
CEILING = Settings(compression=CompressionSettings(max_view_tokens=9_000, protect_last_n=4))
QUESTIONS = 6
LITELLM = "litellm[proxy]==1.106.2"
LITELLM_WORKER = Path(__file__).with_name("litellm_worker.py")


class Reader:
    """Reads two parts at once for each question, then one more, and says what it saw."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, seen: Seen) -> Answer:
        self.asked += 1
        if is_result(listed_in(seen)[-1]) and self.asked % 3 == 0:
            return Say(text=f"Seen {self.asked}.")
        paths = ("a", "b") if self.asked % 3 == 1 else ("c",)
        return CallTools(
            calls=tuple(Call(name="read", arguments={"path": f"{path}{self.asked}"}) for path in paths)
        )


def reader(lines: int) -> Any:
    def read(path: str) -> str:
        """Read a part of the program."""
        return f"what stands in {path}\n" * lines

    return read


def started(start: Starting, *, compacts: bool) -> Through:
    return start(Reader(), **({"settings": CEILING} if compacts else {}))


def check(through: Through, *, compacts: bool) -> None:
    assert through.provider.refusals == ()
    (session,) = through.store.sessions()
    assert session.turns == 3 * QUESTIONS
    assert (session.compactions >= 1) == compacts
    assert moves(through.provider.requests) == session.compactions


def langchain_model(name: str, url: str) -> Any:
    given: dict[str, Any] = {"api_key": "k", "max_retries": 0}
    if name == "messages":
        return ChatAnthropic(model="claude-opus-4-5", base_url=url, max_tokens=2_000, **given)  # type: ignore[call-arg]  # pydantic's aliases
    given |= {"store": False} if name == "responses" else {}
    return ChatOpenAI(
        model="gpt-5.5",
        base_url=f"{url}/v1",
        use_responses_api=name == "responses",
        stream_usage=True,
        **given,
    )


@COVERING
@pytest.mark.moves_prefix(reason="a ceiling compacts the larger ones")
def test_a_langchain_agent(start: Starting, api: str, streams: bool, lines: int, compacts: bool) -> None:
    through = started(start, compacts=compacts)
    agent: Any = create_agent(
        langchain_model(api, through.url),
        [reader(lines)],
        system_prompt="You read.",
        checkpointer=InMemorySaver(),
    )
    config: Any = {"configurable": {"thread_id": "one"}}
    for question in range(QUESTIONS):
        asked = {"messages": [{"role": "user", "content": f"Question {question}?"}]}
        if streams:
            said = "".join(
                piece.text for piece, _ in agent.stream(asked, config, stream_mode="messages") if piece.text
            )
        else:
            said = agent.invoke(asked, config)["messages"][-1].text
        assert f"Seen {3 * (question + 1)}." in said
    check(through, compacts=compacts)


def pydantic_model(name: str, url: str) -> tuple[Any, Any]:
    if name == "messages":
        claude = async_anthropic_client(url)
        return AnthropicModel("claude-opus-4-5", provider=AnthropicProvider(anthropic_client=claude)), claude
    client = async_openai_client(url)
    made: Any = OpenAIChatModel if name == "chat" else OpenAIResponsesModel
    return made("gpt-5.5", provider=OpenAIProvider(openai_client=client)), client


@COVERING
@pytest.mark.moves_prefix(reason="a ceiling compacts the larger ones")
def test_a_pydantic_ai_agent(start: Starting, api: str, streams: bool, lines: int, compacts: bool) -> None:
    through = started(start, compacts=compacts)

    async def talk() -> None:
        model, client = pydantic_model(api, through.url)
        async with client:
            agent = Agent(model, system_prompt="You read.", tools=[reader(lines)])
            history: Any = None
            for question in range(QUESTIONS):
                asked = f"Question {question}?"
                if streams:
                    async with agent.run_stream(asked, message_history=history) as result:
                        said = await result.get_output()
                        history = result.all_messages()
                else:
                    done = await agent.run(asked, message_history=history)
                    said, history = done.output, done.all_messages()
                assert said == f"Seen {3 * (question + 1)}."

    asyncio.run(talk())
    check(through, compacts=compacts)


@pytest.mark.full
@SIZES
@pytest.mark.parametrize("model", ["anthropic/claude-opus-4-5", "openai/gpt-5.5", "openai/responses/gpt-5.5"])
@pytest.mark.moves_prefix(reason="a ceiling compacts the larger ones")
def test_litellm(start: Starting, model: str, lines: int, compacts: bool) -> None:
    through = started(start, compacts=compacts)
    python = python_with("litellm", LITELLM)
    done = subprocess.run(
        [str(python), str(LITELLM_WORKER), model, through.url, str(QUESTIONS), str(lines)],
        env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    assert json.loads(done.stdout.splitlines()[-1]) == [
        f"Seen {3 * each}." for each in range(1, QUESTIONS + 1)
    ]
    check(through, compacts=compacts)
