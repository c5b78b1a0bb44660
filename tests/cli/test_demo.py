"""`lowwater demo` shows a session filling up, warnings, compactions, what they bought, a recall and a rewind."""

import json
import re
from time import process_time

from typer.testing import CliRunner

from lowwater.cli.app import app


def test_the_demo_shows_everything_without_key_or_network_in_under_twenty_seconds() -> None:
    start = process_time()
    shown = CliRunner().invoke(app, ["demo", "--fast"], env={"COLUMNS": "100"})
    assert process_time() - start < 20
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
    shown = CliRunner().invoke(app, ["demo", "--fast", "--policy", "guarded"], env={"COLUMNS": "100"})
    assert shown.exit_code == 0, shown.output
    assert "policy guarded" in shown.output
    assert "by leaf" in shown.output
