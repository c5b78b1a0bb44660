"""`lowwater inspect` shows what fills a window; bad input is one sentence."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lowwater.cli.app import app
from lowwater.errors import BadInput
from tests.generated import generate_session

RUNNER = CliRunner()


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sessions") / "coding.jsonl"
    path.write_bytes(generate_session("coding", seed=7, turns=40).as_canonical_jsonl())
    return path


def test_a_person_sees_a_bar_and_what_it_is_made_of(session: Path) -> None:
    shown = RUNNER.invoke(app, ["inspect", str(session)], env={"COLUMNS": "80"})
    assert shown.exit_code == 0
    for word in (
        "█",
        "tool results",
        "free",
        "by tool",
        "by age",
        "largest",
        "of the 1,000,000 of claude-opus-5-5",
    ):
        assert word in shown.output
    assert all(len(line) <= 100 for line in shown.output.splitlines())


def test_the_window_is_named_after_the_model_it_belongs_to(session: Path, tmp_path: Path) -> None:
    asked = RUNNER.invoke(app, ["inspect", str(session), "--model", "claude-haiku-4-5"]).output
    assert "of the 200,000 of claude-haiku-4-5" in asked
    (tmp_path / "hi.json").write_text('[{"role": "user", "content": "Good morning to you"}]')
    bare = RUNNER.invoke(app, ["inspect", str(tmp_path / "hi.json")]).output
    assert "tokens in 1 message, 1 turn · 0% of the 128,000 of an unknown model" in bare


def test_a_program_gets_numbers_that_add_up(session: Path) -> None:
    said = json.loads(RUNNER.invoke(app, ["inspect", str(session), "--json"]).output)
    contents = said["contents"]
    assert (said["format"], said["shape"], said["vocabulary"]) == ("openai_chat", "lines", "o200k")
    assert contents["tokens"] == sum(share["tokens"] for share in contents["by_kind"]) > 5_000
    assert contents["messages"] == sum(share["count"] for share in contents["by_age"])


def test_the_same_conversation_as_a_gzipped_request_reads_the_same(session: Path, tmp_path: Path) -> None:
    messages = [json.loads(line) for line in session.read_bytes().splitlines()[1:]]
    packed = tmp_path / "request.json.gz"
    packed.write_bytes(gzip.compress(json.dumps({"model": "claude-opus-5-5", "messages": messages}).encode()))
    read = [json.loads(RUNNER.invoke(app, ["inspect", str(p), "--json"]).output) for p in (session, packed)]
    assert read[0]["contents"] == read[1]["contents"]
    assert read[1]["shape"] == "request"


def test_an_unknown_model_states_its_assumptions(session: Path) -> None:
    shown = RUNNER.invoke(app, ["inspect", str(session), "--model", "nobody-knows-me"])
    assert "128,000" in shown.output
    assert "assumed" in shown.output


def test_broken_pairs_are_pointed_out(tmp_path: Path) -> None:
    path = tmp_path / "orphan.json"
    path.write_bytes(b'[{"role":"user","content":"x"},{"role":"tool","tool_call_id":"gone","content":"r"}]')
    assert "1 results answer no call: message 1" in RUNNER.invoke(app, ["inspect", str(path)]).output


def test_an_empty_conversation_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "empty.json"
    path.write_bytes(b"[]")
    assert "0 tokens in 0 messages" in RUNNER.invoke(app, ["inspect", str(path)]).output


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "nothing to read"),
        (b"[1]", "message 0"),
        (b'{"a":', "cut short"),
        (b'[{"role":"user"', "cut short"),
    ],
    ids=["empty", "no message", "cut", "cut list"],
)
def test_bad_input_is_one_sentence(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    failed = RUNNER.invoke(app, ["inspect", str(path)])
    assert isinstance(failed.exception, BadInput)
    assert says in str(failed.exception)


def test_the_real_command_reads_standard_input_and_fails_in_one_line() -> None:
    command = [str(Path(sys.executable).with_name("lowwater")), "inspect", "-"]
    good = subprocess.run(
        [*command, "--json"], input=b'[{"role":"user","content":"hi"}]', capture_output=True, check=True
    )
    assert json.loads(good.stdout)["contents"]["messages"] == 1
    bad = subprocess.run(command, input=b"hello", capture_output=True, check=False)
    assert bad.returncode == 1
    assert bad.stderr.count(b"\n") == 1
    assert b"Traceback" not in bad.stderr
