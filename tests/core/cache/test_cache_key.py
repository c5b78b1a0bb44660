"""OpenAI's requests are routed by a key that is stable for a session and tells nothing of it."""

import re

import pytest

from lowwater.adapters.models import load_registry
from lowwater.core.cache.marks import cache_key_for

REGISTRY = load_registry()
SOL = REGISTRY.find("gpt-6.1-sol")


@pytest.mark.parametrize("name", ["gpt-6.1-sol", "gpt-5.4", "gpt-4o-mini"])
def test_models_of_openai_have_one(name: str) -> None:
    assert re.fullmatch(r"lw-[0-9a-f]{16}", cache_key_for(REGISTRY.find(name), session="refactor-auth"))


@pytest.mark.parametrize("name", ["claude-opus-5-5", "deepseek-chat", "gpt-oss-120b", "model-nobody-knows"])
def test_others_have_none(name: str) -> None:
    assert cache_key_for(REGISTRY.find(name), session="refactor-auth") == ""


def test_it_is_the_same_for_a_session_in_every_process_and_another_for_another() -> None:
    assert cache_key_for(SOL, session="refactor-auth") == "lw-11ce1aad450e9b8e"
    assert cache_key_for(SOL, session="refactor-auth-2") != cache_key_for(SOL, session="refactor-auth")


@pytest.mark.parametrize("session", ["", "naïve · 会話", "half \ud83d", "x" * 10_000], ids=range(4))
def test_every_name_has_one(session: str) -> None:
    assert len(cache_key_for(SOL, session=session)) == 19
