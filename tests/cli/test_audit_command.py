"""`lowwater audit` on real files, as people and programs see it."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from lowwater.cli.audit import _start_before, audit
from lowwater.cli.wording import CAUSE_WORDS, from_the_end
from lowwater.lab.audit.findings import CAUSES
from lowwater.logs.importers import FOLDERS
from tests.lab.compacted_logs import COMPACT, EDIT, OTHER, READ, claude_log

app = typer.Typer(pretty_exceptions_enable=False)
app.command("audit")(audit)

START = 1_770_638_400
DAY = 86_400


def claude_code(
    name: str, *, calls: int, at: int = START, model: str = "claude-opus-4-6", step: int = 2_000
) -> str:
    """Return a session as Claude Code writes it: each call reads the prompt before and adds a tool result."""
    lines: list[dict[str, Any]] = []

    def add(kind: str, message: dict[str, Any], moment: int) -> None:
        stamp = f"{_utc(moment)}.000Z"
        number = f"{name}-{len(lines)}"
        parent = lines[-1]["uuid"] if lines else None
        lines.append(
            {"type": kind, "message": message, "uuid": number, "parentUuid": parent, "sessionId": name}
            | {
                "timestamp": stamp,
                "isSidechain": False,
                "version": "2.0.1",
                "cwd": "/home/shop",
                "userType": "external",
            }
        )

    add("user", {"role": "user", "content": "please look"}, at)
    prompt, read = 30_000, 0
    for call in range(calls):
        usage = {
            "input_tokens": 0,
            "cache_creation_input_tokens": prompt - read,
            "cache_read_input_tokens": read,
            "output_tokens": 50,
        }
        tool = {"type": "tool_use", "id": f"t{call}", "name": "Read", "input": {"file_path": "a.py"}}
        answer = {
            "role": "assistant",
            "id": f"m{name}{call}",
            "type": "message",
            "model": model,
            "content": [tool],
        }
        add("assistant", answer | {"usage": usage}, at + 10 * call + 5)
        result = {"type": "tool_result", "tool_use_id": f"t{call}", "content": "line of text\n" * 300}
        add("user", {"role": "user", "content": [result]}, at + 10 * call + 6)
        read, prompt = prompt, prompt + step
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def _utc(moment: int) -> str:
    from datetime import UTC, datetime

    return f"{datetime.fromtimestamp(moment, tz=UTC):%Y-%m-%dT%H:%M:%S}"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "projects"
    (folder / "one").mkdir(parents=True)
    for number in range(4):
        path = folder / "one" / f"{number}.jsonl"
        path.write_text(claude_code(f"session-{number}", calls=40 + number, at=START + number * DAY))
    return folder


def run(logs: Path, *args: str, columns: int = 80) -> Result:
    env = {"COLUMNS": str(columns), "NO_COLOR": "1", "TERM": "dumb", "TZ": "UTC"}
    env["XDG_CACHE_HOME"] = str(logs.parent / "cache")
    return CliRunner(env=env).invoke(app, [str(logs), *args])


def shown(logs: Path, *args: str, columns: int = 80) -> str:
    done = run(logs, *args, columns=columns)
    assert done.exit_code == 0, done.output
    assert max(map(len, done.stdout.splitlines())) <= columns
    return done.stdout


def told(logs: Path, *args: str) -> Any:
    done = run(logs, *args, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("by", ["session", "model", "day", "week", "project", "tool"])
def test_a_person_sees_where_the_money_went(logs, by, columns):
    page = shown(logs, "--by", by, columns=columns)
    for words in (
        " were paid: 4 sessions, 166 calls,",
        ") avoidable: compact when it pays",
        "lowwater run --shadow -- claude",
        "cache reads",
        "first call of a session",
        "what compaction could do",
    ):
        assert words in page
    named = {
        "session": "02-12 please look",
        "model": "claude-opus-4-6",
        "day": "2026-02-12",
        "week": "2026-W07",
        "project": "home/shop",
        "tool": "Read ",
    }
    assert named[by] in page
    assert "a day, 2026-02-09 to 2026-02-12" in page


def test_without_a_path_the_logs_of_the_agents_are_found(logs, tmp_path, monkeypatch):
    for folder in FOLDERS:
        monkeypatch.delenv(folder.variable, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    env = {"COLUMNS": "80", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    nothing = CliRunner(env=env).invoke(app, [])
    assert "no logs of Claude Code, Codex" in str(nothing.exception)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(logs.parent))
    found = CliRunner(env=env).invoke(app, ["--json"])
    assert json.loads(found.stdout)["total"]["calls"] == 166
    assert found.stderr == f"lowwater: reading Claude Code: {logs}\n"


def test_what_filled_the_prompts_costs_what_they_cost(logs):
    said = told(logs)
    by_tool = {one["name"]: one for one in said["tools"]}
    spending = said["total"]["spending"]
    assert sum(one["cost"] for one in said["tools"]) == pytest.approx(
        sum(spending.values()) - spending["output"], rel=1e-4
    )
    assert by_tool["Read"]["calls"] == 166
    assert sum(one["tokens"] for one in said["tools"]) == pytest.approx(said["total"]["prompt"], rel=1e-4)


def test_a_program_gets_the_same_sums_three_ways(logs):
    said = told(logs)
    assert said["total"]["calls"] == 166
    for lines in ("sessions", "models", "days", "projects"):
        assert sum(line["cost"] for line in said[lines]) == said["total"]["cost"]
    assert sum(said["total"]["spending"].values()) == pytest.approx(said["total"]["cost"], abs=500)
    assert said["total"]["misses"]["first"]["misses"] == 4
    assert said["possible"]["rent_or_buy"] < said["possible"]["recorded"] == said["total"]["cost"]
    assert said["accuracy"]["p90_error"] < 0.01
    assert said["sessions"][0]["name"] == "session-3"


def test_the_second_run_reads_nothing_again_and_says_the_same(logs):
    first, second = told(logs), told(logs)
    assert (first.pop("files_from_cache"), second.pop("files_from_cache")) == (0, 4)
    assert first == second
    assert told(logs, "--no-cache")["files_from_cache"] == 0


def test_since_leaves_earlier_days_out(logs):
    said = told(logs, "--since", "2026-02-11")
    assert [line["name"] for line in said["days"]] == ["2026-02-11", "2026-02-12"]
    assert "no recorded session has a call since" in str(run(logs, "--since", "2027-01-01").exception)


def test_the_first_three_lines_say_what_was_paid_what_was_avoidable_and_what_to_do(logs):
    paid, avoidable, command = shown(logs, columns=100).splitlines()[:3]
    assert re.fullmatch(r"\$[0-9.]+ were paid: 4 sessions, 166 calls, 2026-02-09 to 2026-02-12", paid)
    assert re.match(r"About \$[0-9.]+ \([0-9]+%\) avoidable: ", avoidable)
    assert command == "Do that: lowwater run -- claude · only see it: lowwater run --shadow -- claude"


def test_two_periods_are_compared(logs):
    page = shown(logs, "--since", "2026-02-11", "--compare")
    rows = {line[:18].strip(): line.split()[-3:] for line in page.splitlines()}
    assert rows["sessions"] == ["2", "2", "+0%"]
    assert rows["calls"] == ["81", "85", "+5%"]
    said = told(logs, "--since", "2026-02-11", "--compare")
    assert (said["before"]["calls"], said["total"]["calls"]) == (81, 85)
    assert _start_before("2026-02-11", "2026-02-12") == "2026-02-09"
    assert "--compare needs --since" in str(run(logs, "--compare").exception)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_watching_reads_again_when_a_log_changes_and_ctrl_c_ends_it(logs):
    import pty

    ours, theirs = pty.openpty()
    env = os.environ | {"XDG_CACHE_HOME": str(logs.parent / "cache"), "TZ": "UTC", "TERM": "xterm"}
    command = [sys.executable, "-m", "lowwater", "audit", str(logs), "--watch"]
    with subprocess.Popen(command, env=env, stdout=theirs, stderr=theirs, start_new_session=True) as watching:
        try:
            os.close(theirs)
            assert "4 sessions, 166 calls" in read_until(ours, "Ctrl-C ends it")
            new = logs.parent / "4.jsonl"
            new.write_text(claude_code("session-4", calls=7, at=START + 5 * DAY))
            new.rename(logs / "one" / "4.jsonl")
            assert "5 sessions, 173 calls" in read_until(ours, "Ctrl-C ends it")
            watching.send_signal(signal.SIGINT)
            assert watching.wait(30) == 130
        finally:
            watching.kill()
    os.close(ours)
    assert "--watch needs a terminal" in str(run(logs, "--watch").exception)


def read_until(file: int, words: str) -> str:
    """Return what a program writes to its terminal until these words; the test's own timeout ends it otherwise."""
    shown = ""
    while words not in shown:
        shown += os.read(file, 65_536).decode(errors="replace")
    return shown


def test_broken_lines_and_files_without_a_session_are_told(logs):
    with (logs / "one" / "0.jsonl").open("a") as file:
        file.write('{"type": "user", "mess\n')
    (logs / "notes.txt").write_text("nothing to see")
    page = shown(logs)
    assert "1 broken line left out" in page
    assert "1 file without a session" in page
    assert told(logs)["broken_lines"] == 1


def test_an_unknown_price_is_said_and_never_nothing(logs):
    (logs / "one" / "4.jsonl").write_text(claude_code("strange", calls=3, model="nobody-knows"))
    page = shown(logs)
    assert "what 3 calls cost is unknown" in " ".join(page.split())
    (line,) = [line for line in told(logs)["models"] if line["name"] == "nobody-knows"]
    assert line["cost"] is None
    assert line["lost"] is None


def test_only_sessions_without_prices_make_a_page_too(tmp_path):
    logs = tmp_path / "projects"
    logs.mkdir()
    (logs / "a.jsonl").write_text(claude_code("strange", calls=3, model="nobody-knows"))
    page = shown(logs)
    assert "unknown" in page
    assert "$" not in page


def test_sessions_without_any_usage_are_counted_and_said_to_be_unknown(tmp_path):
    logs = tmp_path / "projects"
    logs.mkdir()
    lines = [json.loads(line) for line in claude_code("silent", calls=3).splitlines()]
    for line in lines:
        line["message"].pop("usage", None)
    (logs / "a.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    page = shown(logs)
    assert "1 session, 3 calls" in page
    assert "no prompt's size was recorded" in " ".join(page.split())


def test_what_is_not_there_or_holds_nothing_is_one_sentence(logs, tmp_path):
    assert "is not there" in str(run(tmp_path / "nowhere").exception)
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "notes.txt").write_text("nothing to see")
    said = str(run(empty).exception)
    assert said.startswith("no recorded session was found")
    assert "notes.txt" in said


def test_a_page_for_a_browser_is_written_too(logs, tmp_path):
    place = tmp_path / "audit.html"
    assert "4 sessions" in shown(logs, "--html", str(place))
    assert "<html" in place.read_text(encoding="utf-8")
    assert "cannot be written" in str(run(logs, "--html", str(tmp_path / "no" / "where.html")).exception)


def test_what_compactions_made_it_read_again_is_told_in_figures_and_named_only_if_asked_for(tmp_path):
    logs = tmp_path / "projects"
    logs.mkdir()
    steps = [READ, *[OTHER] * 10, COMPACT, READ, EDIT]
    claude_log(steps, logs / "one.jsonl")
    place = tmp_path / "audit.html"
    page = shown(logs, "--html", str(place), "--no-cache")
    assert "what those compactions made the agents read or do again" in page
    report = told(logs)
    whole, version = report["damage"]
    assert (whole["client"], whole["version"], version["version"]) == ("claude-code", "", "2.1.7")
    assert (whole["compactions"], whole["repeating"]) == (1, 1)
    html = place.read_text(encoding="utf-8")
    assert "2.1.7" in html
    assert "src/a.py" not in page + html + json.dumps(report)
    page = shown(logs, "--html", str(place), "--with-contents")
    assert "src/a.py" in page
    assert "src/a.py" in place.read_text(encoding="utf-8")
    assert [one["subject"] for one in told(logs, "--with-contents")["repeated"]] == ["src/a.py"]


INTERRUPTED = """
import signal, sys
# A shell that runs the tests in the background has them ignore interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
def watch(event, arguments):
    if event == "open" and str(arguments[0]).endswith("2.jsonl"):
        signal.raise_signal(signal.SIGINT)
sys.addaudithook(watch)
import typer
from lowwater.cli.audit import audit
from lowwater.cli.command import run
app = typer.Typer(pretty_exceptions_enable=False)
app.command("audit")(audit)
sys.exit(run(lambda: app(sys.argv[1:])))
"""


def test_an_interrupt_shows_what_was_read_and_the_next_run_goes_on(logs):
    env = os.environ | {"XDG_CACHE_HOME": str(logs.parent / "cache"), "TZ": "UTC"}
    command = [sys.executable, "-c", INTERRUPTED, str(logs)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 130, done.stderr
    assert "interrupted: what was read so far\n$" in done.stdout
    assert done.stderr == "lowwater: interrupted; run it again to go on from here\n"
    assert " were paid: 2 sessions, 81 calls" in done.stdout
    assert told(logs)["files_from_cache"] == 2


def test_the_command_starts_without_loading_numpy():
    code = "import sys, lowwater.cli.audit; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_cause_has_words_that_fit_a_narrow_terminal():
    assert list(CAUSE_WORDS) == list(CAUSES)
    assert max(map(len, CAUSE_WORDS.values())) <= 40


def test_a_long_name_keeps_its_end():
    assert from_the_end("project/abcdef", 7) == "…abcdef"
    assert from_the_end("abc", 7) == "abc"
