"""Whether a prefix is still in the provider's cache, as `lowwater status` says it."""

import pytest

from lowwater.adapters.models import load_registry
from lowwater.cli.wording import cache_state
from lowwater.core.api_calls import Usage
from lowwater.core.events import TurnRecord

NOW = 1_790_000_000.0
CLAUDE = "claude-haiku-4-5"


def said(usage: Usage | None, seconds: float, *, model: str = CLAUDE, now_on: str = "") -> str:
    found = load_registry().find(now_on or model)
    record = TurnRecord(at=NOW - seconds, model=load_registry().find(model).name, usage=usage)
    return cache_state([record], found, NOW)


@pytest.mark.parametrize(
    ("usage", "seconds", "words"),
    [
        (Usage(cache_write=900, uncached=10), 60, "; warm for 4 min more"),
        (Usage(cache_write=900, uncached=10), 301, "; cold: the last call was 5 min ago, kept 5 min"),
        (Usage(cache_write_long=900, uncached=10), 1_800, "; warm for 30 min more"),
        (Usage(uncached=900), 60, "; cold: the last call, 1 min ago, left nothing in it"),
        (None, 60, "; warm for 4 min more"),
    ],
    ids=["warm", "cold", "long", "unmarked", "unreported"],
)
def test_a_marked_prefix_lives_as_long_as_it_was_written_for(
    usage: Usage | None, seconds: float, words: str
) -> None:
    assert said(usage, seconds) == words


def test_another_model_has_nothing_of_it() -> None:
    words = said(Usage(cache_write=900), 60, now_on="claude-opus-5-5")
    assert words == f"; cold: the last call was 1 min ago, to {CLAUDE}"


def test_nothing_is_said_before_the_first_call() -> None:
    assert cache_state([], load_registry().find(CLAUDE), NOW) == ""
