"""Long compacted sessions with marks at their seams go through both official SDKs, and no request is refused."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from lowwater.adapters.models import load_registry
from lowwater.core.cache.marks import Seams, cache_key_for, seams_of
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.request import PreparedRequest
from lowwater.session.session import Session
from lowwater.testing.fakes import RecordingSink
from lowwater.testing.provider import Answer, Call, CallTools, Provider, Say, Seen, Think
from tests.sdk_clients import anthropic_client, openai_client

WINDOW = 20_000
SYSTEM = "You are a careful engineer.\n" + "\n".join(f"Rule {n}: be exact about {n}." for n in range(120))
LINES = "\n".join(f"src/part_{line}.py:{line}: value_{line} = {line * 31}" for line in range(60))
STEPS = 42


def tools(format: str) -> list[Any]:
    schema = {"type": "object", "properties": {"command": {"type": "string"}}}
    if format == "anthropic":
        return [{"name": "bash", "description": "Run a command.", "input_schema": schema}]
    return [{"type": "function", "function": {"name": "bash", "parameters": schema}}]


def answers(*, thinks: bool = False) -> Iterator[Answer]:
    """Mostly one call at a time, every ninth time thirty at once, now and then words."""
    for step in range(STEPS):
        if step % 10 == 7:
            yield Say(f"Step {step} is done.")
            continue
        count = 30 if step % 9 == 4 else 1
        calls = CallTools(tuple(Call("bash", {"command": f"grep {step} {each}"}) for each in range(count)))
        yield Think(f"Thinking of step {step}.", calls) if thinks else calls


class Played(Struct, frozen=True, kw_only=True):
    """What the provider saw of a session, and what it read from its cache."""

    requests: list[Seen]
    compactions: int
    read: float
    """Share of all prompts."""


def played(provider: Provider, session: Session, sink: RecordingSink) -> Played:
    assert provider.refusals == ()
    assert len(provider.requests) == STEPS
    assert sink.compactions
    totals = session.status().totals
    share = totals.cache_read / totals.prompt
    return Played(requests=list(provider.requests), compactions=len(sink.compactions), read=share)


def opened(model: str, policy: str) -> tuple[Session, RecordingSink]:
    sink = RecordingSink()
    session = Lowwater(model=model, policy=policy, sinks=[sink]).session("sdk")
    session.learn_context_length(WINDOW)
    return session, sink


def output(step: int, calls: int) -> str:
    return f"{step}\n{LINES}" if calls == 1 else f"{step} ok"


def at_seams(session: Session, request: PreparedRequest, model: str) -> PreparedRequest:
    key = cache_key_for(load_registry().find(model), session=session.name)
    return replace(request, seams=seams_of(internals(session).ledger, request.messages), cache_key=key)


def play_anthropic(model: str, policy: str, *, thinks: bool = False, seams: bool = True) -> Played:
    session, sink = opened(model, policy)
    with (
        Provider(answers(thinks=thinks), default_context=WINDOW) as provider,
        anthropic_client(provider) as client,
    ):
        session.append({"role": "user", "content": "Look into everything."})
        for step in range(STEPS):
            request = session.prepare(system=SYSTEM, tools=tools("anthropic"))
            request = at_seams(session, request, model) if seams else replace(request, seams=Seams())
            body = request.as_anthropic()
            response = client.messages.create(model=model, max_tokens=2_000, **body)
            session.record(response)
            calls = [block.id for block in response.content if block.type == "tool_use"]
            results = [
                {"type": "tool_result", "tool_use_id": call, "content": output(step, len(calls))}
                for call in calls
            ]
            session.append({"role": "user", "content": results or f"Go on with {step}."})
            if len(calls) > 1:
                session.append({"role": "user", "content": f"And mind {step}."})
    return played(provider, session, sink)


def play_openai(model: str, policy: str) -> Played:
    session, sink = opened(model, policy)
    with Provider(answers(), default_context=WINDOW) as provider, openai_client(provider) as client:
        session.append({"role": "system", "content": SYSTEM})
        session.append({"role": "user", "content": "Look into everything."})
        for step in range(STEPS):
            request = session.prepare(tools=tools("openai_chat"))
            body = at_seams(session, request, model).as_openai()
            response = client.chat.completions.create(model=model, **body)
            session.record(response)
            calls = [call.id for call in response.choices[0].message.tool_calls or ()]
            for call in calls:
                session.append({"role": "tool", "tool_call_id": call, "content": output(step, len(calls))})
            if not calls:
                session.append({"role": "user", "content": f"Go on with {step}."})
    return played(provider, session, sink)


def spelled(seen: Seen, field: str) -> int:
    return json.dumps(seen.body).count(f'"{field}"')


def is_newest_marked(seen: Seen, field: str) -> bool:
    """Whether the newest message that was not the model's own is marked, for the next request to find."""
    told = [message for message in seen.body["messages"] if message["role"] != "assistant"]
    return f'"{field}"' in json.dumps(told[-1])


@pytest.mark.parametrize(
    ("model", "policy", "thinks"),
    [("claude-haiku-4-5", "guarded", False), ("claude-opus-5-5", "runway", True)],
    ids=["passes", "thinking that is bound to its prefix"],
)
def test_anthropic_refuses_nothing_and_sees_four_marks(model: str, policy: str, thinks: bool) -> None:
    seen = play_anthropic(model, policy, thinks=thinks).requests
    assert {spelled(request, "cache_control") for request in seen[3:]} == {4}
    assert all(is_newest_marked(request, "cache_control") for request in seen)


@pytest.mark.parametrize("policy", ["runway", "guarded"])
def test_openai_refuses_nothing_and_sees_three_breakpoints_and_one_key(policy: str) -> None:
    seen = play_openai("gpt-6.1-sol", policy).requests
    assert {spelled(request, "prompt_cache_breakpoint") for request in seen[3:]} == {3}
    assert all(is_newest_marked(request, "prompt_cache_breakpoint") for request in seen)
    assert len({request.body["prompt_cache_key"] for request in seen}) == 1


def test_openrouter_refuses_nothing_and_reads_what_the_tools_said_from_its_cache() -> None:
    """With marks on messages, which it ignores, only the system prompt was cached: 20 % of this session's prompts."""
    played = play_openai("openrouter/anthropic/claude-haiku-5.5", "runway")
    assert {spelled(request, "cache_control") for request in played.requests[3:]} == {4}
    assert all(is_newest_marked(request, "cache_control") for request in played.requests)
    assert played.read > 0.6


def test_openai_before_5_6_sees_the_key_and_no_breakpoint() -> None:
    seen = play_openai("gpt-5.5", "runway").requests
    assert {spelled(request, "prompt_cache_breakpoint") for request in seen} == {0}
    assert all("prompt_cache_key" in request.body for request in seen)


def test_marks_at_the_seams_read_more_from_the_cache_than_the_last_three() -> None:
    """A turn of thirty calls and a word of the user's behind their results is more than a mark looks back on."""
    seamed = play_anthropic("claude-haiku-4-5", "runway")
    last_three = play_anthropic("claude-haiku-4-5", "runway", seams=False)
    assert seamed.compactions == last_three.compactions > 1
    assert seamed.read > last_three.read + 0.06
