"""`lowwater replay` as a user runs it, on exported message lists."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from lowwater.cli.replay import replay
from lowwater.core.formats.codec import encode_messages
from lowwater.errors import BadSetting
from tests.generated import generate_session

FAST = ("--workers", "1", "--full", "none", "--model", "anthropic-r10")
app = typer.Typer(pretty_exceptions_enable=False)
app.command()(replay)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Return a folder with four recorded sessions, one of them without times, one without an answer; and a page."""
    place: Path = tmp_path_factory.mktemp("recorded")
    for seed in (1, 2, 3):
        made = generate_session("coding", seed=seed, turns=25)
        lines = []
        for raw, at in zip(encode_messages(made.messages, "openai_chat"), made.times, strict=True):
            line = json.loads(raw)
            lines.append(json.dumps(line if seed == 3 else {**line, "ts": at}))
        (place / f"{seed}.jsonl").write_text("\n".join(lines))
    (place / "unanswered.jsonl").write_text('{"role": "user", "content": "Is anybody there?"}\n')
    (place / "notes.md").write_text("# Notes\n")
    return place


def run(*args: object, columns: int = 120) -> Result:
    env = {"COLUMNS": str(columns), "NO_COLOR": "1", "TERM": "dumb"}
    return CliRunner(env=env).invoke(app, [str(arg) for arg in args])


@pytest.mark.parametrize("columns", [80, 120])
def test_a_table_has_a_line_for_each_policy_and_fits_the_terminal(folder, columns):
    done = run(folder, *FAST, columns=columns)
    assert done.exit_code == 0, done.output
    assert "3 sessions" in done.stdout
    said = " ".join(done.stdout.split())
    assert "1 session without times: played with 20 seconds between calls" in said
    assert "1 of 4 sessions left out (25%)" in said
    assert "unanswered.jsonl unanswered: no call in it has an answer" in said
    assert "notes.md: not a recording in a known format" in said
    for policy in ("rent-or-buy", "claude-code ~", "hermes-runway ~", "never", "optimum"):
        assert any(line.startswith(policy) for line in done.stdout.splitlines())
    assert max(map(len, done.stdout.splitlines())) <= columns
    assert "…" not in done.stdout.partition(" left out")[0], "only paths are shortened"


def test_the_json_is_all_that_is_printed_and_has_what_is_promised(folder):
    done = run(
        folder, "--policies", "rent-or-buy,never", "--model", "anthropic-r10", "--workers", 1, "--json"
    )
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
    told = json.loads(done.stdout)
    assert set(told) == {"configuration", "policies", "sessions", "skipped", "unread"}
    assert list(told["policies"]) == ["rent-or-buy", "never", "optimum", "as-recorded"]
    ours = told["policies"]["rent-or-buy"]
    assert set(ours["cost_over_optimum"]) == {"mean", "p95", "max"}
    assert ours["cost_usd"] > 0
    assert 0 <= ours["recall"]["in_view"] + ours["recall"]["one_recall"] <= 1
    assert ours["recall"]["measured_on"] == "full"
    assert set(ours["arms"]) == {"pessimistic"}
    assert set(ours["metrics"]) == {
        "events_per_100_turns",
        "turns_between_events",
        "summary_calls",
        "reclaimed_per_event",
        "rewritten",
        "prompt_and_summary_tokens",
        "earliest_changed",
        "prunes_per_summary",
    }
    assert len(told["sessions"]) == 4
    assert sum("skipped" in session for session in told["sessions"]) == 1
    assert [session["assumed"] for session in told["sessions"]] == [[], [], ["times"], []]
    assert (told["skipped"]["sessions"], told["skipped"]["of_sessions"]) == (1, 4)
    assert told["skipped"]["each"][0]["path"].endswith("unanswered.jsonl")
    assert [Path(each["path"]).name for each in told["unread"]] == ["notes.md"]


def test_every_report_names_the_configuration_and_has_the_recorded_session_beside_it(folder, tmp_path):
    page, kept = tmp_path / "replay.html", tmp_path / "run"
    args = ("--policies", "rent-or-buy", "--model", "anthropic-r10", "--workers", 1, "--run", kept)
    done = run(folder, *args, "--html", page, "--configuration", "keyless")
    assert done.exit_code == 0, done.output
    told = json.loads(run(folder, *args, "--json", "--configuration", "keyless").stdout)
    said = " ".join(done.stdout.split())
    about = "recall, and no model is asked: summaries are extracted"
    assert told["configuration"] == {"name": "keyless", "about": about}
    assert f"configuration keyless: {about}" in said
    ours, recorded = (told["policies"][name] for name in ("rent-or-buy", "as-recorded"))
    cost = ours["full"]["neutral"]["cost_with_rework_usd"]
    assert f"rent-or-buy in the configuration keyless costs ${cost:,.2f}, rework included" in said
    assert "uses that are not in view, by what replaced the result" in said
    late = ours["recall"]["late"]
    assert f"older {late['uses']:,} {late['lost'].get('summary', 0):.1%}" in said
    assert f"than as recorded (${recorded['cost_with_rework_usd']:,.2f})" in said
    assert "in the configuration “keyless”" in page.read_text()
    assert "“As-recorded” is the session with its client" in page.read_text()


def test_an_unknown_configuration_is_answered_with_the_nearest(folder):
    with pytest.raises(BadSetting, match="did you mean shipped"):
        CliRunner().invoke(app, [str(folder), *FAST, "--configuration", "shiped"], catch_exceptions=False)


def test_a_page_is_written_for_a_browser(folder, tmp_path):
    page = tmp_path / "replay.html"
    done = run(folder, "--policies", "rent-or-buy,never", *FAST, "--html", page)
    assert done.exit_code == 0, done.output
    assert page.read_text().startswith("<!doctype html>")


def test_a_run_folder_is_filled_and_used(folder, tmp_path):
    args = (folder, "--policies", "never", *FAST, "--json", "--run", tmp_path / "run")
    first, again = run(*args), run(*args)
    assert len(list((tmp_path / "run").glob("*.result"))) == 4
    assert first.stdout == again.stdout


COMMAND = """
import sys, typer
from lowwater.cli.command import run
from lowwater.cli.replay import replay
app = typer.Typer(pretty_exceptions_enable=False)
app.command()(replay)
if __name__ == "__main__":
    sys.exit(run(app))
"""


LOST = """
import os, signal, sys, typer
from concurrent.futures.process import BrokenProcessPool
from lowwater.cli import replay_run
from lowwater.cli.command import run
from lowwater.cli.replay import replay

class Lost:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        sum(range(1_000))

class Engine(replay_run.LocalEngine):
    def map(self, work, tasks):
        for task in tasks:
            Lost()
            if os.environ["THEN"] == "the workers are gone":
                raise BrokenProcessPool("a worker ended abruptly")
            yield work(task)

replay_run.LocalEngine = Engine
app = typer.Typer(pretty_exceptions_enable=False)
app.command()(replay)
sys.exit(run(app))
"""
"""The command with an interrupt that arrives inside a finalizer, where Python drops the KeyboardInterrupt."""


@pytest.mark.parametrize("then", ["the workers are gone", "the run goes on"])
def test_an_interrupt_that_is_lost_on_its_way_ends_the_run_all_the_same(folder, tmp_path, then):
    script = tmp_path / "command.py"
    script.write_text(LOST)
    done = subprocess.run(
        [sys.executable, str(script), str(folder), *FAST, "--policies", "never"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | {"THEN": then},
    )
    assert done.returncode == 130, done.stderr
    assert done.stderr.endswith("lowwater: interrupted\n")
    assert "Exception ignored in" in done.stderr


@pytest.mark.full
def test_an_interrupted_run_shows_what_it_has_and_is_resumed(folder, tmp_path):
    script, kept = tmp_path / "command.py", tmp_path / "run"
    script.write_text(COMMAND)
    args = [
        str(folder),
        "--policies",
        "rent-or-buy,never",
        "--full",
        "rent-or-buy",
        "--model",
        "anthropic-r10",
    ]
    places = ["--run", str(kept), "--json"]
    begun = subprocess.Popen(
        [sys.executable, str(script), *args, "--workers", "2", *places],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    while begun.poll() is None and not list(kept.glob("*.result")):
        pass
    os.killpg(begun.pid, signal.SIGINT)
    told, said = begun.communicate(timeout=60)
    assert begun.returncode == 130
    assert json.loads(told)["sessions"], "what was played is reported"
    assert b"interrupted; run it again" in said
    assert b"Traceback" not in said
    resumed, whole = run(*args, "--workers", 1, *places), run(*args, "--workers", 1, "--json")
    assert json.loads(resumed.stdout) == json.loads(whole.stdout)


@pytest.mark.parametrize(
    ("args", "why"),
    [
        pytest.param(("nowhere",), "is not there", id="no such path"),
        pytest.param((".", "--policies", "claud-code"), "claude-code", id="no such policy"),
        pytest.param((".",), "no recorded session", id="nothing recorded"),
    ],
)
def test_what_cannot_be_replayed_is_refused_in_one_sentence(tmp_path, monkeypatch, args, why):
    monkeypatch.chdir(tmp_path)
    done = run(*args)
    assert done.exit_code == 1
    assert why in str(done.exception)


def test_a_session_without_a_model_is_charged_as_one_that_is_named(folder):
    done = run(folder / "1.jsonl", "--workers", 1, "--full", "none")
    assert done.exit_code == 0, done.output
    said = " ".join(done.stdout.split())
    assert "1 session without a model whose prices are known: charged as claude-opus-5-5" in said
