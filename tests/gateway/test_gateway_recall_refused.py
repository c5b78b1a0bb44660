"""A provider that refuses to go on from what was recalled: its client learns of it, and what was paid is in the bill."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anthropic
import msgspec
import openai
import pytest

from lowwater.testing.provider import Answer, Call, CallTools, DropConnection, Fail, Say
from tests.gateway.conftest import ANTHROPIC_TOOLS, MODEL, Starting, Through
from tests.gateway.test_gateway_recall import CHAT_TOOLS, USER

SEARCH = CallTools(
    calls=(Call(name="lowwater_search", arguments={"query": "harbour master"}),), text="Let me look. "
)
BUSY = Fail(status=429, type="rate_limit_error", message="slow down", retry_after=7)
RESPONSES_TOOLS = [{"type": "function", "name": "read", "parameters": {"type": "object"}}]
STREAMING = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def by_messages(url: str, stream: bool) -> Any:
    client = anthropic.Anthropic(base_url=url, api_key="sk-one", max_retries=0)
    given: dict[str, Any] = {"model": MODEL, "max_tokens": 900, "messages": [USER], "tools": ANTHROPIC_TOOLS}
    if not stream:
        return client.messages.create(**given)
    with client.messages.stream(**given) as streamed:
        return streamed.get_final_message()


def by_chat(url: str, stream: bool) -> Any:
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="sk-one", max_retries=0)
    given: dict[str, Any] = {"model": "gpt-5.5", "messages": [USER], "tools": CHAT_TOOLS, "stream": stream}
    answer = client.chat.completions.create(**given)
    return list(answer) if stream else answer


def by_responses(url: str, stream: bool) -> Any:
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="sk-one", max_retries=0)
    given: dict[str, Any] = {"model": "gpt-5.5", "input": [USER], "tools": RESPONSES_TOOLS, "stream": stream}
    answer = client.responses.create(**given, store=False)
    return list(answer) if stream else answer


ASKING = pytest.mark.parametrize("asking", [by_messages, by_chat, by_responses])
Asking = Callable[[str, bool], Any]


@pytest.mark.parametrize(
    ("asking", "stream", "failing"),
    [
        (by_messages, False, BUSY),
        (by_chat, False, BUSY),
        (by_responses, False, BUSY),
        (by_messages, True, BUSY),
        (by_chat, True, Fail(status=500, type="api_error", message="oh")),
        (by_responses, True, Fail(status=400, type="invalid", message="no")),
        (by_messages, False, Fail(status=307, type="api_error", message="over there")),
    ],
    ids=lambda value: getattr(value, "__name__", str(getattr(value, "status", value))),
)
def test_an_sdk_raises_what_the_provider_refused(
    start: Starting, asking: Asking, stream: bool, failing: Fail
) -> None:
    through = start([SEARCH, failing], recall=True)
    with pytest.raises((anthropic.APIError, openai.APIError)) as raised:
        asking(through.url, stream)
    assert failing.message in str(raised.value)
    assert len(through.provider.requests) == 2
    if not stream:
        assert isinstance(raised.value, anthropic.APIStatusError | openai.APIStatusError)
        assert raised.value.status_code == failing.status
        assert raised.value.response.headers.get("retry-after") == (
            str(failing.retry_after) if failing.retry_after else None
        )


@STREAMING
@ASKING
def test_an_sdk_raises_if_the_provider_goes_away_in_what_follows(
    start: Starting, asking: Asking, stream: bool
) -> None:
    through = start([SEARCH, DropConnection()], recall=True)
    with pytest.raises((anthropic.APIError, openai.APIError), match="could not be reached"):
        asking(through.url, stream)


@STREAMING
def test_what_was_paid_for_is_in_the_bill_and_the_list_is_the_same_session_when_it_comes_again(
    start: Starting, stream: bool
) -> None:
    through = start([SEARCH, BUSY, SEARCH, DropConnection()], recall=True)
    costs = []
    for _ in range(2):
        with pytest.raises(anthropic.APIError):
            by_messages(through.url, stream)
        (account,) = through.store.accounts()
        costs.append([record.cost for record in account.records])
    assert [len(each) for each in costs] == [1, 2]
    assert all(cost for each in costs for cost in each)


def test_the_next_turn_goes_on_after_a_refusal(start: Starting) -> None:
    answers: list[Answer] = [Say(text="Yes?"), SEARCH, BUSY, SEARCH, Say(text="It is 77-1234.")]
    through = start(answers, recall=True)
    messages = [{"role": "user", "content": "hello"}]
    body = {"model": MODEL, "max_tokens": 900, "tools": ANTHROPIC_TOOLS}
    content = through.post(body | {"messages": messages}).json()["content"]
    messages += [{"role": "assistant", "content": content}, USER]
    statuses = [through.post(body | {"messages": messages}).status_code for _ in range(2)]
    assert statuses == [429, 200]
    (session,) = through.store.sessions()
    assert session.turns == 3
    assert through.provider.refusals == ()


@contextmanager
def vanishing(*answers: bytes) -> Iterator[str]:
    """Serve these answers one after the other, and nothing ever after."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            for at, answer in enumerate(answers, start=1):
                connection, _ = listening.accept()
                if at == len(answers):
                    listening.close()
                with connection:
                    connection.recv(1_000_000)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        thread.join()


def on_the_wire(body: bytes, *, kind: str, status: str = "200 OK") -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    return head.encode() + body


def recalling(start: Starting, stream: bool) -> bytes:
    """Return a provider's answer that recalls, as it leaves."""
    body = {"model": MODEL, "max_tokens": 900, "messages": [USER], "tools": ANTHROPIC_TOOLS}
    said = start([SEARCH]).post(body | {"stream": stream}).content
    return on_the_wire(said, kind="text/event-stream" if stream else "application/json")


@STREAMING
def test_an_sdk_raises_if_the_provider_is_gone_when_it_is_asked_on(start: Starting, stream: bool) -> None:
    with vanishing(recalling(start, stream)) as url:
        through = start(anthropic_upstream=url, recall=True)
        with pytest.raises(anthropic.APIError, match="could not be reached") as raised:
            by_messages(through.url, stream)
    assert stream or getattr(raised.value, "status_code", 0) == 502
    (session,) = through.store.sessions()
    assert session.turns == 1


@STREAMING
@pytest.mark.parametrize("status", [520, 999])
def test_a_refusal_in_nobodys_words_is_passed_on_whole_and_put_into_words_in_a_stream(
    start: Starting, status: int, stream: bool
) -> None:
    page = on_the_wire(b"<h1>Bad gateway</h1>", kind="text/html", status=f"{status} Odd")
    with vanishing(recalling(start, stream), page) as url:
        through = start(anthropic_upstream=url, recall=True)
        with pytest.raises(anthropic.APIError) as raised:
            by_messages(through.url, stream)
    assert (f"answered {status}" if stream else "<h1>Bad gateway</h1>") in str(raised.value)


def events_of(through: Through, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    text = through.post(body | {"stream": True}, path, authorization="Bearer k").text
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [msgspec.json.decode(line) for line in lines]


@STREAMING
def test_what_led_to_an_answer_that_is_none_is_in_the_bill(start: Starting, stream: bool) -> None:
    kind = "text/event-stream" if stream else "application/json"
    with vanishing(recalling(start, stream), on_the_wire(b"data: {}\n\n", kind=kind)) as url:
        through = start(anthropic_upstream=url, recall=True)
        body = {"model": MODEL, "max_tokens": 900, "messages": [USER], "tools": ANTHROPIC_TOOLS}
        assert b"data: {}" in through.post(body | {"stream": stream}).content
    (account,) = through.store.accounts()
    assert [record.cost for record in account.records if record.cost] != []


def test_a_client_of_responses_is_told_that_its_response_failed(start: Starting) -> None:
    through = start([SEARCH, BUSY], recall=True)
    body = {"model": "gpt-5.5", "input": [USER], "tools": RESPONSES_TOOLS, "store": False}
    events = events_of(through, "/v1/responses", body)
    assert [event["type"] for event in events[-2:]] == ["error", "response.failed"]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    failed = events[-1]["response"]
    assert (failed["id"], failed["status"]) == (events[0]["response"]["id"], "failed")
    assert failed["error"]["message"] == "slow down"


def test_a_chat_that_breaks_off_has_no_reason_to_have_finished(start: Starting) -> None:
    through = start([SEARCH, BUSY], recall=True)
    body = {"model": "gpt-5.5", "messages": [USER], "tools": CHAT_TOOLS}
    events = events_of(through, "/v1/chat/completions", body)
    assert events[-1]["error"]["message"] == "slow down"
    assert not any(choice.get("finish_reason") for event in events for choice in event.get("choices", ()))
