"""`lowwater sessions export`: what went in comes out, without secrets unless they are wanted."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from lowwater import Lowwater
from lowwater.core.stored import Account, Stored
from lowwater.session.internals import internals
from lowwater.settings import PrivacySettings, Settings
from lowwater.stores.addresses import open_store
from tests.cli.session_store import MODEL, SECRET, address, error_of, sessions, talk, told

COMMAND = Path(sys.executable).with_name("lowwater")
CHAT = [
    b'{"role": "system","content":"Be brief."}',
    b'{ "content" : "caf\\u00e9 \xe2\x9c\x93", "role":"user", "ts": 1.50, "extra": {"b":1,"a":[ ]} }',
    b'{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",'
    b'"function":{"name":"bash","arguments":"{ \\"cmd\\": \\"ls\\" }"}}],"usage":{"prompt_tokens":7}}',
    b'{"role":"tool","tool_call_id":"c1","content":"a\\nb","is_error":false}',
]


@pytest.fixture(scope="module")
def talked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("store") / "sessions.db"
    talk(store, "work", title="Work")
    return store


@pytest.fixture
def secretive(tmp_path: Path) -> Path:
    """A store with a secret in a message, in a title, in a system prompt and in a summary made of them."""
    store = tmp_path / "secret.db"
    settings = Settings(privacy=PrivacySettings(redact=False))
    library = Lowwater(model=MODEL, store=address(store), settings=settings)
    session = library.session("work", title=f"about {SECRET}")
    said = [{"role": "user", "content": f"the key is {SECRET}, use it"}]
    for number in range(12):
        said += [
            {"role": "assistant", "content": f"answer {number} " + "so " * 2500},
            {"role": "user", "content": f"question {number} " + "and " * 2500},
        ]
    internals(session).sync_messages(said, system=f"Never print {SECRET}.")
    assert session.compress() is not None
    library.close()
    return store


def read(store: Path, name: str) -> tuple[Stored, Account]:
    opened = open_store(address(store))
    try:
        return opened.read(name), opened.accounts([name])[0]
    finally:
        opened.close()


def test_every_line_is_the_message_as_it_came_whatever_was_compacted(tmp_path: Path) -> None:
    store, source = tmp_path / "s.db", tmp_path / "talk.jsonl"
    more = [
        b'{"role":"%s","content":"%s"}' % (role, b"w%d " % n * 900)
        for n in range(12)
        for role in (b"user", b"assistant")
    ]
    source.write_bytes(b'{"id":"x","model":"gpt-6.1-sol"}\n' + b"\n".join(CHAT + more) + b"\n")
    assert sessions(store, "import", str(source)).exit_code == 0
    library = Lowwater(model="gpt-6.1-sol", store=address(store))
    assert library.session("talk").compress() is not None
    library.close()
    done = sessions(store, "export", "talk", "--no-redact")
    assert done.stdout_bytes.splitlines() == CHAT + more
    assert done.stderr == ""


def test_a_message_written_over_several_lines_becomes_one_line(tmp_path: Path) -> None:
    store, source = tmp_path / "s.db", tmp_path / "talk.json"
    source.write_bytes(b'[\n  {\n    "role": "user",\r\n    "content": "a\\nb"\n  }\n]')
    sessions(store, "import", str(source))
    (line,) = sessions(store, "export", "talk").stdout_bytes.splitlines()
    assert line == b'{     "role": "user",      "content": "a\\nb"   }'


def test_a_conversation_that_changed_its_format_comes_out_in_the_last_one(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    library = Lowwater(model="gpt-6.1-sol", store=address(store))
    session = library.session("talk")
    for raw in CHAT[1:]:
        session.append(json.loads(raw))
    session.append(
        {"role": "user", "content": [{"type": "document", "source": {"type": "url", "url": "https://a.b"}}]}
    )
    library.close()
    out = tmp_path / "talk.jsonl"
    assert sessions(store, "export", "talk", "--out", str(out)).exit_code == 0
    assert sessions(store, "import", str(out), "--name", "again").exit_code == 0
    kinds = [json.loads(line)["content"] for line in out.read_bytes().splitlines()]
    assert kinds[1][0]["type"] == "tool_use"
    assert kinds[2][0]["type"] == "tool_result"


def test_the_view_is_what_the_model_is_shown(talked: Path) -> None:
    library = Lowwater(model=MODEL, store=address(talked))
    view, history = library.session("work").view(), library.session("work").history()
    library.close()
    shown = sessions(talked, "export", "work", "--view").stdout_bytes.splitlines()
    assert [json.loads(line) for line in shown] == view
    assert len(view) < len(history)
    assert [
        json.loads(line) for line in sessions(talked, "export", "work").stdout_bytes.splitlines()
    ] == history


def test_a_file_is_never_overwritten_by_accident_and_is_its_owners_alone(
    talked: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    assert sessions(talked, "export", "work", "--out", str(out)).exit_code == 0
    assert out.stat().st_mode & 0o777 == 0o600
    written = out.read_bytes()
    out.write_bytes(b"precious")
    assert "--force" in error_of(sessions(talked, "export", "work", "--out", str(out)))
    assert out.read_bytes() == b"precious"
    assert sessions(talked, "export", "work", "--out", str(out), "--force").exit_code == 0
    assert out.read_bytes() == written
    packed = tmp_path / "out.jsonl.gz"
    sessions(talked, "export", "work", "--out", str(packed))
    assert gzip.decompress(packed.read_bytes()) == written
    missing = tmp_path / "no" / "such" / "folder"
    assert "cannot be written" in error_of(sessions(talked, "export", "work", "--out", str(missing)))


def test_a_program_gets_the_messages_or_where_they_are(talked: Path, tmp_path: Path) -> None:
    said = told(talked, "export", "work")
    assert (said["session"], said["lines"], len(said["exported"])) == ("work", 24, 24)
    out = tmp_path / "out.jsonl"
    assert "exported" not in told(talked, "export", "work", "--out", str(out))
    assert len(out.read_bytes().splitlines()) == 24


def test_a_pipe_carries_nothing_but_the_lines(talked: Path) -> None:
    piped = subprocess.run(
        [COMMAND, "sessions", "export", "work", "--store", address(talked)], capture_output=True, check=True
    )
    assert piped.stdout == sessions(talked, "export", "work", "--out", "-").stdout_bytes
    assert piped.stderr == b""


def test_secrets_are_concealed_and_how_many_is_said(secretive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = sessions(secretive, "export", "work")
    assert SECRET not in done.stdout
    assert "[redacted: " in done.stdout
    assert "secrets in 1 message are redacted" in done.stderr
    wanted = sessions(secretive, "export", "work", "--no-redact")
    assert SECRET in wanted.stdout
    assert wanted.stderr == ""
    monkeypatch.setenv("LOWWATER_REDACT", "false")
    assert SECRET in sessions(secretive, "export", "work").stdout
    assert SECRET not in sessions(secretive, "export", "work", "--redact").stdout


def test_a_whole_session_without_secrets_has_them_nowhere(secretive: Path, tmp_path: Path) -> None:
    out, other = tmp_path / "whole.jsonl", tmp_path / "other.db"
    done = sessions(secretive, "export", "work", "--whole", "--out", str(out))
    assert "are redacted" in done.stderr
    assert SECRET in str(read(secretive, "work"))
    assert sessions(other, "import", str(out)).exit_code == 0
    stored, account = read(other, "work")
    assert SECRET not in str((stored, account))
    assert SECRET.encode() not in msgspec.msgpack.encode((stored, account))
    assert len(stored.entries) == len(read(secretive, "work")[0].entries)


def test_a_whole_session_comes_back_without_loss_and_goes_on(talked: Path, tmp_path: Path) -> None:
    out, other = tmp_path / "whole.jsonl.gz", tmp_path / "other.db"
    assert sessions(talked, "export", "work", "--whole", "--no-redact", "--out", str(out)).exit_code == 0
    assert sessions(other, "import", str(out)).exit_code == 0
    (before, account), (after, again) = read(talked, "work"), read(other, "work")
    encode = msgspec.msgpack.encode
    assert encode(after.entries) == encode(before.entries)
    assert (after.about, after.carried) == (before.about, before.carried)
    assert (again.records, again.events) == (account.records, account.events)
    assert len(again.records) == 12
    shown = [told(store, "show", "work") for store in (talked, other)]
    assert shown[0] == shown[1]
    library = Lowwater(model=MODEL, store=address(other))
    session = library.session("work")
    session.rewind("before-compaction-1")
    assert len(session.view()) == 24
    library.close()


def test_what_a_client_took_back_is_left_out_unless_all_is_wanted(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    library = Lowwater(model=MODEL, store=address(store))
    session = library.session("work")
    first = {"role": "user", "content": "first"}
    internals(session).sync_messages(
        [first, {"role": "assistant", "content": "no"}, {"role": "user", "content": "why"}]
    )
    internals(session).sync_messages([first, {"role": "assistant", "content": "yes"}])
    library.close()
    done = sessions(store, "export", "work")
    assert [json.loads(line)["content"] for line in done.stdout.splitlines()] == ["first", "yes"]
    assert "2 messages that were retracted are left out" in done.stderr
    every = sessions(store, "export", "work", "--all").stdout.splitlines()
    assert [json.loads(line)["content"] for line in every] == ["first", "no", "why", "yes"]


def test_wishes_that_exclude_each_other_are_refused(talked: Path) -> None:
    assert "exclude each other" in error_of(sessions(talked, "export", "work", "--view", "--whole"))
