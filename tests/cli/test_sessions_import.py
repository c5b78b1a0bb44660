"""`lowwater sessions import`: files of every shape become sessions, and bad ones stop nothing."""

import gzip
import json
import os
from pathlib import Path

import pytest

from lowwater import Lowwater
from lowwater.cli.conversations import recorded_in
from lowwater.core.formats.files import message_lines
from lowwater.errors import BadInput, LowwaterError
from tests.cli.session_store import MODEL, address, error_of, names, sessions, talk, told
from tests.generated import GeneratedSession, generate_session

CANONICAL = Path(__file__).parents[3] / "shared" / "transcripts" / "canonical"


@pytest.fixture(scope="module")
def session() -> GeneratedSession:
    return generate_session("coding", seed=5, model=MODEL, target_tokens=20_000)


def shapes(session: GeneratedSession) -> dict[str, bytes]:
    chat, form = session.as_openai_chat(), session.as_anthropic()
    return {
        "array": b"[" + b",".join(chat) + b"]",
        "lines": session.as_canonical_jsonl(),
        "gzipped": gzip.compress(session.as_canonical_jsonl()),
        "request": b'{"model":"claude-haiku-4-5","max_tokens":9,"system":'
        + form.system
        + b',"messages":['
        + b",".join(form.messages)
        + b"]}",
    }


def messages(session: GeneratedSession, shape: str) -> list[bytes]:
    if shape == "request":
        return list(session.as_anthropic().messages)
    chat = session.as_openai_chat()
    return session.as_canonical_jsonl().splitlines()[1:] if shape in {"lines", "gzipped"} else chat


@pytest.mark.parametrize("shape", ["array", "lines", "gzipped", "request"])
def test_every_shape_goes_in_and_comes_out(session: GeneratedSession, shape: str, tmp_path: Path) -> None:
    store, source = tmp_path / "s.db", tmp_path / "my.talk.jsonl.gz"
    source.write_bytes(shapes(session)[shape])
    done = sessions(store, "import", str(source), "--title", "Mine")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("my.talk: ")
    card = told(store, "show", "my.talk")
    assert (card["about"]["title"], card["about"]["source"]) == ("Mine", "import")
    assert bool(card["system"])
    out = sessions(store, "export", "my.talk", "--no-redact").stdout_bytes.splitlines()
    assert out == messages(session, shape)


def test_the_model_is_the_one_given_else_the_files_else_an_assumed_one(tmp_path: Path) -> None:
    store, bare, named = tmp_path / "s.db", tmp_path / "bare.json", tmp_path / "named.json"
    bare.write_bytes(b'[{"role":"user","content":"hi"}]')
    named.write_bytes(b'{"model":"gpt-6.1-sol","messages":[{"role":"user","content":"hi"}]}')
    assert "names no model" in sessions(store, "import", str(bare)).stderr
    assert told(store, "import", str(named))["imported"][0]["model"] == "gpt-6.1-sol"
    sessions(store, "import", str(named), "--name", "other", "--model", MODEL)
    assert told(store, "show", "other")["model"] == MODEL


def test_a_bad_file_does_not_stop_the_others_and_the_exit_code_says_so(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    good, bad, gone = tmp_path / "good.json", tmp_path / "bad.json", tmp_path / "gone.json"
    good.write_bytes(b'[{"role":"user","content":"hi"}]')
    bad.write_bytes(b'[{"role":"user"')
    other = tmp_path / "other.json"
    other.write_bytes(b'[{"role":"user","content":"ho"}]')
    done = sessions(store, "import", *map(str, (good, bad, gone, other)))
    assert done.exit_code == 1
    assert "2 sessions with 2 messages imported" in done.stdout
    said = done.stderr.splitlines()
    assert [
        line.startswith(f"lowwater: {file}: ") for line, file in zip(said, (bad, gone), strict=False)
    ] == [True] * 2
    assert names(store) == ["other", "good"]
    again = sessions(store, "import", *map(str, (good, bad)), "--force", "--json")
    assert again.exit_code == 1
    report = json.loads(again.stdout)
    assert [each["name"] for each in report["imported"]] == ["good"]
    assert [each["file"] for each in report["failed"]] == [str(bad)]


def test_an_existing_name_is_refused_unless_forced(tmp_path: Path) -> None:
    store, source = tmp_path / "s.db", tmp_path / "talk.json"
    source.write_bytes(b'[{"role":"user","content":"first"}]')
    sessions(store, "import", str(source))
    source.write_bytes(b'[{"role":"user","content":"second"}]')
    refused = sessions(store, "import", str(source))
    assert refused.exit_code == 1
    assert "there is a session “talk” already" in refused.stderr
    assert "first" in sessions(store, "export", "talk").stdout
    source.write_bytes(b"[]")
    assert sessions(store, "import", str(source), "--force").exit_code == 1
    assert "first" in sessions(store, "export", "talk").stdout
    source.write_bytes(b'[{"role":"user","content":"second"}]')
    assert sessions(store, "import", str(source), "--force").exit_code == 0
    exported = sessions(store, "export", "talk").stdout
    assert "second" in exported
    assert "first" not in exported


def test_standard_input_needs_a_name(tmp_path: Path) -> None:
    store, data = tmp_path / "s.db", b'[{"role":"user","content":"hi"}]'
    unnamed = sessions(store, "import", "-", data=data)
    assert unnamed.exit_code == 1
    assert "give one with --name" in unnamed.stderr
    assert sessions(store, "import", "-", "--name", "piped", data=data).exit_code == 0
    assert names(store) == ["piped"]


def test_one_name_does_not_fit_several_files(tmp_path: Path) -> None:
    failed = sessions(tmp_path / "s.db", "import", "a.json", "b.json", "--name", "x")
    assert isinstance(failed.exception, BadInput)
    assert "one by one" in error_of(failed)


def test_a_file_name_that_is_no_text_is_spelt_out(tmp_path: Path) -> None:
    source = os.path.join(os.fsencode(tmp_path), b"caf\xe9.json")  # noqa: PTH118 - a name of bytes
    with open(source, "wb") as file:  # noqa: PTH123
        file.write(b'[{"role":"user","content":"hi"}]')
    said = told(tmp_path / "s.db", "import", os.fsdecode(source))
    assert said["imported"][0]["name"] == "caf\\udce9"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The lines of a whole session called `work`."""
    store = tmp_path_factory.mktemp("whole") / "s.db"
    talk(store, "work")
    return sessions(store, "export", "work", "--whole").stdout_bytes.splitlines()


def test_a_whole_session_keeps_its_name_unless_given_one(whole: list[bytes], tmp_path: Path) -> None:
    store, source = tmp_path / "s.db", tmp_path / "file.jsonl"
    source.write_bytes(b"\n".join(whole))
    assert sessions(store, "import", str(source)).stdout == f"work: 24 messages, on {MODEL}\n"
    assert sessions(store, "import", str(source)).exit_code == 1
    assert sessions(store, "import", str(source), "--name", "copy", "--title", "Copy").exit_code == 0
    assert names(store) == ["copy", "work"]
    assert told(store, "show", "copy")["about"]["title"] == "Copy"
    with_model = sessions(store, "import", str(source), "--name", "x", "--model", MODEL)
    assert "leave --model out" in with_model.stderr


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda lines: lines[:-1], "not whole"),
        (lambda lines: [lines[0], *lines[2:]], "not whole"),
        (lambda lines: [*lines[:3], b'{"entry"', *lines[4:]], "line 4: "),
        (lambda lines: [lines[0].replace(b'n":1', b'n":2'), *lines[1:]], "form 2"),
        (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], "does not begin with its opening"),
    ],
    ids=["cut short", "an entry missing", "broken line", "newer", "out of order"],
)
def test_a_damaged_whole_session_is_refused_and_nothing_is_kept(
    whole: list[bytes], damage: object, says: str, tmp_path: Path
) -> None:
    assert callable(damage)
    store, source = tmp_path / "s.db", tmp_path / "file.jsonl"
    source.write_bytes(b"\n".join(damage(whole)))
    failed = sessions(store, "import", str(source))
    assert failed.exit_code == 1
    assert says in failed.stderr
    assert names(store) == []


@pytest.mark.full
@pytest.mark.skipif(not CANONICAL.is_dir(), reason="the recorded sessions are not on this machine")
def test_every_recorded_session_comes_out_as_it_went_in_compacted_or_not(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    files = sorted(CANONICAL.glob("*/*.jsonl.gz"))
    assert sessions(store, "import", *map(str, files)).exit_code == 0
    library = Lowwater(model=MODEL, policy="rent-or-buy", store=address(store))
    for name in names(store):
        session = library.session(name)
        session.prepare()
        session.compress()
    library.close()
    assert sum(row["compactions"] for row in told(store)["sessions"]) > len(files) / 2
    different = []
    for file in files:
        lines = gzip.decompress(file.read_bytes()).strip().split(b"\n")[1:]
        out = sessions(store, "export", file.name.removesuffix(".jsonl.gz"), "--no-redact")
        if out.exit_code or out.stdout_bytes != b"".join(line + b"\n" for line in lines):
            different.append(file.name)
    assert different == []
    assert len(files) == len(names(store))


@pytest.mark.full
@pytest.mark.skipif(not CANONICAL.is_dir(), reason="the recorded sessions are not on this machine")
def test_every_log_as_its_agent_wrote_it_goes_in_and_its_messages_come_out(tmp_path: Path) -> None:
    kinds = ("claude-code", "codex", "copilot-cli", "gemini-cli", "swe-agent", "message-lists")
    files = [file for kind in kinds for file in sorted((CANONICAL.parent / kind).iterdir())]
    store = tmp_path / "s.db"
    told_of = json.loads(sessions(store, "import", "--json", *map(str, files)).stdout)
    assert told_of["failed"] == []
    assert {each["file"] for each in told_of["imported"]} == set(map(str, files))
    library = Lowwater(model=MODEL, policy="rent-or-buy", store=address(store))
    for name in names(store):
        library.session(name).prepare()
        library.session(name).compress()
    library.close()
    kept = iter(told_of["imported"])
    for file in files:
        for conversation in recorded_in(str(file)):
            name = next(kept)["name"]
            lines = message_lines(conversation.messages)
            out = sessions(store, "export", name, "--no-redact")
            assert out.stdout_bytes == b"".join(line + b"\n" for line in lines), file.name


def test_an_unreadable_store_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "s.db").write_bytes(b"not a database" * 99)
    failed = sessions(tmp_path / "s.db", "list")
    assert isinstance(failed.exception, LowwaterError)


def test_a_file_that_is_missing_is_named_once(tmp_path: Path) -> None:
    missing, folder = tmp_path / "missing.json", tmp_path
    done = sessions(tmp_path / "s.db", "import", str(missing), str(folder))
    assert done.exit_code == 1
    assert f"{missing}: no such file" in done.output
    assert done.output.count(str(missing)) == 1
    assert done.output.count(f"{folder} is a directory") == 1
    assert f"{folder}: {folder}" not in done.output
