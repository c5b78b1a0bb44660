"""`lowwater models` reads well on 80 columns and has a stable JSON form."""

import json
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from lowwater.cli.models.show import show
from lowwater.errors import BadInput

app = typer.Typer()
app.command()(show)


def run(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, [*arguments])


def printed(*arguments: str) -> str:
    """The text with its line breaks taken out."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def as_json(*arguments: str) -> Any:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_the_table_fits_eighty_columns_and_cuts_nothing() -> None:
    output = run().output
    assert max(map(len, output.splitlines())) <= 80
    assert output.count("claude-opus-5-5") == 2
    assert "bedrock/claude-sonnet-5-5 " in output
    assert not any(
        line.rstrip().endswith("…") or "… " in line[:26] for line in output.splitlines() if "M " in line
    )


def test_the_table_is_grouped_by_provider_with_its_cache_rule() -> None:
    lines = run().output.splitlines()
    at = lines.index("anthropic · up to 4 marks, each looks back 20 blocks; kept 5m or 1h")
    assert lines[at + 1].split() == ["context", "output", "$", "in", "read", "write", "out", "cliff"]
    assert lines[at + 2].split() == ["claude-fable-5-1", "1M", "128K", "10", "0.25", "12.5", "50"]
    assert sum(line.startswith("openai · ") for line in lines) == 2


def test_the_table_shows_what_has_rules_but_no_price() -> None:
    assert (
        "vllm/… · automatic, longest prefix in steps of 16 tokens; lifetime not published; no prices."
        in printed()
    )


def test_a_card_says_what_was_matched_and_everything_known() -> None:
    text = printed("claude-haiku-5.5-20261001")
    for said in (
        "claude-haiku-5-5 · anthropic",
        "Listed as claude-haiku-5-5; '-20261001' does not change the model.",
        "1,000,000 tokens",
        "at most 128,000 tokens",
        "input 0.1, cache read 0.01, cache write 0.125, long write 0.2, output 0.5 ($ per million tokens)",
        "r 0.1 (read), w 1.25, 2 long (write), ρ 5 (output)",
        "Above 100,000 tokens the whole request is billed at input 0.5, cache read 0.05,",
        "Up to 4 marks, each looks back 20 blocks; kept 5m or 1h, a hit renews it.",
        "A prefix below 512 tokens is not cached.",
        "Bound to its prefix",
        "genai-prices 0.2.1 anthropic/claude-haiku-5-5",
        "2026-11-15",
    ):
        assert said in text
    assert "assumptions" not in text


def test_a_card_of_an_unknown_model_states_its_assumptions_and_no_dollar() -> None:
    text = printed("acme-1")
    assert "no price known: costs are shown in tokens only" in text
    assert "context length 128,000 assumed" in text
    assert "$" not in text


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("claude-opus-55", "Names like it: claude-opus-5"),
        ("azure/gpt-4o", "Listed as gpt-4o, here through azure."),
        ("gpt-5-nano", "Not listed by Lowwater, but by genai-prices."),
        ("grok-4.5", "From 200,000 tokens on the whole request"),
        ("deepseek-v4-pro", "Automatic, whole stored units; lifetime not published. Answers are cached as"),
        ("gpt-6-sol", "the newest 80 are looked at, one of them implicit; kept 30m or 12h."),
        ("qwen3.7-max", "automatic without marks; kept 5m"),
        ("claude-opus-4-5[1m]", "'[1m]' does not change the model"),
        ("[bold]x[/bold]", "asked for [bold]x[/bold]"),
    ],
    ids=["near miss", "resold", "price list", "inclusive", "units", "marks", "either", "brackets", "markup"],
)
def test_a_card_says(name: str, says: str) -> None:
    assert says in printed(name)


def test_a_long_name_is_folded_not_cut() -> None:
    name = "x" * 300
    output = run(name).output
    assert max(map(len, output.splitlines())) <= 300
    assert name in output.replace("\n", "").replace(" ", "")


def test_json_of_one_model_has_its_documented_shape() -> None:
    answer = as_json("openai/gpt-6.1-sol-2026-10-01")
    assert {key: answer[key] for key in ("asked", "how", "ignored_suffix")} == {
        "asked": "openai/gpt-6.1-sol-2026-10-01",
        "how": "listed",
        "ignored_suffix": "-2026-10-01",
    }
    found = answer["model"]
    assert {*found} == {
        *("name", "aliases", "provider", "family", "context_length", "max_output", "usd_per_million_tokens"),
        *("ratios", "cliffs", "cache", "binds_thinking", "notes", "sources", "as_of", "assumptions"),
    }
    assert found["usd_per_million_tokens"] == {
        "input": 2.0,
        "cache_read": 0.1,
        "cache_write": 2.5,
        "cache_write_long": 5.0,
        "output": 10.0,
    }
    assert found["ratios"] == {"read": 0.05, "write": 1.25, "write_long": 2.5, "output": 5.0}
    assert found["cliffs"][0]["above"] == 272_000
    assert found["cache"]["matching"] == {
        "type": "marks",
        "max_marks": 4,
        "lookback_blocks": None,
        "lookback_marks": 80,
        "unmarked": "beside",
    }


def test_json_of_an_unknown_model_has_null_for_its_prices() -> None:
    found = as_json("acme-1")["model"]
    assert (found["usd_per_million_tokens"], found["ratios"], found["cliffs"]) == (None, None, [])
    assert found["assumptions"]


def test_json_of_everything_lists_models_and_families() -> None:
    everything = as_json()
    assert len(everything["models"]) >= 65
    assert {"vllm", "claude"} <= {family["name"] for family in everything["families"]}


@pytest.mark.parametrize("name", ["", "  ", "gpt\udcff"], ids=["empty", "blank", "not text"])
def test_a_name_that_is_none_is_refused_in_one_sentence(name: str) -> None:
    error = run(name).exception
    assert isinstance(error, BadInput)
    assert str(error).startswith("a model's name is ")
