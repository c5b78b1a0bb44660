"""`lowwater demo` shows a session filling up, warnings, compactions, what they bought, a recall and a rewind."""

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


def test_another_policy_and_seed_play_another_session() -> None:
    shown = CliRunner().invoke(
        app, ["demo", "--fast", "--seed", "3", "--policy", "guarded"], env={"COLUMNS": "100"}
    )
    assert shown.exit_code == 0, shown.output
    assert "policy guarded" in shown.output
    assert "by leaf" in shown.output
