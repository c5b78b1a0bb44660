"""Long sessions through the Responses API of the official `openai` SDK: compacted, and never refused."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from lowwater.core.entries import Rewound
from lowwater.core.formats.streams import stream_for
from lowwater.core.policies.registry import POLICIES
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.session import Session
from lowwater.settings import CompressionSettings, Settings
from lowwater.testing.fakes import RecordingSink
from lowwater.testing.invariants import Protected, Watch
from lowwater.testing.provider import Answer, Call, CallTools, Provider, Say, Think
from lowwater.testing.provider.prompt import Sealing
from tests.sdk_clients import async_openai_client, openai_client

SAMPLED = {("runway", "gpt-5.5"), ("prune-naive", "gpt-5.6"), ("hermes-classic", "gpt-5.5")}
A_SAMPLE_OF_POLICIES = pytest.mark.parametrize(
    ("policy", "model"),
    [
        pytest.param(policy.name, model, marks=() if (policy.name, model) in SAMPLED else pytest.mark.full)
        for policy in POLICIES
        for model in ("gpt-5.5", "gpt-5.6")
        if policy.name != "never"
    ],
)
WINDOW = 14_000
STEPS = 40
ASKED = {"role": "user", "content": "Make every part pass, one after the other."}
SYSTEM = "You are a careful engineer.\n" + "\n".join(f"Rule {n}: be exact about {n}." for n in range(40))
TOOLS: list[Any] = [
    {"type": "function", "name": "bash", "parameters": {"type": "object"}, "strict": False},
    {"type": "custom", "name": "apply_patch"},
]
SEALED: Any = {"store": False, "include": ["reasoning.encrypted_content"]}


def answers() -> Iterator[Answer]:
    """Think and call, now and then several tools at once or one that takes free text, now and then only say something."""
    for step in range(STEPS):
        if step % 8 == 6:
            yield Think(f"Part {step} is done. " * 10, Say(f"Part {step} passes."))
            continue
        calls = [Call("bash", {"command": f"make part_{step}_{each}"}) for each in range(1 + step % 3)]
        if step % 5 == 1:
            calls.append(Call("apply_patch", {"input": f"*** Update File: part_{step}.py"}))
        made = CallTools(tuple(calls), "Next one." if step % 2 else "")
        yield Think(f"Now to part {step}. " * 20, made) if step % 4 else made


def output_of(call: Any) -> dict[str, Any]:
    lines = "\n".join(f"src/part_{line}.py:{line}: value_{line} = {line * 31}" for line in range(40))
    return {"type": f"{call.type}_output", "call_id": call.call_id, "output": f"{call.name}\n{lines}"}


def next_items(response: Any) -> list[Any]:
    """Return what a client adds behind an answer: tool outputs, or the user's next words."""
    calls = [item for item in response.output if item.type in ("function_call", "custom_tool_call")]
    return [output_of(call) for call in calls] or [{"role": "user", "content": "Go on."}]


def opened(policy: str, model: str) -> tuple[Session, RecordingSink]:
    sink = RecordingSink()
    settings = Settings(compression=CompressionSettings(protect_first_n=2, protect_last_n=6))
    session = Lowwater(model=model, policy=policy, settings=settings, sinks=[sink]).session("responses")
    session.learn_context_length(WINDOW)
    return session, sink


def check(provider: Provider, session: Session, sink: RecordingSink) -> None:
    assert provider.refusals == ()
    assert len(provider.requests) == STEPS
    assert sink.compactions
    assert not any(isinstance(entry, Rewound) for entry in internals(session).ledger.entries), (
        "every list was known again"
    )


@A_SAMPLE_OF_POLICIES
def test_a_client_that_keeps_its_list_of_items(policy: str, model: str) -> None:
    session, sink = opened(policy, model)
    protected = Protected(first=2, last=6, notes_in_system=True)
    watch = Watch(protected)
    items: list[Any] = [ASKED]
    with Provider(answers(), default_context=WINDOW) as provider, openai_client(provider) as client:
        for _ in range(STEPS):
            request = session.prepare(items, system=SYSTEM, tools=TOOLS, max_tokens=1_000)
            watch.see(internals(session).ledger, request.messages)
            response = client.responses.create(
                model=model, max_output_tokens=1_000, **SEALED, **request.as_responses()
            )
            session.record(response)
            items += [*response.output, *next_items(response)]
    check(provider, session, sink)
    totals = session.status().totals
    assert totals.cache_read > 0.3 * totals.prompt


def test_a_session_that_is_appended_to_and_streamed_by_the_async_sdk() -> None:
    session, sink = opened("runway", "gpt-5.5")

    async def play(provider: Provider) -> None:
        async with async_openai_client(provider) as client:
            session.append(ASKED)
            for _ in range(STEPS):
                request = await session.aprepare(system=SYSTEM, tools=TOOLS)
                stream = stream_for("openai_responses")
                async with client.responses.with_streaming_response.create(
                    model="gpt-5.5", stream=True, **SEALED, **request.as_responses()
                ) as response:
                    async for chunk in response.iter_bytes(512):
                        stream.feed(chunk)
                answer = stream.answer()
                assert answer is not None, stream.broken
                await session.arecord(answer)
                told = openai.types.responses.Response.model_validate(json.loads(answer))
                session.append(next_items(told))

    with Provider(answers(), default_context=WINDOW) as provider:
        asyncio.run(play(provider))
    check(provider, session, sink)


def test_what_was_not_touched_leaves_as_it_came() -> None:
    session, sink = opened("prune-naive", "gpt-5.5")
    items: list[Any] = [ASKED]
    with Provider(answers(), default_context=WINDOW) as provider, openai_client(provider) as client:
        for _ in range(STEPS):
            body = session.prepare(items, system=SYSTEM, tools=TOOLS).as_responses()
            known = [
                item if isinstance(item, dict) else item.model_dump(exclude_unset=True) for item in items
            ]
            others = [item for item in body["input"] if item not in known]
            assert all("recall lw:" in json.dumps(item) or "id" not in item for item in others), (
                "edited, or unbound"
            )
            if not sink.compactions:
                assert body["input"] == known
            response = client.responses.create(model="gpt-5.5", **SEALED, **body)
            session.record(response)
            items += [*response.output, *next_items(response)]
    check(provider, session, sink)


def test_a_plain_conversation_is_one_in_any_format() -> None:
    session = Lowwater(model="gpt-5.5").session("plain")
    developer = {"role": "developer", "content": "Be brief."}
    with Provider([Say("Hello.")]) as provider, openai_client(provider) as client:
        request = session.prepare([developer, ASKED])
        assert request.as_responses(cache_key=False) == {"input": [developer, ASKED]}
        response = client.responses.create(model="gpt-5.5", **request.as_responses())
        session.record(response)
        more = [developer, ASKED, *response.output, {"role": "user", "content": "And?"}]
        client.responses.create(model="gpt-5.5", **session.prepare(more).as_responses())
    assert provider.refusals == ()
    assert provider.requests[1].body["input"][:2] == [developer, ASKED]
    assert provider.requests[1].body["input"][2]["content"][0]["text"] == "Hello."
    assert session.status().totals.prompt > 0


def test_a_compaction_that_the_provider_made_in_its_answer_is_followed() -> None:
    session, _ = opened("never", "gpt-5.5")
    words = [{"role": "user", "content": f"Part {number}: " + "x" * 4_000} for number in range(3)]
    compaction = {
        "type": "compaction",
        "id": "cmp_1",
        "encrypted_content": Sealing(b"lowwater").sealed("All parts were made to pass."),
    }
    said = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "On to the next."}],
    }
    answer = {"object": "response", "status": "completed", "model": "gpt-5.5", "output": [compaction, said]}
    session.prepare(words)
    session.record(answer)
    request = session.prepare([*words, compaction, said, {"role": "user", "content": "Go on."}])
    with Provider() as provider, openai_client(provider) as client:
        client.responses.create(model="gpt-5.5", **request.as_responses())
    assert provider.refusals == ()
    items = provider.requests[0].body["input"]
    assert [item for item in items if item.get("type") == "compaction"] == [compaction]
    assert sum("Part 0" in json.dumps(item) for item in items) == 0, (
        "the provider shows its model nothing before it"
    )


def test_a_window_that_the_client_had_compacted_stays_whole() -> None:
    session, _ = opened("never", "gpt-5.5")
    words: list[Any] = [{"role": "user", "content": f"Part {number}: " + "x" * 400} for number in range(3)]
    with (
        Provider([Say("All of it."), Say("On."), Say("And on.")]) as provider,
        openai_client(provider) as client,
    ):
        window = client.responses.compact(model="gpt-5.5", input=words).output
        items: list[Any] = [*window, {"role": "user", "content": "Go on."}]
        for _ in range(2):
            response = client.responses.create(model="gpt-5.5", **session.prepare(items).as_responses())
            session.record(response)
            items += [*response.output, {"role": "user", "content": "Go on."}]
    assert provider.refusals == ()
    kinds = [item.get("type") for item in provider.requests[-1].body["input"]]
    assert kinds[:4] == ["message", "message", "message", "compaction"]
