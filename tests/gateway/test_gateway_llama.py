"""The official SDKs through the gateway to a real model behind a real server, whose prefix cache is real as well."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import anthropic
import openai
import pytest
from msgspec import Struct

from lowwater.gateway.app import Gateway
from lowwater.gateway.options import GatewayOptions
from lowwater.gateway.server import served
from lowwater.protocols import Store
from lowwater.stores.memory import MemoryStore
from tests.summarizers.test_real_prefix_cache import LlamaServer, llama

pytestmark = pytest.mark.full

__all__ = ["llama"]

MODEL = "smollm2"
LONG = "The reader of files keeps a table of what it has seen, and looks there before it opens anything. " * 8
STREAMED = pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])


class Behind(Struct, frozen=True, kw_only=True):
    """A gateway in front of the server."""

    url: str
    store: Store


@pytest.fixture
def behind(llama: LlamaServer) -> Iterator[Behind]:
    options = GatewayOptions(anthropic_upstream=llama.url, openai_upstream=f"{llama.url}/v1")
    store = MemoryStore()
    with ExitStack() as stack:
        yield Behind(url=stack.enter_context(served(Gateway(options, store))), store=store)


class Said(Struct, frozen=True, kw_only=True):
    """What came back: words, and how much of the prompt was read from the cache."""

    text: str
    prompt: int
    cached: int


def _claude(url: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=url, api_key="k", max_retries=0, timeout=240)


def _gpt(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0, timeout=240)


def by_messages(url: str, messages: list[Any], *, streams: bool) -> Said:
    given: Any = {"model": MODEL, "max_tokens": 8, "system": "You talk.", "messages": messages}
    with _claude(url) as client:
        if streams:
            with client.messages.stream(**given) as stream:
                answer = stream.get_final_message()
        else:
            answer = client.messages.create(**given)
    text = "".join(block.text for block in answer.content if block.type == "text")
    cached = answer.usage.cache_read_input_tokens or 0
    return Said(text=text, prompt=answer.usage.input_tokens + cached, cached=cached)


def by_chat(url: str, messages: list[Any], *, streams: bool) -> Said:
    given: Any = {"model": MODEL, "max_tokens": 8, "messages": messages}
    with _gpt(url) as client:
        if streams:
            streaming: Any = {"stream": True, "stream_options": {"include_usage": True}}
            chunks = list(client.chat.completions.create(**given, **streaming))
            text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
            usage = chunks[-1].usage
        else:
            answer = client.chat.completions.create(**given)
            text, usage = answer.choices[0].message.content, answer.usage
    return Said(text=text, prompt=usage.prompt_tokens, cached=usage.prompt_tokens_details.cached_tokens)


def by_responses(url: str, messages: list[Any], *, streams: bool) -> Said:
    items = [
        {
            "type": "message",
            "role": message["role"],
            "content": [
                {
                    "type": "output_text" if message["role"] == "assistant" else "input_text",
                    "text": message["content"],
                }
            ],
        }
        for message in messages
    ]
    given: Any = {"model": MODEL, "max_output_tokens": 8, "input": items, "store": False}
    with _gpt(url) as client:
        if streams:
            # The SDK's own gathering wants places in events, which this server leaves out.
            *_, last = client.responses.create(**given, stream=True)
            answer: Any = last.response
        else:
            answer = client.responses.create(**given)
    usage = answer.usage
    return Said(
        text=answer.output_text, prompt=usage.input_tokens, cached=usage.input_tokens_details.cached_tokens
    )


@STREAMED
@pytest.mark.parametrize("ask", [by_messages, by_chat, by_responses])
def test_a_conversation_reads_more_from_the_cache_with_every_turn(
    behind: Behind, ask: Callable[..., Said], streams: bool
) -> None:
    messages: list[Any] = [{"role": "user", "content": f"{ask.__name__} {streams}: {LONG}"}]
    said: list[Said] = []
    for turn in range(3):
        said.append(ask(behind.url, messages, streams=streams))
        assert said[-1].text
        messages += [
            {"role": "assistant", "content": said[-1].text},
            {"role": "user", "content": f"And then, {turn}? {LONG[:97]}"},
        ]
    assert said[0].cached < said[1].cached < said[2].cached
    assert said[2].cached >= 0.8 * said[1].prompt
    (session,) = behind.store.sessions()
    assert (session.turns, session.messages) == (3, 6)
    (account,) = behind.store.accounts()
    assert [record.usage.cache_read for record in account.records if record.usage] == [
        each.cached for each in said
    ]


def test_counting_is_the_servers_own(behind: Behind, llama: LlamaServer) -> None:
    asked: Any = {"model": MODEL, "messages": [{"role": "user", "content": LONG}]}
    counts = []
    for url in (behind.url, llama.url):
        with _claude(url) as client:
            counts.append(client.messages.count_tokens(**asked).input_tokens)
    assert counts[0] == counts[1] > 100


def test_the_servers_own_paths_go_through(behind: Behind, llama: LlamaServer) -> None:
    listed = []
    for url in (behind.url, llama.url):
        with _gpt(url) as client:
            listed.append(client.models.list().data[0].id)
    assert listed[0] == listed[1]
