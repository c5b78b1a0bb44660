"""Which models get cache marks, and on which messages (specification F)."""

import pytest

from lowwater.adapters.models import load_registry
from lowwater.core.cache.marks import CacheMarks, Lifetime, marks_for

REGISTRY = load_registry()


OPENROUTER = "https://openrouter.ai/api/v1"


@pytest.mark.parametrize(
    ("name", "base_url", "in_chat", "on_tools"),
    [
        ("claude-opus-5-5", "", False, False),
        ("anthropic/claude-opus-5-5", "", False, False),
        ("claude-9-not-listed", "", False, False),
        ("openrouter/anthropic/claude-sonnet-5-5", "", True, True),
        ("anthropic/claude-sonnet-5-5", OPENROUTER, True, True),
        ("anthropic/claude-sonnet-5-5", "https://openrouter.ai.example/v1", False, False),
        ("litellm_proxy/claude-sonnet-5-5", "http://localhost:4000", True, False),
        ("litellm_proxy/openrouter/anthropic/claude-sonnet-5-5", "", True, False),
        ("bedrock/claude-opus-5-5", "", True, False),
        ("qwen3-coder-plus", "", True, True),
        ("qwen3-coder-plus", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", True, True),
    ],
)
def test_f_models_that_take_marks_get_them_by_themselves_where_their_router_looks(
    name: str, base_url: str, in_chat: bool, on_tools: bool
) -> None:
    marks = marks_for(REGISTRY.find(name), name=name, base_url=base_url, ttl="5m")
    assert marks == CacheMarks(ttl="5m", in_chat=in_chat, on_tools=on_tools)


@pytest.mark.parametrize(
    ("name", "ttl"), [("gpt-6.1-sol", "5m"), ("gpt-5.6-terra", "1h"), ("openai/gpt-6.1-sol", "auto")]
)
def test_openai_from_5_6_on_takes_breakpoints_of_one_lifetime(name: str, ttl: str) -> None:
    marks = marks_for(REGISTRY.find(name), name=name, ttl=ttl, lifetime="long")
    assert marks == CacheMarks(ttl="30m", breakpoints=True, lookback=None)


@pytest.mark.parametrize(
    ("asked", "lifetime", "given"),
    [("auto", "short", "5m"), ("auto", "long", "1h"), ("5m", "long", "5m"), ("1h", "short", "1h")],
)
def test_auto_is_what_pays_at_the_moment(asked: str, lifetime: Lifetime, given: str) -> None:
    marks = marks_for(REGISTRY.find("claude-opus-5-5"), name="claude-opus-5-5", ttl=asked, lifetime=lifetime)
    assert marks is not None
    assert marks.ttl == given


def test_openai_places_one_mark_itself() -> None:
    assert CacheMarks().on_messages == 3
    assert CacheMarks(breakpoints=True).on_messages == 2
