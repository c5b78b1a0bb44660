"""A model that is shown a transcript sees no secrets; a request on the cached prefix is never altered; no summary holds any."""

import asyncio
import json

import pytest
from msgspec.structs import replace

from lowwater import Lowwater, Settings
from lowwater.core.messages import Message, Text
from lowwater.core.summary.request import CachedPrefix, SummaryRequest, Written
from lowwater.core.tokens.estimate import CharacterTokenizer
from lowwater.session.internals import internals
from lowwater.summarizers.endpoint import endpoint_for
from lowwater.summarizers.model import AsyncModelSummarizer, ModelSummarizer
from lowwater.summarizers.requests import cached_prefix_body, transcript_body
from lowwater.testing.fakes import ScriptedClock, ScriptedSummarizer, write
from tests.summarizers.conftest import MODELS, RudeServer, body_of, http, raws_of, request_of

KEY = "sk-" + "ant-api03-a8F3kD92mNb4Qz71XyW5"
HERE = endpoint_for(MODELS["anthropic"], base_url="http://here", format="anthropic")


def request() -> SummaryRequest:
    said = Message(role="user", parts=(Text(text=f"Here is the key: {KEY}"),))
    asked = request_of()
    return replace(
        asked, messages=(*asked.messages, said), previous=f"## Goal\n- Use {KEY}.", focus=f"rotating {KEY}"
    )


@pytest.mark.parametrize("redact", [True, False])
def test_a_transcript_is_shown_without_secrets_unless_that_is_wanted(redact: bool) -> None:
    asked = replace(request(), redact=redact)
    body = transcript_body(asked, HERE, context_length=128_000, tokenizer=CharacterTokenizer())
    assert (KEY.encode() in body) is not redact
    assert (b"[redacted: Anthropic key]" in body) is redact


def test_a_request_on_the_cached_prefix_is_the_same_whatever_is_wanted() -> None:
    told = json.dumps({"role": "user", "content": f"the key is {KEY}"}).encode()
    sent = body_of([*raws_of("anthropic")[:2], told], "anthropic")
    asked = replace(request(), cached_prefix=CachedPrefix(format="anthropic", body=sent))
    body = cached_prefix_body(asked, HERE)
    assert body is not None
    assert body == cached_prefix_body(replace(asked, redact=False), HERE)
    assert body.count(told[-40:-2]) == 1, "what was sent stands there byte for byte"


@pytest.mark.parametrize("redact", [True, False])
@pytest.mark.parametrize("colour", ["blocking", "awaited"])
def test_what_a_model_writes_is_concealed_unless_that_is_wanted(redact: bool, colour: str) -> None:
    answer = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": MODELS["anthropic"],
        "content": [{"type": "text", "text": f"## Goal\n- Use {KEY}."}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 5, "output_tokens": 5},
    }
    asked = replace(request(), redact=redact)
    server = RudeServer(http(json.dumps(answer).encode()))
    try:
        written = _written(asked, server.url, colour)
    finally:
        server.close()
    assert written.text == (
        "## Goal\n- Use [redacted: Anthropic key]." if redact else f"## Goal\n- Use {KEY}."
    )
    assert written.usage is not None


def _written(asked: SummaryRequest, url: str, colour: str) -> Written:
    model = MODELS["anthropic"]
    if colour == "blocking":
        return ModelSummarizer(model=model, base_url=url, format="anthropic", api_key="k").summarize(asked)
    summarizer = AsyncModelSummarizer(model=model, base_url=url, format="anthropic", api_key="k")
    return asyncio.run(summarizer.summarize(asked))


class Rider(ScriptedSummarizer):
    """A summarizer of one's own that says which model it asks, and not where."""

    model = "claude-opus-4-5"


class AtHome(Rider):
    """One that asks the session's own provider."""

    def reaches(self, base_url: str) -> bool:
        return base_url == ""


@pytest.mark.parametrize("redact", [True, False])
@pytest.mark.parametrize("kind", [Rider, AtHome])
def test_the_request_sent_last_goes_to_others_than_its_provider_without_secrets(
    kind: type[Rider], redact: bool
) -> None:
    rider = kind(write("no"))
    settings = Settings(max_view_tokens=32_000, privacy={"redact": redact})
    session = Lowwater(
        model=rider.model, summarizer=rider, settings=settings, clock=ScriptedClock(), store="memory:"
    ).session()
    messages = []
    for number in range(40):
        messages.append({"role": "user", "content": f"step {number}: {KEY} {'look into it ' * 120}"})
        messages.append({"role": "assistant", "content": f"found {number}: {'it is so ' * 120}"})
    session.prepare([*messages[:60], {"role": "user", "content": "next"}])
    usage = internals(session).expected_usage
    session.record(
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "text", "text": "done"}],
            "usage": {
                "input_tokens": 5,
                "cache_creation_input_tokens": usage.prompt - 5,
                "cache_read_input_tokens": 0,
                "output_tokens": 2,
            },
        }
    )
    since = [{"role": "user", "content": "next"}, {"role": "assistant", "content": "done"}]
    told = {"role": "user", "content": f"the other key is {KEY}"}
    session.prepare([*messages[:60], *since, *messages[60:], told])
    riding = [each.cached_prefix for each in rider.requests if each.cached_prefix is not None]
    assert riding, "the cache is warm, so extending the last request is cheapest"
    sees = kind is AtHome or not redact
    for prefix in riding:
        assert (KEY.encode() in prefix.body) is sees
        assert any(KEY in message.text for message in prefix.since) is sees
        assert not any(message.wire and KEY.encode() in message.wire.raw for message in prefix.since) or sees


def test_a_model_at_another_url_is_not_the_sessions_provider() -> None:
    elsewhere = ModelSummarizer(model=MODELS["anthropic"], base_url="https://router.example/v1", api_key="k")
    assert elsewhere.reaches("https://router.example/anthropic")
    assert not elsewhere.reaches("")
    assert not elsewhere.reaches("https://router.example:8443/v1")
    assert ModelSummarizer(model=MODELS["anthropic"], api_key="k").reaches("")
