"""Both official SDKs send long compacted sessions to the rules-checking provider, and not one request is refused."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from msgspec import Struct

from lowwater.core.messages import Message
from lowwater.core.policies.registry import POLICIES
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.request import PreparedRequest
from lowwater.session.session import Session
from lowwater.testing.fakes import RecordingSink
from lowwater.testing.provider import Answer, Call, CallTools, Provider, Say, Think
from tests.generated import Kind, generate_session
from tests.sdk_clients import anthropic_client, async_anthropic_client, async_openai_client, openai_client

SAMPLED = ("runway", "guarded")


def policies(*sampled: str) -> list[Any]:
    """Return all policies, those that are not named here for `make test-full` only."""
    return [
        pytest.param(policy.name, marks=() if policy.name in sampled else pytest.mark.full)
        for policy in POLICIES
    ]


WINDOW = 20_000
ADAPTIVE = {"type": "adaptive"}
BUDGET = {"type": "enabled", "budget_tokens": 1_024}
THINKING = {
    "bound adaptive": ("claude-opus-5-5", ADAPTIVE, "runway"),
    "bound budget": ("claude-opus-5-5", BUDGET, "guarded"),
    "unbound budget": ("claude-haiku-4-5", BUDGET, "runway"),
    "bound without a word": ("claude-haiku-5-5", None, "guarded"),
}
"""How a model thinks, and the policy that `make test` tries with it."""
MODELS = {"anthropic": "claude-haiku-4-5", "openai_chat": "gpt-5.5"}


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


def new_messages(turn: Turn, form: str) -> list[Any]:
    """Return what a client adds before a call, in the format of its provider."""
    if form == "openai_chat":
        outputs: list[Any] = [
            {"role": "tool", "tool_call_id": call, "content": output} for call, output in turn.outputs.items()
        ]
    else:
        results = [
            {"type": "tool_result", "tool_use_id": call, "content": output}
            for call, output in turn.outputs.items()
        ]
        outputs = [{"role": "user", "content": results}] if results else []
    return [*outputs, *({"role": "user", "content": text} for text in turn.said)]


def around(told: Story, form: str) -> dict[str, Any]:
    """Return system prompt and tools as `prepare` takes them; Chat Completions has the system prompt among the messages."""
    system = {"system": told.system} if form == "anthropic" else {}
    return {**system, "tools": told.tools[form]}


def opening(told: Story, form: str) -> list[Any]:
    return [{"role": "system", "content": told.system}] if form == "openai_chat" else []


def ask(client: Any, model: str, request: PreparedRequest) -> Any:
    """Send a request; what an asynchronous client returns has to be awaited."""
    if isinstance(client, anthropic.Anthropic | anthropic.AsyncAnthropic):
        return client.messages.create(model=model, max_tokens=2_000, **request.as_anthropic())
    return client.chat.completions.create(model=model, **request.as_openai())


def check(provider: Provider, told: Story, session: Session, sink: RecordingSink) -> None:
    assert provider.refusals == ()
    assert len(provider.requests) == len(told.turns)
    assert sink.compactions
    assert len(internals(session).ledger.entries) > len(told.turns)


@pytest.mark.parametrize("form", MODELS)
@pytest.mark.parametrize("policy", policies(*SAMPLED))
def test_an_sdk_with_the_list_its_user_keeps(policy: str, form: str) -> None:
    told = story("coding", seed=11, tokens=32_000)
    session, sink = opened(policy, MODELS[form])
    messages = opening(told, form)
    client_for: Any = anthropic_client if form == "anthropic" else openai_client
    with provider_for(told) as provider, client_for(provider) as client:
        for turn in told.turns:
            messages += new_messages(turn, form)
            response = ask(client, MODELS[form], session.prepare(messages, **around(told, form)))
            session.record(response)
            messages.append(
                {"role": "assistant", "content": response.content}
                if form == "anthropic"
                else response.choices[0].message
            )
    check(provider, told, session, sink)


@pytest.mark.parametrize("form", MODELS)
@pytest.mark.parametrize("policy", policies("runway"))
def test_an_async_sdk_whose_user_appends(policy: str, form: str) -> None:
    told = story("research", seed=14, tokens=32_000)
    session, sink = opened(policy, MODELS[form])
    session.append(opening(told, form))

    async def talk(provider: Provider) -> None:
        client_for: Any = async_anthropic_client if form == "anthropic" else async_openai_client
        async with client_for(provider) as client:
            for turn in told.turns:
                session.append(new_messages(turn, form))
                request = await session.aprepare(**around(told, form))
                session.record(await ask(client, MODELS[form], request))

    with provider_for(told) as provider:
        asyncio.run(talk(provider))
    check(provider, told, session, sink)


@pytest.mark.parametrize(
    ("model", "thinking", "policy"),
    [
        pytest.param(
            model,
            thinking,
            policy.name,
            id=f"{name}-{policy.name}",
            marks=() if policy.name == sampled else pytest.mark.full,
        )
        for name, (model, thinking, sampled) in THINKING.items()
        for policy in POLICIES
    ],
)
def test_thinking_models_whose_user_appends(model: str, thinking: Any, policy: str) -> None:
    told = story("coding", seed=13, tokens=24_000, thinks=True)
    session, sink = opened(policy, model)
    with provider_for(told) as provider, anthropic_client(provider) as client:
        for turn in told.turns:
            session.append(new_messages(turn, "anthropic"))
            request = session.prepare(**around(told, "anthropic"), max_tokens=2_000, thinking=thinking)
            session.record(ask(client, model, request))
    check(provider, told, session, sink)


@pytest.mark.parametrize("way", ["to chat", "to messages"])
def test_a_session_moves_to_the_other_provider_in_the_middle(way: str) -> None:
    told = story("coding", seed=16, tokens=32_000)
    form, other = ("anthropic", "openai_chat") if way == "to chat" else ("openai_chat", "anthropic")
    session, sink = opened("runway", MODELS[form])
    session.append(opening(told, form))
    with (
        provider_for(told) as provider,
        anthropic_client(provider) as claude,
        openai_client(provider) as gpt,
    ):
        clients = {"anthropic": claude, "openai_chat": gpt}
        for number, turn in enumerate(told.turns):
            answering = form if number < len(told.turns) // 2 else other
            if number == len(told.turns) // 2:
                session.use(MODELS[other])
                session.learn_context_length(WINDOW)
            session.append(new_messages(turn, form))
            request = session.prepare(**around(told, form))
            session.record(ask(clients[answering], MODELS[answering], request))
    check(provider, told, session, sink)
