"""Specification G: the window follows the model and its fallbacks, a switch counts at once, a limit in an error is learned."""

import json
from typing import Any

import openai
import pytest

from lowwater.session.library import Lowwater
from lowwater.settings import FallbackProvider, Settings
from lowwater.testing.provider import Provider
from tests.generated import generate_session

MESSAGES: list[Any] = [
    json.loads(raw)
    for raw in generate_session("coding", seed=51, target_tokens=110_000).as_openai_chat()[:-1]
]
BIG, SMALL = "claude-opus-5-5", "gpt-4o"
"""A million tokens, and 128,000."""


def test_fallbacks_may_come_from_the_settings() -> None:
    settings = Settings(fallback_providers=(FallbackProvider(model=SMALL, base_url="http://here"),))
    assert Lowwater(model=BIG, policy="runway", settings=settings).session().status().context == 128_000


def test_an_error_of_the_real_sdk_teaches_the_limit() -> None:
    session = Lowwater(model="model-nobody-knows", policy="never").session()
    with Provider(default_context=30_000) as provider:
        client = openai.OpenAI(api_key="k", base_url=provider.openai_base_url, max_retries=0)
        request = session.prepare(MESSAGES)
        with pytest.raises(openai.BadRequestError) as refused:
            client.chat.completions.create(model="model-nobody-knows", **request.as_openai())
        session.learn_context_length(refused.value)
        client.chat.completions.create(model="model-nobody-knows", **session.prepare().as_openai())
        client.close()
    assert session.status().context == 30_000
