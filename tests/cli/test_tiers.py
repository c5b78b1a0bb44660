"""The current model of each line is told by names, versions and prices alone."""

import pytest
from msgspec.structs import replace

from lowwater.adapters.models import load_registry
from lowwater.cli.models.show import current_models, tier_of
from lowwater.core.models.model import CacheRules, Model, Prices, SteppedPrefixes

PRICES = Prices(input=1_000, cache_read=100, cache_write=1_000, output=5_000)


def model(name: str, *, provider: str = "maker", times: int = 1) -> Model:
    return Model(
        name=name,
        provider=provider,
        family="",
        context_length=1_000,
        cache=CacheRules(matching=SteppedPrefixes()),
        prices=Prices(
            input=PRICES.input * times,
            cache_read=PRICES.cache_read * times,
            cache_write=PRICES.cache_write * times,
            output=PRICES.output * times,
        ),
    )


def names(*models: Model) -> list[str]:
    return [each.name for each in current_models(models)]


@pytest.mark.parametrize(
    ("name", "words", "version"),
    [
        ("claude-opus-5-5", ("claude", "opus"), (5, 5)),
        ("gpt-6.1-sol", ("gpt", "sol"), (6, 1)),
        ("gpt-4o-mini", ("gpt", "mini"), (4,)),
        ("kimi-k2.7-code", ("kimi", "k", "code"), (2, 7)),
        ("qwen3.8-max", ("qwen", "max"), (3, 8)),
        ("gemini-3.1-pro-preview", ("gemini", "pro"), (3, 1)),
        ("deepseek-flash", ("deepseek", "flash"), ()),
    ],
)
def test_a_line_is_the_name_without_its_version(
    name: str, words: tuple[str, ...], version: tuple[int, ...]
) -> None:
    line = tier_of(model(name))
    assert (line.words, line.version) == (words, version)


def test_the_newest_of_a_line_stands_for_it_wherever_it_is_listed() -> None:
    assert names(model("a-big-5"), model("a-small-5"), model("a-big-5-1")) == ["a-small-5", "a-big-5-1"]


def test_a_dearer_newer_model_of_the_line_is_still_the_current_one() -> None:
    assert names(model("a-big-2", times=9), model("a-big-1")) == ["a-big-2"]


def test_a_newer_generation_supersedes_other_lines_only_if_nothing_costs_more() -> None:
    cheaper, dearer = model("a-new-6"), model("a-new-6", times=3)
    old = model("a-old-5", times=2)
    assert names(cheaper, old) == ["a-new-6"]
    assert names(dearer, old) == ["a-new-6", "a-old-5"]


@pytest.mark.parametrize(
    "other",
    [model("a-old-6-1", times=2), model("a-old", times=2), model("b-old-5", provider="another", times=2)],
    ids=["same generation", "no version", "another provider"],
)
def test_what_cannot_be_compared_stays(other: Model) -> None:
    assert names(model("a-new-6-5"), other) == ["a-new-6-5", other.name]


def test_a_date_is_no_generation() -> None:
    assert names(model("a-small-2603"), model("a-large-4", times=2)) == ["a-small-2603", "a-large-4"]


def test_copies_are_left_out() -> None:
    listed = model("a-big-1")
    dated, resold = model("a-big-1-2026-05-13"), model("host/a-big-1", provider="host")
    elsewhere = model("host/a-big-1", provider="host", times=2)
    assert names(dated, listed, resold) == ["a-big-1"]
    assert names(listed, elsewhere) == ["a-big-1", "host/a-big-1"]


def test_an_unknown_price_supersedes_nothing() -> None:
    assert names(replace(model("a-new-6"), prices=None), model("a-old-5")) == ["a-new-6", "a-old-5"]


def test_the_registry_gives_a_model_of_each_tier() -> None:
    chosen = {each.name for each in current_models(load_registry().models)}
    for prefix in (
        "claude-opus",
        "claude-sonnet",
        "claude-haiku",
        "gpt-",
        "gemini-",
        "deepseek-",
        "kimi-",
        "qwen",
    ):
        assert any(name.startswith(prefix) for name in chosen), prefix
    assert len(chosen) < len(load_registry().models) / 2
