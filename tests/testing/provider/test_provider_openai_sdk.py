"""The official `openai` SDK talks to the provider: whole sessions, streamed and not, and its exceptions."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from lowwater.testing.provider import Answer, Call, CallTools, CutOff, Provider, Refuse, Say, Think
from tests.sdk_clients import async_openai_client, openai_client

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
    for name in ("bash", "look")
]
SCRIPT: list[Answer] = [
    Think("First see.", CallTools((Call("bash", {"command": "ls -la src"}), Call("look")), "Two at once.")),
    CallTools((Call("look", {"path": "plot.png", "zoom": [1, 2.5]}),)),
    Say("There is a plot in src."),
]

Turn = Callable[..., Any]


def created(provider: Provider, **request: Any) -> Any:
    with openai_client(provider) as client:
        return client.chat.completions.create(**request)


def streamed(provider: Provider, **request: Any) -> Any:
    options: Any = {"include_usage": True}
    with (
        openai_client(provider) as client,
        client.chat.completions.stream(stream_options=options, **request) as stream,
    ):
        return stream.get_final_completion()


def created_async(provider: Provider, **request: Any) -> Any:
    async def run() -> Any:
        async with async_openai_client(provider) as client:
            return await client.chat.completions.create(**request)

    return asyncio.run(run())


def streamed_async(provider: Provider, **request: Any) -> Any:
    async def run() -> Any:
        options: Any = {"include_usage": True}
        async with (
            async_openai_client(provider) as client,
            client.chat.completions.stream(stream_options=options, **request) as stream,
        ):
            return await stream.get_final_completion()

    return asyncio.run(run())


ALL_WAYS = pytest.mark.parametrize("turn", [created, streamed, created_async, streamed_async])
TWO_WAYS = pytest.mark.parametrize("turn", [created, streamed_async])


def as_sent(message: Any) -> Any:
    return message.model_dump(exclude_none=True, include={"role", "content", "tool_calls", "refusal"})


@ALL_WAYS
def test_a_session_with_parallel_tools_and_images(turn: Turn) -> None:
    request: dict[str, Any] = {"model": "gpt-5.5", "max_completion_tokens": 4_000, "tools": TOOLS}
    messages: list[Any] = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "What is this?"}, IMAGE]},
    ]
    answers: list[Any] = []
    with Provider(SCRIPT) as provider:
        while not answers or answers[-1].finish_reason == "tool_calls":
            answers.append(turn(provider, messages=messages, **request).choices[0])
            messages.append(as_sent(answers[-1].message))
            for call in answers[-1].message.tool_calls or []:
                messages.append({"role": "tool", "tool_call_id": call.id, "content": "src: plot.png"})
        messages.append({"role": "user", "content": "Thanks."})
        turn(provider, messages=messages, **request)
        assert provider.refusals == ()
    calls = answers[0].message.tool_calls
    assert answers[0].message.content == "Two at once."
    assert [(call.function.name, call.function.arguments) for call in calls] == [
        ("bash", '{"command":"ls -la src"}'),
        ("look", "{}"),
    ]
    assert answers[1].message.tool_calls[0].function.arguments == '{"path":"plot.png","zoom":[1,2.5]}'
    assert answers[2].message.content == "There is a plot in src."
    assert [seen.answer for seen in provider.requests] == [*SCRIPT, Say("ok")]


@TWO_WAYS
@pytest.mark.parametrize(
    ("answer", "reason", "content", "refusal"),
    [
        pytest.param(Say("All done."), "stop", "All done.", None, id="said"),
        pytest.param(Refuse("I will not."), "stop", None, "I will not.", id="refused"),
    ],
)
def test_how_an_answer_ends(
    turn: Turn, answer: Any, reason: str, content: str | None, refusal: str | None
) -> None:
    with Provider([answer]) as provider:
        got = turn(provider, model="gpt-6", messages=[{"role": "user", "content": "x" * 40}])
    choice = got.choices[0]
    assert (choice.finish_reason, choice.message.content or None, choice.message.refusal) == (
        reason,
        content,
        refusal,
    )
    assert (got.usage.prompt_tokens, got.usage.completion_tokens, got.usage.total_tokens) == (10, 3, 13)


def test_an_answer_cut_off_by_the_limit() -> None:
    with Provider([CutOff("All do")]) as provider:
        got = created(provider, model="gpt-6", messages=[{"role": "user", "content": "x"}])
    assert (got.choices[0].finish_reason, got.choices[0].message.content) == ("length", "All do")


@pytest.mark.parametrize(("options", "reported"), [({}, 0), ({"stream_options": {"include_usage": True}}, 1)])
def test_usage_is_streamed_only_when_asked_for(options: Any, reported: int) -> None:
    with (
        Provider() as provider,
        openai_client(provider) as client,
        client.chat.completions.create(
            model="gpt-6", messages=[{"role": "user", "content": "x"}], stream=True, **options
        ) as stream,
    ):
        chunks: list[Any] = list(stream)
    assert len([chunk for chunk in chunks if chunk.usage]) == reported
    assert [chunk.choices == [] for chunk in chunks if chunk.usage] == [True] * reported


def test_models_are_listed() -> None:
    with (
        Provider(context_lengths={"gpt-6": 400_000}) as provider,
        openai_client(provider) as client,
    ):
        assert [model.id for model in client.models.list()] == ["gpt-6"]
