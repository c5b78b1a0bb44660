"""The official `openai` SDK talks to the provider's Responses API: whole sessions, streamed and not, and its memory."""

import asyncio
from collections.abc import Callable
from typing import Any

import openai
import pytest

from lowwater.testing.provider import Answer, Call, CallTools, CutOff, Provider, Refuse, Say, Think
from tests.sdk_clients import async_openai_client, openai_client

TOOLS: list[Any] = [
    {"type": "function", "name": name, "parameters": {"type": "object"}, "strict": False}
    for name in ("bash", "look")
] + [{"type": "custom", "name": "patch"}]
SCRIPT: list[Answer] = [
    Think("First see.", CallTools((Call("bash", {"command": "ls -la src"}), Call("look")), "Two at once.")),
    CallTools((Call("patch", {"input": "*** Begin Patch"}),)),
    Think("That is all.", Say("There is a plot in src."), redacted=True),
]
SEALED: Any = {"store": False, "include": ["reasoning.encrypted_content"]}
IMAGE: Any = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "auto"}

Turn = Callable[..., Any]


def created(provider: Provider, **request: Any) -> Any:
    with openai_client(provider) as client:
        return client.responses.create(model="gpt-5.5", **request)


def streamed(provider: Provider, **request: Any) -> Any:
    with openai_client(provider) as client, client.responses.stream(model="gpt-5.5", **request) as stream:
        return stream.get_final_response()


def in_colour(call: Callable[[openai.AsyncOpenAI], Any], provider: Provider) -> Any:
    async def run() -> Any:
        async with async_openai_client(provider) as client:
            return await call(client)

    return asyncio.run(run())


def created_async(provider: Provider, **request: Any) -> Any:
    return in_colour(lambda client: client.responses.create(model="gpt-5.5", **request), provider)


def streamed_async(provider: Provider, **request: Any) -> Any:
    async def final(client: openai.AsyncOpenAI) -> Any:
        async with client.responses.stream(model="gpt-5.5", **request) as stream:
            return await stream.get_final_response()

    return in_colour(final, provider)


ALL_WAYS = pytest.mark.parametrize("turn", [created, streamed, created_async, streamed_async])
TWO_WAYS = pytest.mark.parametrize("turn", [created, streamed_async])


def outputs(response: Any) -> list[Any]:
    calls = [item for item in response.output if item.type.endswith("_call")]
    return [
        {"type": f"{call.type}_output", "call_id": call.call_id, "output": "src: plot.png"} for call in calls
    ]


def as_sent(response: Any) -> list[Any]:
    return [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in response.output]


@ALL_WAYS
def test_a_session_that_the_client_keeps(turn: Turn) -> None:
    items: list[Any] = [{"role": "user", "content": [{"type": "input_text", "text": "What is this?"}, IMAGE]}]
    answers: list[Any] = []
    with Provider(SCRIPT) as provider:
        for _ in SCRIPT:
            answers.append(turn(provider, input=items, instructions="Be brief.", tools=TOOLS, **SEALED))
            items += [*as_sent(answers[-1]), *outputs(answers[-1])]
        turn(provider, input=[*items, {"role": "user", "content": "Thanks."}], tools=TOOLS, **SEALED)
    assert provider.refusals == ()
    first, second, third = answers
    assert [item.type for item in first.output] == ["reasoning", "message", "function_call", "function_call"]
    assert first.output[0].summary[0].text == "First see."
    assert first.output[0].encrypted_content
    assert first.output_text == "Two at once."
    assert [call.arguments for call in first.output[2:]] == ['{"command":"ls -la src"}', "{}"]
    assert (second.output[0].type, second.output[0].input) == ("custom_tool_call", "*** Begin Patch")
    assert (third.output[0].summary, third.output_text) == ([], "There is a plot in src.")
    assert third.usage.output_tokens_details.reasoning_tokens == 3


@TWO_WAYS
def test_a_session_that_the_provider_keeps(turn: Turn) -> None:
    with Provider(SCRIPT) as provider:
        response = turn(provider, input="What is this?", tools=TOOLS)
        for _ in SCRIPT[1:]:
            response = turn(provider, input=outputs(response), previous_response_id=response.id, tools=TOOLS)
    assert provider.refusals == ()
    assert response.output_text == "There is a plot in src."
    assert response.usage.input_tokens > 20, "everything before is part of the prompt"


@pytest.mark.parametrize(
    ("turn", "answer", "status", "reason", "part"),
    [
        (created, Say("All done."), "completed", None, "output_text"),
        (streamed_async, Say("All done."), "completed", None, "output_text"),
        (created, CutOff("All do"), "incomplete", "max_output_tokens", "output_text"),
        (created, Refuse("I will not."), "completed", None, "refusal"),
        (streamed_async, Refuse("I will not."), "completed", None, "refusal"),
    ],
)
def test_how_an_answer_ends(turn: Turn, answer: Any, status: str, reason: str | None, part: str) -> None:
    with Provider([answer]) as provider:
        got = turn(provider, input="x" * 40)
    assert got.status == status
    assert (got.incomplete_details.reason if got.incomplete_details else None) == reason
    assert [content.type for content in got.output[0].content] == [part]
    assert (got.usage.input_tokens, got.usage.total_tokens) == (10, 10 + got.usage.output_tokens)


def test_a_prompt_that_is_too_long_is_refused_in_its_stream() -> None:
    with Provider(default_context=10) as provider:
        with pytest.raises(openai.BadRequestError) as caught:
            created(provider, input="x" * 400)
        with pytest.raises(openai.APIError, match="exceeds the context window"):
            streamed(provider, input="x" * 400)
    assert caught.value.code == "context_length_exceeded"
    assert [seen.status for seen in provider.requests] == [400, 200]


def test_a_window_is_compacted_and_counted() -> None:
    items: list[Any] = [
        {"role": "user", "content": "x" * 400},
        {"role": "assistant", "content": "y" * 400},
        {"role": "user", "content": "z"},
    ]
    with Provider([Say("All of it."), Say("On we go.")]) as provider, openai_client(provider) as client:
        compacted = client.responses.compact(model="gpt-5.5", input=items)
        kept: Any = [item.model_dump(exclude_none=True, warnings=False) for item in compacted.output]
        counted = client.responses.input_tokens.count(model="gpt-5.5", input=kept)
        answer = client.responses.create(model="gpt-5.5", input=kept)
    assert [item["type"] for item in kept] == ["message", "message", "compaction"]
    assert answer.usage is not None
    assert counted.input_tokens == answer.usage.input_tokens
    assert provider.refusals == ()
