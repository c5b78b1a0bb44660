"""`lowwater demo` lets two bills race, recalls and undoes; `--long` has warnings, every compaction and the hindsight."""

import json
import re
from time import process_time

from typer.testing import CliRunner

from lowwater.cli.app import app


def test_the_demo_fits_a_screen_and_takes_no_key_no_network_and_less_than_ten_seconds_of_computing() -> None:
    start = process_time()
    shown = CliRunner().invoke(app, ["demo"], env={"COLUMNS": "80"})
    assert process_time() - start < 10
    assert shown.exit_code == 0, shown.output
    assert len(shown.output.splitlines()) <= 40
    bills = [float(amount) for amount in re.findall(r"tokens +\$([\d.]+)", shown.output)]
    untouched, ours = bills[-2:]
    saved = re.search(r"\$([\d.]+) saved, (\d+)% of the bill", shown.output)
    assert saved
    assert float(saved[1]) == round(untouched - ours, 2)
    assert int(saved[2]) == round(100 * (untouched - ours) / untouched)
    assert re.search(r"\nrecall\n.* finds lw:\d+.*\n  .*(FAIL|Error)", shown.output)
    assert "\nundo\n" in shown.output
    assert shown.output.rstrip().endswith("lowwater audit")


def test_the_long_demo_shows_every_compaction_and_the_hindsight() -> None:
    shown = CliRunner().invoke(app, ["demo", "--long", "--fast"], env={"COLUMNS": "100"})
    assert shown.exit_code == 0, shown.output
    for word in (
        "critical",
        "compacted",
        "what it bought",
        "fewer",
        "with hindsight",
        "optimum",
        "recall",
        "lw:",
        "rewind",
        "before-compaction-",
    ):
        assert word in shown.output
    answer = shown.output.partition("\nrecall\n")[2].partition("\nrewind\n")[0]
    assert re.search(r"FAILED|FAIL|Error", answer.partition(":\n")[2])


def test_the_demo_in_figures() -> None:
    shown = CliRunner().invoke(app, ["demo", "--json"])
    assert shown.exit_code == 0, shown.output
    figures = json.loads(shown.stdout)
    assert figures["prompt_tokens"] < figures["untouched_tokens"]
    assert figures["cost"]["watched"] < figures["cost"]["untouched"]
    assert len(figures["compactions"]) > 1


def test_another_policy_plays_the_session_its_own_way() -> None:
    shown = CliRunner().invoke(
        app, ["demo", "--long", "--fast", "--policy", "guarded"], env={"COLUMNS": "100"}
    )
    assert shown.exit_code == 0, shown.output
    assert "policy guarded" in shown.output
    assert "by leaf" in shown.output
