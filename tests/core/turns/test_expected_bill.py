"""What a session expects to be billed, beside what a provider with caches of its own bills it, over HTTP."""

import http.client
import json
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest

from lowwater.adapters.tokenizer import tokenizer_for
from lowwater.session.library import Lowwater
from lowwater.session.session import Session
from lowwater.testing.fakes import ScriptedClock
from lowwater.testing.provider import Provider, Say
from tests.generated import Pauses, generate_session

RECORDED = generate_session(
    "coding", seed=71, target_tokens=60_000, pauses=Pauses(coffee=0.4, overnight=0.05)
)
TOKENIZER = tokenizer_for("o200k")
HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01", "authorization": "Bearer k"}


class Client:
    """An agent's loop around a session: the recorded messages, at their times, against a real server."""

    def __init__(self, provider: Provider, model: str, clock: ScriptedClock) -> None:
        self.session = Lowwater(model=model, clock=clock).session()
        self.model, self.clock = model, clock
        self.anthropic = model.startswith("claude")
        self.connection = http.client.HTTPConnection(urlsplit(provider.anthropic_base_url).netloc)

    def close(self) -> None:
        self.connection.close()

    def play(self) -> Session:
        form = RECORDED.as_anthropic()
        raws = form.messages if self.anthropic else RECORDED.as_openai_chat()
        times = (
            at
            for message, at in zip(RECORDED.messages, RECORDED.times, strict=True)
            if message.role == "assistant"
        )
        for raw in raws:
            message = json.loads(raw)
            if message["role"] == "assistant":
                self.clock.advance(max(0.0, next(times) - self.clock.now()))
                self._call(json.loads(form.system))
                # What the provider said is recorded; the recorded words go on in the conversation.
                self._say(message)
            else:
                self.session.append(message)
        return self.session

    def _call(self, system: Any) -> None:
        if self.anthropic:
            request = self.session.prepare(system=system, tools=json.loads(RECORDED.tools_json("anthropic")))
            body = request.as_anthropic() | {"max_tokens": 9}
        else:
            body = self.session.prepare(tools=json.loads(RECORDED.tools_json("openai_chat"))).as_openai()
        path = "/v1/messages" if self.anthropic else "/v1/chat/completions"
        self.connection.request("POST", path, json.dumps({**body, "model": self.model}), HEADERS)
        self.told = json.loads(self.connection.getresponse().read())
        assert "usage" in self.told, self.told

    def _say(self, message: Any) -> None:
        if not self.anthropic:
            choice = {**self.told["choices"][0], "message": message}
            self.session.record({**self.told, "choices": [choice]})
            return
        said = message["content"]
        parts = [{"type": "text", "text": said}] if isinstance(said, str) else said
        self.session.record({**self.told, "content": [part for part in parts if part["type"] != "thinking"]})


@pytest.mark.parametrize(
    "model",
    [
        "claude-haiku-4-5",
        "gpt-5.4",
        *(
            pytest.param(name, marks=pytest.mark.full)
            for name in ("gpt-6.1-sol", "kimi-k3", "deepseek-v4-pro")
        ),
    ],
)
def test_a_session_foresees_what_is_read_from_the_cache(model: str) -> None:
    """The provider counts a fifth more than we do, as Claude's vocabulary does: the session has to learn that."""
    clock = ScriptedClock()
    provider = Provider(
        lambda _: Say("ok"),
        count=lambda text: round(1.2 * TOKENIZER.count(text)),
        now=clock.now,
        default_context=2_000_000,
    )
    with provider, closing(Client(provider, model, clock)) as client:
        session = client.play()
    totals = session.status().totals
    assert session.status().compaction_count > 0
    assert totals.cache_read > 0.5 * totals.prompt
    assert totals.misjudged < 0.01 * totals.prompt
    assert f"foreseen within {totals.misjudged / totals.prompt:.1%}" in str(session.status())
