"""A request that is sent again after it failed is the same conversation; what many share is none."""

import threading
from typing import Any

import httpx2
import msgspec
import pytest

from lowwater.testing.provider import Answer, DropConnection, Fail, Hang, Say, Seen
from tests.gateway.conftest import MODEL, Starting, Through
from tests.gateway.test_gateway_faults import connected, head_of
from tests.gateway.test_gateway_sessions import USER, ask, numbered, shape


def asked(messages: list[Any], **more: Any) -> dict[str, Any]:
    return {"model": MODEL, "max_tokens": 9, "system": "s", "messages": messages, **more}


def test_a_fork_that_is_refused_is_copied_once(start: Starting) -> None:
    refusals = iter([Fail(status=429, type="rate_limit_error", message="slow")] * 3)

    def answer(seen: Seen) -> Answer:
        if seen.body["messages"][-1]["content"] == "instead":
            return next(refusals, numbered(seen))
        return numbered(seen)

    through = start(answer)
    messages: list[Any] = [USER]
    for turn in range(4):
        messages += [ask(through, messages), {"role": "user", "content": f"more {turn}"}]
    fork = [*messages[:4], {"role": "user", "content": "instead"}]
    statuses = [through.post(asked(fork)).status_code for _ in range(4)]
    assert statuses == [429, 429, 429, 200]
    assert len(through.store.sessions()) == 2


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_first_request_whose_answer_broke_off_is_no_other_conversation_when_it_comes_again(
    start: Starting, stream: bool
) -> None:
    through = start([DropConnection(), DropConnection(), DropConnection(), Say(text="x")])
    for _ in range(3):
        if stream:
            with pytest.raises(httpx2.RemoteProtocolError):
                through.post(asked([USER], stream=True))
        else:
            assert through.post(asked([USER])).status_code == 502
    assert through.post(asked([USER])).status_code == 200
    assert shape(through) == [(1, 2)]


def test_a_provider_that_is_down_does_not_fill_the_store(start: Starting) -> None:
    through = start(anthropic_upstream="http://127.0.0.1:9")
    statuses = {through.post(asked([USER])).status_code for _ in range(3)}
    assert statuses == {502}
    assert shape(through) == []


def test_a_client_that_gives_up_and_asks_again_is_no_other_conversation(start: Starting) -> None:
    begun, answers = threading.Semaphore(0), iter([Hang(), Hang()])

    def answer(seen: Seen) -> Answer:
        begun.release()
        return next(answers, numbered(seen))

    through = start(answer)
    raw = msgspec.json.encode(asked([USER]))
    for _ in range(2):
        with connected(through.url) as client:
            client.sendall(head_of(len(raw)) + raw)
            assert begun.acquire(timeout=30)
        idle(through)
    assert through.post(asked([USER])).status_code == 200
    assert shape(through) == [(1, 2)]


def idle(through: Through) -> None:
    """Wait until nothing but this question is under way."""
    while "lowwater_gateway_under_way 1.0" not in httpx2.get(f"{through.url}/metrics").text:
        pass


def test_a_cache_key_that_an_application_gives_all_its_conversations_joins_none(start: Starting) -> None:
    numbers = iter(range(99))
    through = start(lambda _: Say(text=f"reply {next(numbers)}"))
    talks: list[list[Any]] = [[{"role": "user", "content": "hi"}] for _ in range(2)]
    for turn in range(3):
        for number, talk in enumerate(talks):
            body = {"model": "gpt-5.5", "prompt_cache_key": "my-app", "messages": talk}
            answer = through.post(body, "/v1/chat/completions", authorization="Bearer k").json()
            talk += [answer["choices"][0]["message"], {"role": "user", "content": f"{number} {turn}"}]
    assert shape(through) == [(3, 6), (3, 6)]
