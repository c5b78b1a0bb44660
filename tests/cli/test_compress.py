"""`lowwater compress` and `lowwater inspect --explain` on files of every shape and both formats."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lowwater.cli.app import app
from lowwater.errors import BadInput
from tests.generated import GeneratedSession, generate_session

RUNNER = CliRunner()
COMMAND = Path(sys.executable).with_name("lowwater")
MODEL = "claude-haiku-4-5"


@pytest.fixture(scope="module")
def session() -> GeneratedSession:
    return generate_session("coding", seed=11, model=MODEL, target_tokens=130_000)


def shapes(session: GeneratedSession) -> dict[str, bytes]:
    chat = session.as_openai_chat()
    form = session.as_anthropic()
    return {
        "array": b"[" + b",".join(chat) + b"]",
        "lines": session.as_canonical_jsonl(),
        "request": b'{"model":"claude-haiku-4-5","max_tokens":9,"system":' + form.system + b',"messages":['
        + b",".join(form.messages) + b"]}",
    }  # fmt: skip


@pytest.mark.parametrize("shape", ["array", "lines", "request"])
def test_the_result_has_the_shape_it_came_in_and_is_smaller(
    session: GeneratedSession, shape: str, tmp_path: Path
) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.write_bytes(shapes(session)[shape])
    done = RUNNER.invoke(app, ["compress", str(source), "--model", MODEL, "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "prompt tokens" in done.output
    data = out.read_bytes()
    assert len(data) < len(source.read_bytes()) / 2
    again = json.loads(RUNNER.invoke(app, ["inspect", str(out), "--json"]).output)
    assert again["shape"] == shape
    assert not any(again["contents"]["unpaired"].values())


def test_untouched_messages_leave_byte_for_byte(session: GeneratedSession, tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.write_bytes(session.as_canonical_jsonl())
    RUNNER.invoke(app, ["compress", str(source), "--out", str(out)])
    before, after = source.read_bytes().splitlines(), out.read_bytes().splitlines()
    assert after[:4] == before[:4]  # the header and the protected head
    assert after[-20:] == before[-20:]


def test_a_program_gets_the_event_and_the_conversation(session: GeneratedSession, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.write_bytes(shapes(session)["array"])
    said = json.loads(RUNNER.invoke(app, ["compress", str(source), "--model", MODEL, "--json"]).output)
    assert said["compacted"]
    assert said["reclaimed"] == said["event"]["before"] - said["event"]["after"] > 0
    assert said["why"].startswith("Asked for by hand")
    assert isinstance(said["conversation"], list)


def test_when_due_leaves_a_small_conversation_alone(tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.write_bytes(b'[{"role":"user","content":"hi"}, {"role":"assistant","content":"hello"}]')
    done = RUNNER.invoke(app, ["compress", str(source), "--when-due", "--out", str(out)])
    assert "next to nothing to remove" in done.output
    assert json.loads(out.read_bytes()) == json.loads(source.read_bytes())


def test_a_pipe_carries_the_result_and_the_table_goes_to_the_terminal(session: GeneratedSession) -> None:
    piped = subprocess.run(
        [COMMAND, "compress", "-", "--model", MODEL],
        input=shapes(session)["array"],
        capture_output=True,
        check=True,
    )
    assert len(json.loads(piped.stdout)) < 300
    assert b"prompt tokens" in piped.stderr


def test_focus_keeps_what_it_names(session: GeneratedSession, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.write_bytes(shapes(session)["array"])
    plain, focused = (
        RUNNER.invoke(app, ["compress", str(source), "--model", MODEL, "--json", *more]).output
        for more in ([], ["--focus", "tests"])
    )
    assert plain != focused


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"[]", "empty"),
        (b"nonsense", "not a conversation"),
        (b'[{"role":"robot","content":""}]', "message 0"),
    ],
    ids=["empty", "prose", "bad role"],
)
@pytest.mark.parametrize("command", ["compress", "inspect --explain"])
def test_bad_input_is_one_sentence(command: str, content: bytes, says: str, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.write_bytes(content)
    failed = RUNNER.invoke(app, [*command.split(), str(source)])
    assert isinstance(failed.exception, BadInput)
    assert says in str(failed.exception)


def test_an_output_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.write_bytes(b'[{"role":"user","content":"hi"}]')
    failed = RUNNER.invoke(app, ["compress", str(source), "--out", str(tmp_path / "no" / "where")])
    assert "cannot be written" in str(failed.exception)


def test_explain_says_what_each_policy_would_do(session: GeneratedSession, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.write_bytes(shapes(session)["request"])
    shown = RUNNER.invoke(app, ["inspect", "--explain", str(source)], env={"COLUMNS": "100"})
    assert shown.exit_code == 0, shown.output
    for word in (
        "runway",
        "rent-or-buy",
        "hermes-classic",
        "never",
        "keep",
        "compact",
        "other policies",
    ):
        assert word in shown.output
    said = json.loads(RUNNER.invoke(app, ["inspect", "--explain", str(source), "--json"]).output)
    assert said["policies"]["never"]["decision"] == "keep"
    assert said["policies"]["threshold"]["decision"] == "compact"
