"""Which models get cache marks, and on which messages (specification F)."""

import pytest

from lowwater.adapters.models import load_registry
from lowwater.core.cache.lifetimes import Lifetime
from lowwater.core.cache.marks import CacheMarks, marks_for

REGISTRY = load_registry()


@pytest.mark.parametrize(
    ("count", "marked"),
    [(0, []), (1, [0]), (3, [0, 1, 2]), (10, [7, 8, 9])],
    ids=["none", "one", "three", "ten"],
)
def test_f_system_and_3_marks_the_last_three_messages(count: int, marked: list[int]) -> None:
    assert list(CacheMarks().last(count)) == marked


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


@pytest.mark.parametrize("name", ["gpt-5.4", "deepseek-chat", "gemini-3-pro", "model-nobody-knows"])
def test_f_other_models_get_none(name: str) -> None:
    assert marks_for(REGISTRY.find(name), name=name, ttl="5m") is None


@pytest.mark.parametrize("name", ["gpt-6.1-sol", "gpt-5.6-terra", "gpt-6-astra", "openai/gpt-6.1-sol"])
@pytest.mark.parametrize("ttl", ["5m", "1h", "auto"])
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


@pytest.mark.parametrize(("asked", "given"), [("5m", "5m"), ("1h", "1h"), ("auto", "5m")])
def test_f_the_lifetime_is_five_minutes_or_an_hour(asked: str, given: str) -> None:
    marks = marks_for(REGISTRY.find("claude-opus-5-5"), name="claude-opus-5-5", ttl=asked)
    assert marks is not None
    assert marks.ttl == given


def test_openai_places_one_mark_itself() -> None:
    assert CacheMarks().on_messages == 3
    assert CacheMarks(breakpoints=True).on_messages == 2
