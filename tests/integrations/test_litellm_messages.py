"""Names and answers of LiteLLM's requests, without LiteLLM."""

from typing import Any

import pytest
from pydantic import BaseModel

from lowwater.errors import BadSetting
from lowwater.integrations.framework import LruCache
from lowwater.integrations.litellm.messages import StreamListener, answer_of, client_session_id, name_of

Json = dict[str, Any]
FIRST: Json = {"role": "user", "content": "hello"}


def asked(**more: object) -> Json:
    return {"messages": [{"role": "system", "content": "s"}, FIRST], **more}


def test_a_conversation_keeps_its_name_as_it_grows_and_as_marks_move():
    grown = asked()
    grown["messages"] += [{"role": "assistant", "content": "hi"}, {"role": "user", "content": "more"}]
    marked = {
        "role": "user",
        "content": [{"type": "text", "text": "hello", "cache_control": {"type": "ephemeral"}}],
    }
    other_system = {"messages": [{"role": "system", "content": "now it is noon"}, marked]}
    names = {name_of(each, owner="k") for each in (asked(), grown, other_system)}
    assert len(names) == 1


@pytest.mark.parametrize(
    ("data", "owner"),
    [
        (asked(), "other"),
        (asked(tools=[{}]), "k"),
        (asked(litellm_session_id="1"), "k"),
        ({"messages": [{"role": "user", "content": "other"}]}, "k"),
    ],
    ids=["owner", "tools", "id", "beginning"],
)
def test_another_conversation_has_another_name(data: Json, owner: str):
    assert name_of(data, owner=owner) != name_of(asked(), owner="k")


@pytest.mark.parametrize(
    "data",
    [
        {"proxy_server_request": {"headers": {"X-LiteLLM-Session-Id": "7"}}},
        {"proxy_server_request": {"headers": {"x-claude-code-session-id": "7"}}},
        {"litellm_session_id": "7"},
        {"metadata": {"session_id": "7"}},
        {"prompt_cache_key": "7"},
    ],
    ids=["header", "claude-code", "field", "metadata", "cache-key"],
)
def test_the_clients_own_id_is_found(data: Json):
    assert client_session_id(data) == "7"


class Completion(BaseModel):
    """Something with `model_dump`, as LiteLLM returns it."""

    choices: list[Json]
    usage: Json
    model: str = "m"


SAID: Json = {
    "role": "assistant",
    "content": None,
    "function_call": None,
    "provider_specific_fields": {"refusal": None},
    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}, "index": 0}],
}


def test_an_answer_is_recorded_without_what_litellm_adds():
    done = Completion(choices=[{"message": SAID, "finish_reason": "tool_calls"}], usage={"prompt_tokens": 3})
    answer = answer_of(done)
    assert answer is not None
    assert answer["choices"][0]["message"] == {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    }
    assert answer["usage"] == {"prompt_tokens": 3}


def test_what_is_no_answer_is_not_recorded():
    assert answer_of({"data": []}) is None
    assert answer_of({"choices": []}) is None


def test_a_stream_is_heard_as_objects_and_as_bytes():
    deltas: list[Json] = [{"role": "assistant", "content": "he"}, {"content": "llo"}, {}]
    chunks: list[Json] = [
        {"id": "1", "choices": [{"index": 0, "delta": delta, "finish_reason": None if delta else "stop"}]}
        for delta in deltas
    ]
    chunks.append({"id": "1", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}})
    listening = StreamListener("openai_chat")
    for chunk in chunks:
        listening.hear(chunk)
    answer = listening.answer()
    assert answer is not None
    assert answer["choices"][0]["message"]["content"] == "hello"
    assert answer["usage"]["prompt_tokens"] == 3


def test_a_stream_that_breaks_off_is_not_recorded():
    listening = StreamListener("anthropic")
    listening.hear(b'event: message_start\ndata: {"type":"message_start","message":{"role":"assistant"}}\n\n')
    assert listening.answer() is None


def test_without_litellm_one_sentence_says_what_to_install():
    with pytest.raises(BadSetting, match=r"pip install 'lowwater\[litellm\]'"):
        from lowwater.integrations.litellm import LowwaterHook  # noqa: F401


def test_what_is_remembered_of_conversations_does_not_grow_for_ever():
    windows: LruCache[tuple[str, str], int] = LruCache(3)
    for at in range(100):
        windows[str(at), "m"] = at
        assert windows.get(("0", "m")) == 0, "one that goes on is never forgotten"
    assert len(windows) == 3
    assert [windows.get((str(at), "m")) for at in (97, 98, 99)] == [None, 98, 99]
    assert (windows.pop(("98", "m")), windows.pop(("98", "m")), len(windows)) == (98, None, 2)
