"""`lowwater models presets` reads well on 80 columns, explains its numbers, and has a stable JSON form."""

import json
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from lowwater.adapters.models import load_registry
from lowwater.cli.models.presets import presets
from lowwater.core.costs.tuning import tuning_of
from lowwater.errors import BadInput

app = typer.Typer()
app.command()(presets)
DAY = ("--as-of", "2026-11-15")


def run(*arguments: str, columns: int = 80) -> Result:
    return CliRunner(env={"COLUMNS": str(columns)}).invoke(app, [*arguments])


def lines(*arguments: str, columns: int = 80) -> list[str]:
    result = run(*arguments, *DAY, columns=columns)
    assert result.exit_code == 0, result.output
    return [line.rstrip() for line in result.output.splitlines()]


def said(*arguments: str) -> str:
    """The text with its line breaks taken out."""
    return " ".join(" ".join(lines(*arguments)).split())


def as_json(*arguments: str) -> Any:
    result = run(*arguments, *DAY, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize(
    "arguments", [(), ("--all",), ("claude-opus-5-5",), ("acme-1",)], ids=["tiers", "all", "page", "unknown"]
)
def test_nothing_is_wider_than_the_terminal_or_cut(arguments: tuple[str, ...], columns: int) -> None:
    printed = lines(*arguments, columns=columns)
    assert max(map(len, printed)) <= columns
    assert not any(line.endswith("…") for line in printed)


def test_without_a_model_there_is_a_row_for_each_tier_and_a_legend() -> None:
    printed = lines()
    assert printed[0].split() == ["read", "trigger", "share", "every", "full", "prune", "forced", "rent"]
    rows = {line.split()[0]: line.split()[1:] for line in printed[1 : printed.index("")]}
    assert rows["claude-opus-5-5"] == ["0.05", "103K", "10%", "30", "8.7", "36.0", "984K", "$0.0020"]
    assert rows["gpt-6.1-sol"][6] == "272Kc"
    assert "gpt-5.4-mini" not in rows
    assert {
        "claude-haiku-5-5",
        "gemini-3.8-flash",
        "deepseek-flash",
        "kimi-k3.1-pro",
        "qwen3.8-max",
    } <= rows.keys()
    legend = [line.split()[0] for line in printed if line[:7].strip() in printed[0].split()]
    assert legend == printed[0].split()


def test_all_lists_every_model_of_the_registry() -> None:
    printed = lines("--all")
    assert printed.index("") - 1 == len(load_registry().models)


def test_a_small_price_is_never_shown_as_nothing() -> None:
    assert not any(" $0.0000 " in f"{line} " for line in lines("--all"))


def test_a_page_gives_the_numbers_with_what_they_mean_and_which_setting_they_are() -> None:
    text = said("claude-opus-5.5")
    for part in (
        "claude-opus-5-5 · anthropic · 1,000,000 tokens · prices of 2026-11-15",
        "trigger 103,100 Tokens, 10% of the window: there the rent paid reaches the price of a compaction.",
        "every 30 calls A compaction leaves 43,000 tokens; the runway from there is 60,100.",
        "threshold 0.10 That as the setting `threshold`",
        "forced at 984,000 At the wall",
        "summary, cached 8.7 calls",
        "not cached 34.7 calls",
        "summaries by claude-haiku-5-5 (summary_model)",
        "prune 36.0 calls",
        "rent $0.0020 At each call, for 10,000 tokens",
        "cache_ttl: auto",
        "cache read 0.05",
    ):
        assert part in text
    assert "cliff" not in text
    assert "Assumptions" not in text


def test_a_page_names_the_cliff_and_what_crossing_it_costs() -> None:
    assert (
        "cliff 272,001 From here on the whole request is billed at higher prices: a warm call costs $0.0320"
        in said("gpt-6.1-sol")
    )


def test_faster_growth_makes_the_cliff_come_first_and_the_page_says_so() -> None:
    text = said("claude-haiku-5.5", "--growth", "6000")
    assert "trigger 100,001" in text
    assert "the cliff comes before the rent has reached the price, which would be at 117,4" in text


def test_a_ceiling_is_the_point_that_forces() -> None:
    text = said("claude-opus-5.5", "--max-view-tokens", "60000")
    assert "the ceiling (max_view_tokens) comes before the rent" in text
    assert " 60Km " in f"{lines('claude-opus-5.5', 'gpt-6-sol', '--max-view-tokens', '60000')[1]} "


def test_a_named_summary_model_moves_the_trigger_if_it_is_cheaper() -> None:
    usual, named = as_json("gpt-6.1-sol")[0], as_json("gpt-6.1-sol", "--summary-model", "gpt-6-luna")[0]
    assert named["ways"][0] == {**named["ways"][0], "by": "other", "model": "gpt-6-luna"}
    assert named["trigger"] < usual["trigger"]
    assert "with summaries by gpt-6-luna" in said("gpt-6.1-sol", "--summary-model", "gpt-6-luna")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gpt-5.2", "5m Or 24h, which has no price of its own"),
        ("qwen3.8-max", "5m The only one on sale"),
        ("gemini-3.8-flash", "unknown Not published"),
        ("gpt-6.1-sol", "12h pays from"),
    ],
    ids=["unpriced", "one", "unpublished", "two"],
)
def test_a_page_says_which_lifetime_pays(name: str, says: str) -> None:
    assert says in said(name)


def test_an_unknown_model_has_assumed_ratios_and_no_dollar() -> None:
    text = said("claude-opus-55")
    assert "prices not known" in text
    assert "Prices, assumed" in text
    assert "Money, as worth input tokens" in text
    assert "Listed are claude-opus-5-5" in text
    assert "$" not in text
    table = said("acme-1", "gpt-4o")
    assert "acme-1: prices not known, ratios assumed." in table


def test_a_part_of_a_name_is_answered_with_the_names_it_is_part_of() -> None:
    assert "opus: prices not known, ratios assumed; listed are claude-opus-5-5" in said("opus", "gpt-4o")


def test_a_small_window_gets_a_smaller_session_and_says_so() -> None:
    session = as_json("gpt-4o", "--max-view-tokens", "30000")[0]["session"]
    assert (session["preamble"], session["tail"], session["summary"]) == (6_000, 6_000, 3_000)
    assert "Less where that would be more than a fifth of what fits." not in said("gpt-4o", "gpt-5.2")


def test_json_is_the_tuning_with_dollars() -> None:
    (found,) = as_json(
        "gpt-6.1-sol", "--growth", "1000", "--preamble", "10000", "--tail", "5000", "--summary", "1000"
    )
    tuning = tuning_of(
        load_registry().find("gpt-6.1-sol"), growth=1_000, preamble=10_000, tail=5_000, summary=1_000
    )
    assert [*found] == (
        "model provider as_of context_length session ratios trigger trigger_share trigger_by calls_between runway forced"
        " full_compaction_replaces ways prune usd lifetimes assumptions"
    ).split()
    assert (found["trigger"], found["runway"], found["trigger_by"]) == (tuning.trigger, tuning.runway, "rent")
    assert found["forced"] == {
        "at": 272_001,
        "by": "cliff",
        "wall": 1_034_000,
        "cliff": 272_001,
        "target": tuning.limits.target,
        "runway": tuning.limits.runway,
    }
    assert found["usd"]["rent_per_call"] == 0.001
    assert found["usd"]["crossing_the_cliff"] == tuning.amounts.over_cliff / 1e9  # type: ignore[operator]
    assert found["ratios"] == {"read": 0.05, "write": 1.25, "output": 5.0, "assumed": False}
    assert found["lifetimes"]["short"] == 1_800


def test_json_of_an_unknown_model_has_no_dollars() -> None:
    (found,) = as_json("acme-1")
    assert found["usd"] is None
    assert found["ratios"]["assumed"] is True
    assert found["assumptions"]


def test_prices_are_those_of_the_day() -> None:
    def rent(day: str) -> float:
        result = run("gemini-4-argon", "--as-of", day, "--json")
        usd: dict[str, float] = json.loads(result.output)[0]["usd"]
        return usd["rent_per_call"]

    assert rent("2026-12-02") == 2 * rent("2026-11-15")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((" ",), "a model's name is empty"),
        (("gpt-4o", "--preamble", "200000"), "must be kept below 112,000"),
        (("gpt-4o", "--summary-model", "acme-1"), "acme-1 has no known price"),
    ],
    ids=["no name", "too large", "no price"],
)
def test_what_cannot_be_used_is_said_in_one_sentence(arguments: tuple[str, ...], says: str) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, BadInput)
    assert says in str(result.exception)


@pytest.mark.parametrize("arguments", [("--growth", "0"), ("--as-of", "yesterday")], ids=["growth", "day"])
def test_wrong_usage_is_refused(arguments: tuple[str, ...]) -> None:
    assert run(*arguments).exit_code == 2


def test_help_teaches_with_examples() -> None:
    printed = run("--help").output
    assert "lowwater models presets claude-opus-5.5 --growth 500   a chat, not a coder" in printed
