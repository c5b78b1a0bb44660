"""A session's own summary request: at the HTTP level it is the request sent last, and more behind it."""

import json
from typing import Any

import httpx2
import pytest

from lowwater.core.formats.codec import encode_messages, list_field
from lowwater.core.messages import Format
from lowwater.core.strict_json import write_json
from lowwater.session.library import Lowwater
from lowwater.session.session import Session
from lowwater.settings import CompressionSettings, Settings
from lowwater.summarizers.endpoint import endpoint_for
from lowwater.summarizers.model import ModelSummarizer
from lowwater.summarizers.requests import spans_of
from lowwater.testing.provider import Provider, Say, Seen
from tests.generated import generate_session
from tests.summarizers.conftest import base_url

MODELS: dict[Format, str] = {
    "anthropic": "claude-haiku-4-5",
    "openai_chat": "gpt-4.1",
    "openai_responses": "gpt-5.2",
}
SESSION = generate_session("coding", seed=31, target_tokens=40_000)
SYSTEM = "Be brief: say what you did, in one sentence, with “names” as they are."


def unsigned(message: dict[str, Any]) -> dict[str, Any]:
    """The message without thinking, which somebody else signed."""
    content = message["content"]
    if not isinstance(content, list):
        return message
    return {**message, "content": [block for block in content if "thinking" not in block["type"]]}


def messages_of(format: Format) -> list[Any]:
    if format == "openai_responses":
        items = [json.loads(raw) for raw in encode_messages(SESSION.messages, format)]
        while items[-1].get("role") == "assistant":
            items.pop()
        return items
    raws = SESSION.as_anthropic().messages if format == "anthropic" else SESSION.as_openai_chat()[1:]
    messages = [unsigned(json.loads(raw)) for raw in raws]
    while messages[-1]["role"] == "assistant":
        messages.pop()
    return messages


def turn(session: Session, provider: Provider, format: Format) -> None:
    """Send a request of the session as a client would, and record its answer."""
    tools = json.loads(SESSION.tools_json(format))
    prepared = session.prepare(messages_of(format), system=SYSTEM, tools=tools)
    match format:
        case "anthropic":
            fields = prepared.as_anthropic() | {"max_tokens": 100}
        case "openai_chat":
            fields = prepared.as_openai() | {"max_tokens": 100}
        case "openai_responses":
            fields = prepared.as_responses() | {"max_output_tokens": 100}
    endpoint = endpoint_for(MODELS[format], base_url=base_url(provider, format), api_key="k", format=format)
    body = write_json({"model": endpoint.model, **fields})
    answer = httpx2.post(endpoint.url, content=body, headers=dict(endpoint.headers))
    assert answer.status_code == 200, answer.text
    session.record(answer.content)


def values_of(seen: Seen) -> dict[str, bytes]:
    return {name: seen.raw[span.start : span.end] for name, span in spans_of(seen.raw).items()}


@pytest.mark.parametrize("format", MODELS)
def test_the_summary_request_extends_the_request_sent_last_byte_for_byte(format: Format) -> None:
    with Provider(default=Say("fine")) as provider:
        summarizer = ModelSummarizer(
            model=MODELS[format], base_url=base_url(provider, format), format=format, api_key="k"
        )
        settings = Settings(compression=CompressionSettings(protect_first_n=1, protect_last_n=2))
        session = Lowwater(model=MODELS[format], summarizer=summarizer, settings=settings).session()
        session.learn_context_length(100_000)
        turn(session, provider, format)
        done = session.compress()
        sent, asked = provider.requests[:2]
        assert not provider.refusals
    assert done is not None
    before, after = values_of(sent), values_of(asked)
    listed = list_field(format)
    assert after.pop(listed).startswith(before.pop(listed).removesuffix(b"]") + b",")
    limits = {"max_tokens", "max_completion_tokens", "max_output_tokens"}
    assert {name: before[name] for name in set(before) - limits} == {
        name: after[name] for name in set(after) - limits
    }
    *_, answer, told = asked.body[listed]
    assert len(asked.body[listed]) == len(sent.body[listed]) + 2
    assert answer["role"] == "assistant"
    assert "fine" in json.dumps(answer["content"])
    assert told["role"] == "user"
    assert "Do not call any tool" in told["content"]
