"""The provider as a server: paths, records, scripts, failures of the connection, starting and stopping."""

import http.client
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anthropic
import openai
import pytest

from lowwater.testing.provider import Answer, DropConnection, Fail, Hang, Provider, Say, Seen
from tests.sdk_clients import anthropic_client, openai_client

HELLO: Any = [{"role": "user", "content": "Hello."}]


def ask_messages(provider: Provider, *, stream: bool = False, **options: Any) -> Any:
    with anthropic_client(provider, **options) as client:
        answer = client.messages.create(model="claude-opus-5-5", max_tokens=9, messages=HELLO, stream=stream)
        return list(answer) if stream else answer


def ask_chat(provider: Provider, *, stream: bool = False) -> Any:
    with openai_client(provider) as client:
        answer: Any = client.chat.completions.create(model="gpt-6", messages=HELLO, stream=stream)
        return list(answer) if stream else answer


@pytest.mark.parametrize(
    ("method", "path", "headers", "status", "kind"),
    [
        pytest.param("GET", "/api/tags", {}, 404, "not_found_error", id="a probe for another server"),
        pytest.param("POST", "/v1/embeddings", {}, 404, "not_found_error", id="an endpoint that is not here"),
        pytest.param("GET", "/v1/chat/completions", {}, 405, "invalid_request_error", id="another method"),
        pytest.param("GET", "/v1/messages", {}, 405, "invalid_request_error", id="another method, Messages"),
        pytest.param(
            "POST", "/v1/complete", {"x-api-key": "k"}, 404, "not_found_error", id="a Messages client"
        ),
    ],
)
def test_what_is_not_served_gets_a_clean_error(
    method: str, path: str, headers: Any, status: int, kind: str, *, small: Provider, send: Any
) -> None:
    got = send(small, path, headers=headers, method=method)
    assert (got.status, got.body["error"]["type"]) == (status, kind)
    assert ("request_id" in got.body) == ("messages" in path or bool(headers))
    assert (small.requests[-1].path, small.requests[-1].status) == (path, status)


def test_a_request_is_kept_as_it_came_but_for_its_secrets(send: Any) -> None:
    raw = b'{"model": "gpt-6",  "messages": [{"role": "user", "content": "\\u0048i"}], "x": 1.0}'
    headers = {"Authorization": "Bearer sk-secret", "X-Api-Key": "sk-secret", "X-Session": "7"}
    with Provider() as provider:
        send(provider, "/v1/chat/completions?beta=true", raw, headers)
    seen = provider.requests[0]
    assert seen.raw == raw
    assert seen.body == {"model": "gpt-6", "messages": [{"role": "user", "content": "Hi"}], "x": 1.0}
    assert seen.path == "/v1/chat/completions?beta=true"
    assert seen.headers["x-session"] == "7"
    assert (seen.headers["authorization"], seen.headers["x-api-key"]) == ("Bearer ***", "***")
    assert "sk-secret" not in repr(seen)


def test_a_script_is_followed_and_then_the_default() -> None:
    with Provider([Say("one"), Say("two")], default=Say("again")) as provider:
        said = [ask_messages(provider).content[0].text, ask_chat(provider).choices[0].message.content]
        said += [ask_chat(provider).choices[0].message.content for _ in range(2)]
    assert said == ["one", "two", "again", "again"]


def test_a_messages_stream_has_the_events_of_the_api(messages_draft: Any, send: Any) -> None:
    messages_draft.put("stream", True)
    with Provider([Say("Sixteen letters and some")]) as provider:
        got = send(provider, messages_draft.path, messages_draft.body, messages_draft.headers)
    events = [
        line.removeprefix("event: ") for line in got.raw.decode().splitlines() if line.startswith("event")
    ]
    assert got.headers["content-type"].startswith("text/event-stream")
    assert events == [
        "message_start",
        "ping",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


def test_a_failure_may_say_when_to_come_back(chat_draft: Any, send: Any) -> None:
    with Provider([Fail(429, "tokens", "Slow down.", retry_after=7)]) as provider:
        got = send(provider, chat_draft.path, chat_draft.body, chat_draft.headers)
    assert (got.status, got.headers["retry-after"]) == (429, "7")
    assert provider.requests[0].status == 429


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("ask", [ask_messages, ask_chat])
def test_a_dropped_connection_is_an_error_of_the_connection(ask: Any, stream: bool) -> None:
    errors = (anthropic.APIError, openai.APIError, OSError)
    with Provider([DropConnection(), Say("back")]) as provider:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - the SDKs let some errors of their transport through
            ask(provider, stream=stream)
        assert isinstance(caught.value, errors) or type(caught.value).__module__.startswith("httpx")
        assert not isinstance(caught.value, anthropic.APIStatusError | openai.APIStatusError)
        ask(provider)
    assert [seen.answer for seen in provider.requests] == [DropConnection(), Say("back")]


def test_a_client_can_give_up_on_a_held_request() -> None:
    with Provider(lambda seen: Hang() if "x-hold" in seen.headers else Say("back")) as provider:
        with pytest.raises(anthropic.APITimeoutError):
            ask_messages(provider, timeout=0.1, default_headers={"x-hold": "yes"})
        assert ask_messages(provider).content[0].text == "back"


def test_stopping_lets_go_of_a_held_request(send: Any, messages_draft: Any) -> None:
    arrived = threading.Event()

    def script(seen: Seen) -> Answer:
        arrived.set()
        return Hang()

    with ThreadPoolExecutor(1) as pool:
        with Provider(script) as provider:
            held = pool.submit(
                send, provider, messages_draft.path, messages_draft.body, messages_draft.headers
            )
            assert arrived.wait(10)
        with pytest.raises(http.client.IncompleteRead):
            held.result(10)


def test_two_providers_run_side_by_side_and_leave_no_thread_behind() -> None:
    before = set(threading.enumerate())
    with Provider([Say("a")]) as one, Provider([Say("b")]) as other:
        assert ask_chat(one).choices[0].message.content == "a"
        assert ask_chat(other).choices[0].message.content == "b"
        assert len(set(threading.enumerate()) - before) == 2
    assert set(threading.enumerate()) <= before


def test_a_provider_can_be_started_again_and_goes_on_where_it_stopped() -> None:
    provider = Provider([Say("a"), Say("b")])
    said = []
    for _ in range(2):
        with provider:
            said.append(ask_chat(provider).choices[0].message.content)
    assert said == ["a", "b"]
    assert len(provider.requests) == 2


def test_a_provider_that_is_not_running_says_so() -> None:
    with pytest.raises(RuntimeError, match="use it in a `with` block"):
        _ = Provider().openai_base_url
