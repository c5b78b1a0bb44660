"""What requests are billed over HTTP: each provider's own fields, under a clock, with evictions and strays."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lowwater.testing.fakes import ScriptedClock
from lowwater.testing.provider import CallTools, Provider, Say, Think
from lowwater.testing.provider.answers import Call

LONG = "x" * 8_000


@pytest.fixture
def clock() -> ScriptedClock:
    return ScriptedClock()


@pytest.fixture
def provider(clock: ScriptedClock) -> Iterator[Provider]:
    with Provider(now=clock.now) as running:
        yield running


@pytest.fixture
def usage(provider: Provider, send: Any) -> Callable[[Any], Any]:
    """Sends a draft and returns the usage that comes back."""
    return lambda draft: send(provider, draft.path, draft.body, draft.headers).body["usage"]


def test_messages_report_their_cache(messages_draft: Any, usage: Callable[[Any], Any]) -> None:
    messages_draft.put("system.0.text", LONG)
    messages_draft.mark("system.0", ttl="1h")
    messages_draft.mark("messages.2.content.2")
    written = usage(messages_draft)
    messages_draft.drop("messages.2.content.2.cache_control")
    messages_draft.mark("messages.1.content.0")
    messages_draft.mark("messages.2.content.2")
    got = usage(messages_draft)
    total = written["input_tokens"] + written["cache_creation_input_tokens"]
    assert written["cache_read_input_tokens"] == 0
    assert sum(written["cache_creation"].values()) == written["cache_creation_input_tokens"]
    assert written["cache_creation"]["ephemeral_1h_input_tokens"] > 2_000
    assert got["cache_read_input_tokens"] == written["cache_creation_input_tokens"]
    assert got["cache_creation_input_tokens"] == 0
    assert got["input_tokens"] + got["cache_read_input_tokens"] == total


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        ("gpt-5.5", {}),
        ("gpt-6.1-sol", {"cache_write_tokens": 0}),
        ("kimi-k3", {"cache_write_tokens": 0}),
        ("qwen3.8-max", {"cache_creation_input_tokens": 0}),
        ("deepseek-v4-pro", {}),
        ("gemini-2.5-pro", {}),
        ("vllm/llama", {}),
    ],
)
def test_chat_reports_what_its_provider_reports(
    chat_draft: Any, usage: Callable[[Any], Any], model: str, fields: dict[str, int]
) -> None:
    chat_draft.put("model", model)
    chat_draft.put("messages.1.content", LONG + LONG)
    first, second = usage(chat_draft), usage(chat_draft)
    assert first["prompt_tokens_details"]["cached_tokens"] == 0
    told = second["prompt_tokens_details"]
    assert told.pop("cached_tokens") > 3_500
    assert told == {"audio_tokens": 0, **fields}
    assert ("prompt_cache_hit_tokens" in second) == (model == "deepseek-v4-pro")


def test_a_breakpoint_survives_a_change_behind_it(chat_draft: Any, usage: Callable[[Any], Any]) -> None:
    part = {"type": "text", "text": LONG, "prompt_cache_breakpoint": {"mode": "explicit"}}
    chat_draft.put("model", "gpt-5.6-sol")
    chat_draft.put("messages.1.content", [part])
    usage(chat_draft)
    chat_draft.put("messages.6.content", "Something else.")
    assert usage(chat_draft)["prompt_tokens_details"]["cached_tokens"] > 2_000


def test_claude_behind_a_router_is_cached_by_marks(chat_draft: Any, usage: Callable[[Any], Any]) -> None:
    chat_draft.put("model", "anthropic/claude-opus-5.5")
    part = {"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}
    chat_draft.put("messages.1.content", [part])
    first, second = (usage(chat_draft)["prompt_tokens_details"] for _ in range(2))
    assert first["cache_write_tokens"] == second["cached_tokens"] > 2_000


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        (Say("A long answer to keep."), True),
        (CallTools((Call("bash", {"command": "ls"}),)), True),
        (Think("Hm.", Say("A long answer.")), False),
    ],
    ids=["said", "called", "thought-before"],
)
@pytest.mark.parametrize("model", ["deepseek-v4-pro", "sglang/llama"])
def test_an_answer_that_comes_back_as_it_was_is_read(
    chat_draft: Any, send: Any, model: str, answer: Any, kept: bool
) -> None:
    chat_draft.put("model", model)
    with Provider([answer]) as provider:
        first = send(provider, chat_draft.path, chat_draft.body, chat_draft.headers).body
        message = first["choices"][0]["message"]
        chat_draft.body["messages"].append({key: held for key, held in message.items() if held is not None})
        calls = message.get("tool_calls", [])
        results = [{"role": "tool", "tool_call_id": call["id"], "content": "done"} for call in calls]
        chat_draft.body["messages"] += results or [{"role": "user", "content": "more"}]
        second = send(provider, chat_draft.path, chat_draft.body, chat_draft.headers).body["usage"]
    read = second["prompt_tokens_details"]["cached_tokens"]
    assert read == (second["prompt_tokens"] - 1 if kept else first["usage"]["prompt_tokens"])


def test_a_changed_tool_choice_keeps_only_what_stands_before_the_messages(
    messages_draft: Any, usage: Callable[[Any], Any]
) -> None:
    messages_draft.put("system.0.text", LONG)
    messages_draft.mark("system.0", "messages.4")
    messages_draft.put("messages.4", {"role": "user", "content": [{"type": "text", "text": "Thanks."}]})
    messages_draft.mark("messages.4.content.0")
    whole = usage(messages_draft)["cache_creation_input_tokens"]
    messages_draft.put("tool_choice", {"type": "none"})
    got = usage(messages_draft)
    assert 2_000 < got["cache_read_input_tokens"] < whole
    assert got["cache_read_input_tokens"] + got["cache_creation_input_tokens"] == whole


def test_an_eviction_forgets_everything_once(
    messages_draft: Any, provider: Provider, usage: Callable[[Any], Any]
) -> None:
    messages_draft.put("system.0.text", LONG)
    messages_draft.mark("system.0")
    usage(messages_draft)
    provider.evict()
    read = [usage(messages_draft)["cache_read_input_tokens"] > 0 for _ in range(2)]
    assert read == [False, True]


def test_a_call_that_strays_finds_nothing_and_leaves_nothing(
    messages_draft: Any, provider: Provider, usage: Callable[[Any], Any]
) -> None:
    messages_draft.put("system.0.text", LONG)
    messages_draft.mark("system.0")
    before = usage(messages_draft)["cache_creation_input_tokens"]
    provider.stray()
    messages_draft.put("messages.4.content", [{"type": "text", "text": "Thanks."}])
    messages_draft.mark("messages.4.content.0")
    strayed, back = usage(messages_draft), usage(messages_draft)
    assert (strayed["cache_read_input_tokens"], back["cache_read_input_tokens"]) == (0, before)


def test_a_cache_by_an_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError, match="'nope' is not a cache: use one of anthropic, automatic, "):
        Provider(caching="nope")


def test_a_refused_request_writes_nothing(messages_draft: Any, send: Any, provider: Provider) -> None:
    messages_draft.put("system.0.text", LONG)
    messages_draft.mark("system.0")
    refused = messages_draft.body | {"max_tokens": 0}
    send(provider, messages_draft.path, refused, messages_draft.headers)
    got = send(provider, messages_draft.path, messages_draft.body, messages_draft.headers)
    assert got.body["usage"]["cache_read_input_tokens"] == 0
