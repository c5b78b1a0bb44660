"""Whatever a body is, the gateway neither fails nor talks: it goes on as it came, or is refused in a sentence."""

from collections.abc import Iterator

import httpx2
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lowwater.gateway.app import Gateway
from lowwater.gateway.client_request import FORMATS
from lowwater.gateway.options import GatewayOptions
from lowwater.gateway.server import served
from lowwater.stores.memory import MemoryStore
from lowwater.testing.provider import Provider
from tests.gateway.canned_upstream import canned

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
ROLES = st.sampled_from(["user", "assistant", "system", "tool", "developer", "", "function"]) | JSON
BLOCK = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            ["text", "tool_use", "tool_result", "thinking", "image", "compaction", "input_text"]
        )
        | JSON
    },
    optional=dict.fromkeys(
        ("text", "id", "name", "input", "tool_use_id", "content", "source", "call_id"), JSON
    ),
)
MESSAGE = st.fixed_dictionaries(
    {},
    optional={
        "role": ROLES,
        "content": st.text(max_size=9) | st.lists(BLOCK, max_size=3) | JSON,
        "tool_calls": JSON,
        "tool_call_id": JSON,
        "type": st.sampled_from(["message", "function_call", "function_call_output", "reasoning", "odd"])
        | JSON,
        "call_id": JSON,
        "arguments": JSON,
        "output": JSON,
    },
)
LIST = st.lists(MESSAGE | JSON, max_size=5)
REQUEST = st.fixed_dictionaries(
    {"model": st.sampled_from(["claude-opus-4-5", "gpt-5.5", "", "?"]) | JSON},
    optional={
        "messages": LIST | JSON,
        "input": LIST | JSON,
        "max_tokens": st.integers(1, 99) | JSON,
        "stream": st.booleans() | JSON,
        "system": JSON,
        "instructions": JSON,
        "tools": st.lists(st.fixed_dictionaries({"name": JSON}), max_size=2) | JSON,
        "thinking": JSON,
        "tool_choice": JSON,
        "metadata": JSON,
        "previous_response_id": JSON,
        "prompt_cache_key": JSON,
    },
)
BODIES = REQUEST.map(msgspec.json.encode) | st.binary(max_size=60) | JSON.map(msgspec.json.encode)
ODD = [
    b'{"model":"claude-opus-4-5","messages":' + b"[" * 2_000,
    b'{"model":"claude-opus-4-5","messages":[{"role":"user","content":"\\ud800"}]}',
    b'{"model":"claude-opus-4-5","messages":[{"role":"user","content":NaN}]}',
    b'{"model":"x","model":"y","messages":[{"role":"user","content":"a"}],"messages":[]}',
    b"\xff\xfe",
    b"",
    b"null",
    b'{"model":"claude-opus-4-5","max_tokens":9,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{"a":"\xff"}}]}]}',
    b'{"model":"claude-opus-4-5","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{"data":"\xff"}}]}]}',
    b'{"model":"gpt-5.5","input":[{"type":"novelty","value":"\xed\xa0\x80"}]}',
    b'{"model":"claude-opus-4-5","max_tokens":9223372036854775808,"messages":[{"role":"user","content":"a"}]}',
    b'{"model":"claude-opus-4-5","max_tokens":1e400,"messages":[{"role":"user","content":"a"}]}',
]


@pytest.fixture(scope="module", params=[False, True], ids=["as it comes", "with recall"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """One gateway for all bodies."""
    with Provider() as provider:
        options = GatewayOptions(
            anthropic_upstream=provider.anthropic_base_url,
            openai_upstream=provider.anthropic_base_url,
            recall=request.param,
        )
        with served(Gateway(options, MemoryStore())) as serving:
            yield serving


def check(url: str, path: str, body: bytes) -> None:
    headers = {"x-api-key": "k", "authorization": "Bearer k", "anthropic-version": "2023-06-01"}
    answer = httpx2.post(url + path, content=body, headers=headers | {"content-type": "application/json"})
    assert answer.status_code < 500, answer.text
    assert "x-lowwater" not in answer.headers or answer.status_code == 413
    assert "Traceback" not in answer.text


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=st.sampled_from(sorted(FORMATS)), body=BODIES)
def test_no_body_makes_the_gateway_fail(url: str, path: str, body: bytes) -> None:
    check(url, path, body)


@pytest.mark.parametrize("body", ODD, ids=range(len(ODD)))
def test_odd_bodies_do_not_either(url: str, body: bytes) -> None:
    for path in sorted(FORMATS):
        check(url, path, body)


@pytest.mark.parametrize(
    ("tokens", "stream"), [(2**63, False), (10**19, True), (-1, False)], ids=["2**63", "10**19", "below zero"]
)
def test_an_answer_arrives_whatever_its_usage_says(tokens: int, stream: bool) -> None:
    usage = {"input_tokens": tokens, "output_tokens": 5}
    said = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "hi"}],
        "usage": usage,
    }
    body = msgspec.json.encode(said)
    if stream:
        events = [{"type": "message_start", "message": said}, {"type": "message_stop"}]
        body = b"".join(b"data: " + msgspec.json.encode(event) + b"\n\n" for event in events)
    with canned() as upstream:
        upstream.body, upstream.kind = body, "text/event-stream" if stream else "application/json"
        gateway = Gateway(GatewayOptions(anthropic_upstream=upstream.url), MemoryStore())
        with served(gateway) as url:
            asked = {"model": "claude-opus-4-5", "max_tokens": 9, "stream": stream}
            asked["messages"] = [{"role": "user", "content": "hello"}]
            answer = httpx2.post(f"{url}/v1/messages", json=asked, headers={"x-api-key": "k"})
    assert (answer.status_code, answer.content) == (200, body)
