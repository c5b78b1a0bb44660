"""Invariant 2 where it counts: between compactions the bytes sent before are sent again, but for cache marks."""

import http.client
import json
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

import pytest

from lowwater.session.library import Lowwater
from lowwater.testing.exchanges import exchanges
from lowwater.testing.fakes import RecordingSink
from lowwater.testing.provider import Provider, Seen
from lowwater.testing.provider.anthropic import pieces
from lowwater.testing.provider.caches import InstantMarkedCache
from lowwater.testing.provider.prompt import quarter
from tests.generated import generate_session

SESSION = generate_session("coding", seed=71, target_tokens=45_000)
WINDOW = 30_000


def unmarked(value: Any) -> Any:
    """The same without cache marks; a string and the one text block it becomes to carry a mark are the same."""
    if isinstance(value, list):
        return [unmarked(each) for each in value]
    if not isinstance(value, dict):
        return value
    bare = {key: unmarked(each) for key, each in value.items() if key != "cache_control"}
    content = bare.get("content")
    if isinstance(content, list) and len(content) == 1 and set(content[0]) == {"type", "text"}:
        bare["content"] = content[0]["text"]
    return bare


def spelled(value: Any) -> bytes:
    return json.dumps(unmarked(value)).encode()


def post(provider: Provider, path: str, body: Any) -> None:
    address = urlsplit(provider.anthropic_base_url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port)
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01", "authorization": "Bearer k"}
    connection.request("POST", path, json.dumps(body), {**headers, "content-type": "application/json"})
    assert connection.getresponse().status == 200
    connection.close()


def sent(format: str, policy: str) -> tuple[list[Seen], list[int]]:
    """Every request of a session, and the numbers of those before which it was compacted."""
    anthropic = format == "anthropic"
    model = "claude-haiku-4-5" if anthropic else "gpt-5.5"
    sink = RecordingSink()
    session = Lowwater(model=model, policy=policy, sinks=[sink]).session()
    session.learn_context_length(WINDOW)
    form = SESSION.as_anthropic()
    raws = form.messages if anthropic else SESSION.as_openai_chat()
    tools = json.loads(SESSION.tools_json("anthropic" if anthropic else "openai_chat"))
    system = json.loads(form.system) if anthropic else None
    compacted: list[int] = []
    with Provider(default_context=10 * WINDOW) as provider:
        for number, exchange in enumerate(exchanges(map(json.loads, raws))):
            session.append(without_thinking(exchange.new))
            known = len(sink.compactions)
            request = session.prepare(system=system, tools=tools)
            if any(event.mode != "shorten" for event in sink.compactions[known:]):
                compacted.append(number)
            if anthropic:
                post(provider, "/v1/messages", {"model": model, "max_tokens": 9, **request.as_anthropic()})
            else:
                post(provider, "/v1/chat/completions", {"model": model, **request.as_openai()})
            if exchange.answer:
                session.append(without_thinking([exchange.answer]))
        return list(provider.requests), compacted


def without_thinking(messages: Any) -> list[Any]:
    """What a generator signed no provider accepts."""
    return [
        {**message, "content": [b for b in message["content"] if b.get("type") != "thinking"]}
        if isinstance(message["content"], list)
        else message
        for message in messages
    ]


@pytest.mark.parametrize(
    ("format", "policy"),
    [("anthropic", "runway"), ("openai_chat", "guarded"), ("anthropic", "hermes-classic")],
)
def test_the_sent_prefix_moves_only_at_a_compaction(format: str, policy: str) -> None:
    requests, compacted = sent(format, policy)
    assert compacted
    moved = []
    for number, (before, after) in enumerate(pairwise(requests), start=1):
        old, new = before.body["messages"], after.body["messages"]
        same = [spelled(message) for message in new[: len(old)]] == [spelled(message) for message in old]
        fields = ("system", "tools")
        same = same and all(spelled(before.body.get(f)) == spelled(after.body.get(f)) for f in fields)
        if not same:
            moved.append(number)
    assert moved == compacted


def test_what_is_not_marked_is_the_same_byte_for_byte() -> None:
    requests, compacted = sent("openai_chat", "runway")
    for number, (before, after) in enumerate(pairwise(requests), start=1):
        if number not in compacted:
            prefix = json.dumps(before.body["messages"])[:-1].encode()
            assert prefix in after.raw


def test_the_cache_finds_what_it_stored() -> None:
    """With the marks that are sent, nearly all of a prompt is read from the provider's cache."""
    requests, compacted = sent("anthropic", "runway")
    cache = InstantMarkedCache()
    used = [cache.use("m", pieces(request.body), quarter) for request in requests]
    calm = [each for number, each in enumerate(used) if number and number not in compacted]
    assert sum(each.read for each in calm) / sum(each.prompt for each in calm) > 0.9
    assert all(len(json.dumps(request.body).split('"cache_control"')) - 1 == 4 for request in requests[3:])
