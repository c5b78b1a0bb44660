"""docs/tuning.md says what the commands print and what the code has; run this file to write the page's blocks anew."""

import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from lowwater.adapters.models import load_registry
from lowwater.cli.models.presets import presets
from lowwater.core.costs.prices import price_of
from lowwater.core.costs.tuning import Tuning, tuning_of
from lowwater.core.decisions import CODES, Candidates, PricedPlan
from lowwater.core.policies.explanations import explain
from lowwater.core.policies.rent_or_buy import rent_or_buy
from lowwater.core.proposals import Proposal
from lowwater.settings import Settings
from lowwater.settings.resolve import catalogue
from lowwater.testing.decision_contexts import example_context, offer

PAGE = Path(__file__).parents[2] / "docs" / "tuning.md"
BLOCK = re.compile(r"```console\n\$ (?P<command>[^\n]+)\n(?P<printed>.*?)```", re.DOTALL)
EXPLAIN = re.compile(r"<!-- explain -->\n(?:\n```text\n.*?```\n)?", re.DOTALL)

app = typer.Typer()
app.command()(presets)


def printed(command: str) -> str:
    """What a command of the page prints on 80 columns; it may end in `| head -N`."""
    line, _, head = command.partition(" | head -")
    program, group, name, *arguments = line.split()
    assert (program, group, name) == ("lowwater", "models", "presets"), command
    result = CliRunner(env={"COLUMNS": "80"}).invoke(app, arguments)
    assert result.exit_code == 0, result.output
    lines = [line.rstrip() for line in result.output.splitlines()]
    return "\n".join(lines[: int(head)] if head else lines) + "\n"


def explained() -> str:
    """What `session.explain()` says of a decision to wait, at the prices of a model, with rent of some calls paid."""
    prices = load_registry().find("claude-opus-5-5").prices
    assert prices is not None
    read, prompt, hit = prices.cache_read, 92_000, 90_000

    def priced(plan: Proposal, *, first: int, calls: int, rework: int, summary: int = 0) -> PricedPlan:
        bought = price_of(
            prices,
            prices,
            prompt=prompt,
            hit=hit,
            hit_after=first,
            removes=plan.removes,
            summary_cost=summary,
        )
        return PricedPlan(
            plan=(plan,),
            removes=plan.removes,
            still_cached=first,
            rewritten=prompt - plan.removes - first,
            rent=plan.removes * read * calls // 1_000,
            price=bought.price + rework,
            summary=summary,
            rework=rework,
            saves=plan.removes * read // 1_000,
        )

    riding = (hit * read + 2_400 * prices.input + 3_000 * prices.output) // 1_000
    elision = priced(offer("elide", 26_000), first=31_000, calls=14, rework=9_000_000)
    text = priced(offer("summarize", 49_000), first=20_000, calls=11, rework=21_000_000, summary=riding)
    kept = (hit * read + (prompt - hit) * prices.cache_write) // 1_000
    candidates = Candidates(currency="usd", warm="warm", hit=hit, unchanged_cost=kept, plans=(elision, text))
    now = example_context(prompt, context=1_000_000, candidates=candidates)
    return explain(rent_or_buy(now, Settings()), candidates=candidates)


def rewritten(page: str) -> str:
    page = BLOCK.sub(lambda block: f"```console\n$ {block['command']}\n{printed(block['command'])}```", page)
    return EXPLAIN.sub(lambda _: f"<!-- explain -->\n\n```text\n{explained()}\n```\n", page)


def tuned(name: str, *, growth: int = 2_000) -> Tuning:
    return tuning_of(load_registry().find(name), growth=growth, preamble=20_000, tail=20_000, summary=3_000)


def prose() -> str:
    """The page without its blocks and without code inside lines."""
    text = re.sub(r"```.*?```", "", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.sub(r"`[^`]*`|\(\.\./[^)]*\)", "", text)


@pytest.mark.parametrize(
    "block", list(BLOCK.finditer(PAGE.read_text(encoding="utf-8"))), ids=lambda b: b["command"]
)
def test_a_block_is_what_its_command_prints(block: re.Match[str]) -> None:
    assert block["printed"] == printed(block["command"]), (
        f"run `python {Path(__file__).name}` to write it anew"
    )


def test_the_explanation_is_what_the_code_says() -> None:
    assert f"```text\n{explained()}\n```" in PAGE.read_text(encoding="utf-8")


def test_no_figure_is_written_by_hand() -> None:
    found = re.findall(
        r"[$€]\d[\d.,]*|\d[\d.,]*\s?(?:%|K\b|M\b|tokens|calls|turns|times|dollars)|\d{2,}", prose()
    )
    assert found == []


def test_every_reason_of_the_page_exists() -> None:
    page = PAGE.read_text(encoding="utf-8")
    charts = re.findall(r"\[(?:keep|compact|only what needs no model): ([^\]]+)\]", page)
    named = {code for chart in charts for code in chart.split(", ")}
    assert len(named) > 15
    assert named <= set(CODES)


def test_every_setting_of_the_table_exists() -> None:
    named = set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert {"policy", "max_view_tokens", "cache_ttl"} <= named <= {setting.name for setting in catalogue()}


@pytest.mark.parametrize("tier", ["Opus", "Sonnet", "Haiku", "GPT-4o mini", "Gemini Flash"])
def test_every_tier_has_its_section(tier: str) -> None:
    assert re.search(rf"^### {tier}", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)


class TestWhatThePageClaims:
    def test_halving_the_read_lengthens_the_runway_by_the_root_of_two(self) -> None:
        longer = tuned("claude-opus-5-5").runway / tuned("claude-opus-5").runway
        assert longer == pytest.approx(2**0.5, rel=0.05)

    def test_the_everyday_tier_has_the_ratios_of_the_large_one(self) -> None:
        assert tuned("claude-sonnet-5-5").ratios == tuned("claude-opus-5-5").ratios
        assert tuned("gpt-6.1-sol").trigger == tuned("claude-opus-5-5").trigger

    def test_the_small_models_cliff_is_near_and_comes_first_with_faster_growth(self) -> None:
        assert tuned("claude-haiku-5-5").trigger_by == "rent"
        assert tuned("claude-haiku-5-5", growth=6_000).trigger_by == "cliff"

    def test_half_of_the_window_is_about_right_in_the_smallest_only(self) -> None:
        assert tuned("gpt-4o-mini").trigger_share == pytest.approx(0.5, abs=0.05)
        assert tuned("gpt-5-mini").trigger_share < 0.25

    def test_the_hour_changes_prices_but_not_ratios_of_deepseek(self) -> None:
        model = load_registry().find("deepseek-flash")
        noon, peak = 1_795_780_800.0, 1_795_744_800.0  # a Friday, 12:00 and 02:00 UTC
        one, other = (
            tuning_of(model, growth=2_000, preamble=20_000, tail=20_000, summary=3_000, at=at)
            for at in (noon, peak)
        )
        assert one.amounts.rent * 2 == other.amounts.rent
        assert one.ratios == other.ratios


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
