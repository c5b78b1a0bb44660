"""The official `anthropic` SDK talks to the provider: whole sessions, streamed and not, and its exceptions."""

import asyncio
from collections.abc import Callable
from typing import Any

import anthropic
import pytest

from lowwater.testing.provider import Answer, Call, CallTools, CutOff, Fail, Provider, Refuse, Say, Think
from tests.sdk_clients import anthropic_client, async_anthropic_client

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
TOOLS = [{"name": name, "input_schema": {"type": "object", "properties": {}}} for name in ("bash", "look")]
SCRIPT: list[Answer] = [
    Think(
        "First see what there is.",
        CallTools((Call("bash", {"command": "ls -la src"}), Call("look")), "Two at once."),
    ),
    Think("One more look.", CallTools((Call("look", {"path": "plot.png", "zoom": [1, 2.5]}),))),
    Say("There is a plot in src."),
    Think("A new question.", Say("You are welcome."), redacted=True),
]

Turn = Callable[..., Any]


def created(provider: Provider, **request: Any) -> Any:
    with anthropic_client(provider) as client:
        return client.messages.create(**request)


def streamed(provider: Provider, **request: Any) -> Any:
    with anthropic_client(provider) as client, client.messages.stream(**request) as stream:
        return stream.get_final_message()


def created_async(provider: Provider, **request: Any) -> Any:
    async def run() -> Any:
        async with async_anthropic_client(provider) as client:
            return await client.messages.create(**request)

    return asyncio.run(run())


def streamed_async(provider: Provider, **request: Any) -> Any:
    async def run() -> Any:
        async with async_anthropic_client(provider) as client, client.messages.stream(**request) as stream:
            return await stream.get_final_message()

    return asyncio.run(run())


ALL_WAYS = pytest.mark.parametrize("turn", [created, streamed, created_async, streamed_async])
TWO_WAYS = pytest.mark.parametrize("turn", [created, streamed_async])


def results(message: Any) -> list[Any]:
    return [
        {"type": "tool_result", "tool_use_id": block.id, "content": [{"type": "text", "text": "src:"}, IMAGE]}
        for block in message.content
        if block.type == "tool_use"
    ]


@ALL_WAYS
def test_a_session_with_parallel_tools_thinking_and_images(turn: Turn) -> None:
    request: dict[str, Any] = {
        "model": "claude-opus-5-5",
        "max_tokens": 4_000,
        "tools": TOOLS,
        "thinking": {"type": "adaptive"},
    }
    messages: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "What is this?"}, IMAGE]}]
    with Provider(SCRIPT) as provider:
        answer = turn(provider, messages=messages, **request)
        while answer.stop_reason == "tool_use":
            messages += [
                {"role": "assistant", "content": answer.content},
                {"role": "user", "content": results(answer)},
            ]
            answer = turn(provider, messages=messages, **request)
        messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": "Thanks."}]
        last = turn(provider, messages=messages, **request)
        messages += [{"role": "assistant", "content": last.content}, {"role": "user", "content": "Bye."}]
        turn(provider, messages=messages, **request)
        assert provider.refusals == ()
    first = messages[1]["content"]
    assert [block.type for block in first] == ["thinking", "text", "tool_use", "tool_use"]
    assert first[0].thinking == "First see what there is."
    assert (first[2].name, first[2].input) == ("bash", {"command": "ls -la src"})
    assert first[3].input == {}
    assert messages[3]["content"][1].input == {"path": "plot.png", "zoom": [1, 2.5]}
    assert answer.content[0].text == "There is a plot in src."
    assert last.content[0].type == "redacted_thinking"
    assert [seen.answer for seen in provider.requests] == [*SCRIPT, Say("ok")]


@TWO_WAYS
@pytest.mark.parametrize(
    ("answer", "reason", "text"),
    [
        pytest.param(Say("All done."), "end_turn", "All done.", id="said"),
        pytest.param(CutOff("All do"), "max_tokens", "All do", id="cut off"),
        pytest.param(Refuse("I will not."), "refusal", "I will not.", id="refused"),
    ],
)
def test_how_an_answer_ends(turn: Turn, answer: Any, reason: str, text: str) -> None:
    with Provider([answer]) as provider:
        message = turn(
            provider,
            model="claude-opus-5-5",
            max_tokens=50,
            messages=[{"role": "user", "content": "x" * 40}],
        )
    assert (message.stop_reason, message.content[0].text) == (reason, text)
    assert (message.usage.input_tokens, message.usage.output_tokens) == (10, -(-len(text) // 4))


def test_models_are_listed() -> None:
    with (
        Provider(context_lengths={"claude-opus-5-5": 1_000_000, "gpt-6": 400_000}) as provider,
        anthropic_client(provider) as client,
    ):
        listed = list(client.models.list())
    assert [(model.id, model.max_input_tokens) for model in listed] == [
        ("claude-opus-5-5", 1_000_000),
        ("gpt-6", 400_000),
    ]


@TWO_WAYS
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        pytest.param(Fail(429, "rate_limit_error", "Slow down."), anthropic.RateLimitError, id="429"),
        pytest.param(Fail(500, "api_error", "Sorry."), anthropic.InternalServerError, id="500"),
        pytest.param(Fail(529, "overloaded_error", "Overloaded"), anthropic.APIStatusError, id="529"),
        pytest.param(Fail(403, "permission_error", "No."), anthropic.PermissionDeniedError, id="403"),
    ],
)
def test_a_scripted_failure_raises_its_exception(turn: Turn, answer: Fail, error: type[Exception]) -> None:
    with Provider([answer]) as provider, pytest.raises(error) as caught:
        turn(provider, model="claude-opus-5-5", max_tokens=9, messages=[{"role": "user", "content": "x"}])
    said: Any = caught.value
    assert said.body["error"] == {"type": answer.type, "message": answer.message}


def test_binding_controls_travel_with_the_beta_client() -> None:
    messages: Any = [{"role": "user", "content": "One."}]
    request: Any = {
        "model": "claude-fable-5-1",
        "max_tokens": 100,
        "betas": ["thinking-binding-controls-2026-08-01"],
        "thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}},
    }
    with (
        Provider([Think("Hm.", Say("Two."))]) as provider,
        anthropic_client(provider) as client,
    ):
        first = client.beta.messages.create(messages=messages, **request)
        changed: Any = [{"role": "user", "content": "Uno."}, {"role": "assistant", "content": first.content}]
        second = client.beta.messages.create(messages=[*changed, {"role": "user", "content": "?"}], **request)
    assert second.input_transformations is not None
    assert [(found.type, found.path) for found in second.input_transformations] == [
        ("thinking_dropped", "messages.1.content.0")
    ]
