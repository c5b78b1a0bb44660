"""The hook in a real LiteLLM proxy, a process of its own, with the official SDKs before it and the provider behind it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from bench.frameworks.billing import bill_of, moved_prefixes, standing
from bench.frameworks.scripted import ScriptedModel, is_of_agent
from bench.frameworks.task import SYSTEM, TOOL, facts_until, log_of, question
from bench.frameworks.worker import Told
from bench.frameworks.workers.litellm_client import TOOLS, answer, models_for
from bench.frameworks.workers.litellm_proxy import KEY, Proxy
from bench.peers.environment import python_with
from lowwater.adapters.tokenizer import tokenizer_for
from lowwater.protocols import Store
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.session import Session
from lowwater.stores.addresses import open_store
from lowwater.testing.provider import Provider, Seen

pytestmark = pytest.mark.full
MODEL, CLAUDE, WINDOW = "gpt-6.1-sol", "claude-opus-5-5", 24_000
COUNT = tokenizer_for("o200k").count
# Its proxy pins rich below 14, so that Lowwater is not installed there: what it needs is, and its source is on the path.
NEEDED = (
    "litellm[proxy]==1.106.2",
    "msgspec>=0.21",
    "splintr-rs>=0.22",
    "genai-prices>=0.2",
    "platformdirs>=4",
    "httpx2>=2",
    "typer>=0.20",
)


class Through:
    """A provider, a proxy in front of it, and where its sessions are kept."""

    def __init__(self, provider: Provider, proxy: Proxy, kept: Store) -> None:
        self.provider, self.proxy, self.kept = provider, proxy, kept
        self._seen = 0

    def told(self) -> Told:
        url = self.provider.anthropic_base_url
        return Told(base_url=url, compaction="lowwater", turns=0, model=MODEL, window=WINDOW)

    def requests(self) -> tuple[Seen, ...]:
        """What the provider saw since this was asked last."""
        new = self.provider.requests[self._seen :]
        self._seen += len(new)
        return new

    def session(self, part: str, model: str = MODEL) -> Session:
        names = [listed.name for listed in self.kept.sessions() if part in listed.name]
        assert len(names) == 1, names
        return Lowwater(model=model, store=self.kept).session(names[0], as_left=True)


@pytest.fixture(scope="module")
def through(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Through]:
    python = python_with("litellm", *NEEDED)
    store = f"sqlite:///{tmp_path_factory.mktemp('litellm') / 'lowwater.db'}"
    lengths = {MODEL: WINDOW, CLAUDE: WINDOW, "gpt-6.1-terra": WINDOW}
    with Provider(ScriptedModel(), count=COUNT, context_lengths=lengths, now=standing) as provider:
        url = provider.anthropic_base_url
        told = Told(base_url=url, compaction="lowwater", turns=0, model=MODEL, window=WINDOW)
        claude = {"model": f"anthropic/{CLAUDE}", "api_base": url, "api_key": "k", "max_retries": 0}
        small = {"model": "openai/gpt-6.1-terra", "api_base": f"{url}/v1", "api_key": "k", "max_retries": 0}
        models = [
            *models_for(told),
            {"model_name": "claude", "litellm_params": claude, "model_info": {"max_input_tokens": WINDOW}},
            {"model_name": "untold", "litellm_params": small},
        ]
        with Proxy(python, models, hook=True, store=store) as proxy:
            kept = open_store(store)
            yield Through(provider, proxy, kept)
            kept.close()


@pytest.fixture(scope="module")
def chat(through: Through) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{through.proxy.url}/v1", api_key=KEY, max_retries=0) as client:
        yield client


@pytest.fixture
def claude(through: Through) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=through.proxy.url, api_key=KEY, max_retries=0) as client:
        yield client


def moved(requests: tuple[Seen, ...]) -> int:
    return moved_prefixes([seen for seen in requests if is_of_agent(seen)])


def test_a_client_that_keeps_everything_stays_inside_the_window(through: Through, chat: openai.OpenAI):
    messages: list[Any] = [{"role": "system", "content": SYSTEM}]
    for step in range(1, 21):
        messages.append({"role": "user", "content": question(step)})
        while answer(chat, through.told(), messages):
            pass
    requests, session = through.requests(), through.session("/bench/")
    assert not [seen.refusal for seen in requests if seen.refusal]
    compactions = session.status().compaction_count
    assert compactions >= 2
    assert moved(requests) == compactions, "nothing but compactions moves the prefix"
    assert (
        sum(type(entry).__name__ in ("Rewound", "TakenBack") for entry in internals(session).ledger.entries)
        == 0
    )
    held = "\n".join(str(message.get("content")) for message in session.history())
    assert all(fact in held for fact in facts_until(20))
    assert session.status().totals.cost == bill_of(requests, MODEL, count=COUNT, window=WINDOW).cost


def test_streams_are_passed_on_and_recorded(through: Through, chat: openai.OpenAI):
    messages: list[Any] = [{"role": "system", "content": SYSTEM}]
    for step in range(1, 11):
        messages.append({"role": "user", "content": question(step)})
        while _streamed(chat, messages):
            pass
    requests, session = through.requests(), through.session("/streamed/")
    assert not [seen.refusal for seen in requests if seen.refusal]
    assert session.status().compaction_count >= 1
    assert len(session.history()) == len(messages)
    assert session.status().totals.cost == bill_of(requests, MODEL, count=COUNT, window=WINDOW).cost


def _streamed(client: openai.OpenAI, messages: list[Any]) -> bool:
    with client.chat.completions.stream(
        model="agent",
        messages=messages,
        tools=TOOLS,
        max_tokens=2_000,
        extra_headers={"x-litellm-session-id": "streamed"},
    ) as stream:
        said = stream.get_final_completion().choices[0].message
    calls = [
        {"id": call.id, "type": "function", "function": {"name": TOOL, "arguments": call.function.arguments}}
        for call in said.tool_calls or []
    ]
    messages.append(
        {"role": "assistant", "content": said.content, **({"tool_calls": calls} if calls else {})}
    )
    for call in said.tool_calls or []:
        arguments = json.loads(call.function.arguments)
        messages.append({"role": "tool", "tool_call_id": call.id, "content": log_of(**arguments)})
    return bool(calls)


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_the_messages_api_is_served_too(through: Through, claude: anthropic.Anthropic, streams: bool):
    name = f"messages-{streams}"
    messages: list[Any] = []
    for step in range(1, 11):
        messages.append({"role": "user", "content": question(step)})
        while _messaged(claude, messages, name, streams=streams):
            pass
    requests, session = through.requests(), through.session(f"/{name}/", CLAUDE)
    assert not [seen.refusal for seen in requests if seen.refusal]
    assert session.status().compaction_count >= 1
    assert 1 <= moved(requests) <= session.status().compaction_count, "two may be made before one call"
    bill = bill_of(requests, CLAUDE, count=COUNT, window=WINDOW)
    assert session.status().totals.cost == bill.cost
    assert bill.usage.cache_read > bill.usage.cache_write, "marks were placed where the client set none"


def _messaged(client: anthropic.Anthropic, messages: list[Any], name: str, *, streams: bool) -> bool:
    tool = TOOLS[0]["function"]
    asked: dict[str, Any] = {
        "model": "claude",
        "max_tokens": 2_000,
        "system": SYSTEM,
        "messages": messages,
        "tools": [
            {"name": TOOL, "description": tool["description"], "input_schema": tool["parameters"]},
        ],
        "extra_headers": {"x-litellm-session-id": name},
    }
    if streams:
        with client.messages.stream(**asked) as stream:
            said = stream.get_final_message()
    else:
        said = client.messages.create(**asked)
    messages.append({"role": "assistant", "content": [block.to_dict() for block in said.content]})
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": log_of(**block["input"])}
        for block in messages[-1]["content"]
        if block["type"] == "tool_use"
    ]
    if results:
        messages.append({"role": "user", "content": results})
    return bool(results)


def test_a_window_that_nobody_told_is_learned_from_the_refusal(through: Through, chat: openai.OpenAI):
    messages: list[Any] = [{"role": "user", "content": "Read them all."}]
    for at in range(12):
        call = {"id": f"c{at}", "type": "function", "function": {"name": TOOL, "arguments": "{}"}}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {
                "role": "tool",
                "tool_call_id": f"c{at}",
                "content": log_of("mail", at) + log_of("mail", 100 + at),
            },
        ]
    asked: dict[str, Any] = {"model": "untold", "messages": messages, "max_tokens": 100}
    with pytest.raises(openai.BadRequestError, match="maximum context length"):
        chat.chat.completions.create(**asked)
    done = chat.chat.completions.create(**asked)
    assert done.choices[0].message.content
    through.requests()


def test_what_lowwater_cannot_read_leaves_as_it_came(through: Through, chat: openai.OpenAI):
    through.requests()
    messages: list[Any] = [{"role": "nobody", "content": "x"}]
    with pytest.raises(openai.BadRequestError):
        chat.chat.completions.create(model="agent", messages=messages)
    (seen,) = through.requests()
    assert seen.body["messages"] == messages


def test_the_example_is_what_runs():
    examples = Path(__file__).parents[2] / "examples"
    assert "callbacks: litellm_hook.proxy_handler_instance" in (examples / "litellm_config.yaml").read_text()
