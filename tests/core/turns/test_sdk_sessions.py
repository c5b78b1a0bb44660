"""Both official SDKs send long compacted sessions to the rules-checking provider, and not one request is refused."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest
from msgspec import Struct

from lowwater.core.messages import Message
from lowwater.core.policies.registry import POLICIES
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.session import Session
from lowwater.testing.fakes import RecordingSink
from lowwater.testing.provider import Answer, Call, CallTools, Provider, Say, Think
from tests.generated import Kind, generate_session

SAMPLED = ("runway", "guarded", "hermes-classic")
A_SAMPLE_OF_POLICIES = pytest.mark.parametrize(
    "policy",
    [
        pytest.param(policy.name, marks=() if policy.name in SAMPLED else pytest.mark.full)
        for policy in POLICIES
    ],
)
WINDOW = 20_000
ADAPTIVE = {"type": "adaptive"}
BUDGET = {"type": "enabled", "budget_tokens": 1_024}
THINKING = pytest.mark.parametrize(
    ("model", "thinking"),
    [
        ("claude-opus-5-5", ADAPTIVE),
        ("claude-opus-5-5", BUDGET),
        ("claude-haiku-4-5", BUDGET),
        ("claude-haiku-5-5", None),
    ],
    ids=["bound adaptive", "bound budget", "unbound budget", "bound without a word"],
)


class Story(Struct, frozen=True):
    """A generated session as a script: what the user says, what tools put out, what the model answers."""

    system: str
    tools: dict[str, Any]
    turns: list["Turn"]

    def answers(self) -> Iterator[Answer]:
        return (turn.answer for turn in self.turns)


class Turn(Struct, frozen=True):
    """What is new before a call, the user's words and tool outputs by call, and the answer to it."""

    said: list[str]
    outputs: dict[str, str]
    answer: Answer


def story(kind: Kind, *, seed: int, tokens: int, thinks: bool = False) -> Story:
    session = generate_session(kind, seed=seed, target_tokens=tokens)
    turns: list[Turn] = []
    said: list[str] = []
    outputs: dict[str, str] = {}
    for message in session.messages:
        if message.role == "assistant":
            turns.append(Turn(said, outputs, answer_of(message, thinks=thinks)))
            said, outputs = [], {}
        elif message.role == "tool":
            outputs |= {result.call_id: result.text for result in message.results}
        else:
            said.append(message.text)
    formats: tuple[Any, ...] = ("anthropic", "openai_chat")
    return Story(session.system, {each: json.loads(session.tools_json(each)) for each in formats}, turns)


def answer_of(message: Message, *, thinks: bool) -> Answer:
    calls = tuple(Call(call.name, json.loads(call.arguments), call.id) for call in message.calls)
    answer: Say | CallTools = CallTools(calls, message.text) if calls else Say(message.text or "Done.")
    thought = " ".join(part.text for part in message.thinking)
    return Think(thought or "Let me see.", answer) if thinks and (thought or calls) else answer


def opened(policy: str, model: str) -> tuple[Session, RecordingSink]:
    sink = RecordingSink()
    session = Lowwater(model=model, policy=policy, sinks=[sink]).session("sdk")
    session.learn_context_length(WINDOW)
    return session, sink


def provider_for(told: Story) -> Provider:
    return Provider(told.answers(), default_context=WINDOW)


def results_for(turn: Turn) -> list[Any]:
    return [
        {"type": "tool_result", "tool_use_id": call, "content": output}
        for call, output in turn.outputs.items()
    ]


def check(provider: Provider, told: Story, session: Session, sink: RecordingSink) -> None:
    assert provider.refusals == ()
    assert len(provider.requests) == len(told.turns)
    assert sink.compactions
    assert len(internals(session).ledger.entries) > len(told.turns)


def anthropic_client(provider: Provider) -> anthropic.Anthropic:
    # Reading certificates takes longer than the rest of a test, and there is no TLS on the loopback.
    http_client = anthropic.DefaultHttpxClient(verify=False)
    return anthropic.Anthropic(
        api_key="k", base_url=provider.anthropic_base_url, max_retries=0, http_client=http_client
    )


def openai_client(provider: Provider) -> openai.OpenAI:
    http_client = openai.DefaultHttpxClient(verify=False)
    return openai.OpenAI(
        api_key="k", base_url=provider.openai_base_url, max_retries=0, http_client=http_client
    )


@A_SAMPLE_OF_POLICIES
def test_the_anthropic_sdk_with_the_list_its_user_keeps(policy: str) -> None:
    told = story("coding", seed=11, tokens=32_000)
    session, sink = opened(policy, "claude-haiku-4-5")
    messages: list[Any] = []
    with provider_for(told) as provider, anthropic_client(provider) as client:
        for turn in told.turns:
            if turn.outputs:
                messages.append({"role": "user", "content": results_for(turn)})
            messages += [{"role": "user", "content": text} for text in turn.said]
            request = session.prepare(messages, system=told.system, tools=told.tools["anthropic"])
            response = client.messages.create(
                model="claude-haiku-4-5", max_tokens=2_000, **request.as_anthropic()
            )
            session.record(response)
            messages.append({"role": "assistant", "content": response.content})
    check(provider, told, session, sink)


@A_SAMPLE_OF_POLICIES
def test_the_openai_sdk_with_the_list_its_user_keeps(policy: str) -> None:
    told = story("coding", seed=12, tokens=32_000)
    session, sink = opened(policy, "gpt-5.5")
    messages: list[Any] = [{"role": "system", "content": told.system}]
    with provider_for(told) as provider, openai_client(provider) as client:
        for turn in told.turns:
            messages += [
                {"role": "tool", "tool_call_id": call, "content": output}
                for call, output in turn.outputs.items()
            ]
            messages += [{"role": "user", "content": text} for text in turn.said]
            request = session.prepare(messages, tools=told.tools["openai_chat"])
            response = client.chat.completions.create(model="gpt-5.5", **request.as_openai())
            session.record(response)
            messages.append(response.choices[0].message)
    check(provider, told, session, sink)


@A_SAMPLE_OF_POLICIES
@THINKING
def test_thinking_models_whose_user_appends(policy: str, model: str, thinking: Any) -> None:
    told = story("coding", seed=13, tokens=24_000, thinks=True)
    session, sink = opened(policy, model)
    with provider_for(told) as provider, anthropic_client(provider) as client:
        for turn in told.turns:
            if turn.outputs:
                session.append([{"role": "user", "content": results_for(turn)}])
            session.append([{"role": "user", "content": text} for text in turn.said])
            request = session.prepare(
                system=told.system, tools=told.tools["anthropic"], max_tokens=2_000, thinking=thinking
            )
            response = client.messages.create(model=model, max_tokens=2_000, **request.as_anthropic())
            session.record(response)
    check(provider, told, session, sink)


@A_SAMPLE_OF_POLICIES
def test_the_async_anthropic_sdk(policy: str) -> None:
    told = story("research", seed=14, tokens=32_000)
    session, sink = opened(policy, "claude-opus-5-5")

    async def talk(provider: Provider) -> None:
        http_client = anthropic.DefaultAsyncHttpxClient(verify=False)
        async with anthropic.AsyncAnthropic(
            api_key="k", base_url=provider.anthropic_base_url, max_retries=0, http_client=http_client
        ) as client:
            for turn in told.turns:
                if turn.outputs:
                    session.append({"role": "user", "content": results_for(turn)})
                session.append([{"role": "user", "content": text} for text in turn.said])
                request = await session.aprepare(system=told.system, tools=told.tools["anthropic"])
                response = await client.messages.create(
                    model="claude-opus-5-5", max_tokens=2_000, **request.as_anthropic()
                )
                session.record(response)

    with provider_for(told) as provider:
        asyncio.run(talk(provider))
    check(provider, told, session, sink)


@A_SAMPLE_OF_POLICIES
def test_the_async_openai_sdk(policy: str) -> None:
    told = story("research", seed=15, tokens=32_000)
    session, sink = opened(policy, "gpt-5.5")
    session.append({"role": "system", "content": told.system})

    async def talk(provider: Provider) -> None:
        http_client = openai.DefaultAsyncHttpxClient(verify=False)
        async with openai.AsyncOpenAI(
            api_key="k", base_url=provider.openai_base_url, max_retries=0, http_client=http_client
        ) as client:
            for turn in told.turns:
                outputs = [
                    {"role": "tool", "tool_call_id": call, "content": output}
                    for call, output in turn.outputs.items()
                ]
                session.append([*outputs, *({"role": "user", "content": text} for text in turn.said)])
                request = await session.aprepare(tools=told.tools["openai_chat"])
                response = await client.chat.completions.create(model="gpt-5.5", **request.as_openai())
                session.record(response)

    with provider_for(told) as provider:
        asyncio.run(talk(provider))
    check(provider, told, session, sink)


@pytest.mark.parametrize("way", ["to chat", "to messages"])
def test_a_session_moves_to_the_other_provider_in_the_middle(way: str) -> None:
    told = story("coding", seed=16, tokens=32_000)
    half = len(told.turns) // 2
    session, sink = opened("runway", "claude-haiku-4-5" if way == "to chat" else "gpt-5.5")
    form = "anthropic" if way == "to chat" else "openai_chat"
    if form == "openai_chat":
        session.append({"role": "system", "content": told.system})
    with (
        provider_for(told) as provider,
        anthropic_client(provider) as claude,
        openai_client(provider) as gpt,
    ):
        for number, turn in enumerate(told.turns):
            if number == half:
                session.use("gpt-5.5" if way == "to chat" else "claude-haiku-4-5")
                session.learn_context_length(WINDOW)
            if form == "anthropic":
                outputs = [{"role": "user", "content": results_for(turn)}] if turn.outputs else []
            else:
                outputs = [
                    {"role": "tool", "tool_call_id": call, "content": output}
                    for call, output in turn.outputs.items()
                ]
            session.append([*outputs, *({"role": "user", "content": text} for text in turn.said)])
            system = told.system if form == "anthropic" else None
            request = session.prepare(system=system, tools=told.tools[form])
            if (number < half) == (way == "to chat"):
                response: Any = claude.messages.create(
                    model="claude-haiku-4-5", max_tokens=2_000, **request.as_anthropic()
                )
            else:
                response = gpt.chat.completions.create(model="gpt-5.5", **request.as_openai())
            session.record(response)
    check(provider, told, session, sink)
