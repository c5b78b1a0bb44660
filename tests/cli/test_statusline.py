"""`lowwater statusline`: the line, and Claude Code's settings, which are left as they were but for it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.cli.statusline import BACKUP, install, line_of, remove
from lowwater.cli.stored_sessions import accounts_of
from lowwater.core.stored import Fingerprint
from lowwater.errors import BadInput
from lowwater.gateway.session_lookup import hint_key
from lowwater.stores.sqlite.store import SqliteStore
from tests.cli.compacted_session import NAME, converse

OURS = {"type": "command", "command": "lowwater statusline", "refreshInterval": 30}
SETTINGS = """{
    "model": "opus",
    "permissions": {"allow": ["Bash(npm run test:*)"], "deny": []},
    "name": "Zoë",
    "hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "check.sh"}]}]
    }
}
"""
"""Settings as a person writes them: some lists on one line, four spaces."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("statusline") / "kept.db"
    converse(path)
    converse(path, "another", subject="billing")
    return path


def shown(path: Path, given: str = "", **env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "lowwater", "statusline", "--store", f"sqlite:///{path}"],
        input=given,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    (line,) = done.stdout.splitlines()
    return line


def test_the_line_has_size_cache_savings_and_the_undo(kept: Path) -> None:
    store = SqliteStore(kept)
    (account,) = accounts_of(store, [NAME])
    store.close()
    last = account.records[-1]
    assert last.usage is not None
    warm = line_of(account, now=last.at + 50)
    assert warm.startswith(f"{last.usage.prompt / 1000:.0f}K of 200K · cache warm 59 min · ")
    assert warm.endswith(f" · undo: lowwater rewind {NAME}")
    assert "$" in warm
    assert line_of(account, now=last.at + 3601).split(" · ")[1] == "cache cold"


def test_the_session_is_the_one_of_the_clients_conversation(kept: Path) -> None:
    store = SqliteStore(kept)
    key = hint_key("x-claude-code-session-id=0c2f-7")
    store.record_fingerprint(Fingerprint(tenant="me", session=NAME, keys=(key,), hint="agent"))
    store.close()
    assert shown(kept).endswith("another"), "the newest, where nobody says which"
    assert shown(kept, '{"session_id": "0c2f-7", "model": {"id": "x"}}').endswith(NAME)
    other = shown(kept, '{"session_id": "unheard-of"}', ANTHROPIC_BASE_URL="")
    assert other == "Lowwater is not in this session · lowwater run -- claude"
    behind = shown(kept, '{"session_id": "unheard-of"}', ANTHROPIC_BASE_URL="http://127.0.0.1:4141/lw-x")
    assert behind == "Lowwater: no answer yet"


@pytest.mark.parametrize("given", ["", "no JSON", '["a list"]', '{"session_id": 3}'])
def test_what_it_cannot_read_is_no_error(given: str, tmp_path: Path) -> None:
    assert "Lowwater" in shown(tmp_path / "absent.db", given)


def test_installing_adds_one_field_and_removing_takes_it_out_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(SETTINGS, encoding="utf-8")
    path.chmod(0o600)
    install(path, OURS["command"])  # type: ignore[arg-type]
    text = path.read_text(encoding="utf-8")
    assert text.startswith(SETTINGS.rstrip().removesuffix("}").rstrip())
    assert json.loads(text) == json.loads(SETTINGS) | {"statusLine": OURS}
    assert path.with_name(path.name + BACKUP).read_text(encoding="utf-8") == SETTINGS
    install(path, OURS["command"])  # type: ignore[arg-type]
    assert path.read_text(encoding="utf-8") == text, "once is enough"
    assert path.stat().st_mode & 0o777 == 0o600
    remove(path)
    assert path.read_bytes() == SETTINGS.encode()
    assert [each.name for each in tmp_path.iterdir()] == ["settings.json"]


@given(
    settings=st.dictionaries(
        st.text(max_size=9).filter(lambda name: name != "statusLine"),
        st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=9), st.lists, max_leaves=4),
        max_size=4,
    ),
    indent=st.sampled_from([None, 2, 4, "\t"]),
    line=st.sampled_from(["\n", "\r\n"]),
    end=st.sampled_from(["", "\n", "\n\n"]),
)
def test_any_settings_are_themselves_again(
    settings: dict[str, object],
    indent: int | str | None,
    line: str,
    end: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("any") / "settings.json"
    before = (json.dumps(settings, indent=indent, ensure_ascii=False) + end).replace("\n", line)
    path.write_bytes(before.encode())
    install(path, "lowwater statusline")
    assert json.loads(path.read_bytes()) == {**settings, "statusLine": OURS}
    remove(path)
    assert path.read_bytes() == before.encode()


def test_another_status_line_stays_unless_it_is_to_be_replaced_and_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    own = {"type": "command", "command": "~/.claude/mine.sh"}
    path.write_text(json.dumps({"statusLine": own, "model": "opus"}, indent=2) + "\n")
    before = path.read_bytes()
    with pytest.raises(BadInput, match="another status line: --replace"):
        install(path, "lowwater statusline")
    assert path.read_bytes() == before
    install(path, "lowwater statusline", replace=True)
    assert json.loads(path.read_bytes())["statusLine"] == OURS
    install(path, "lowwater statusline --store sqlite:///other.db")
    remove(path)
    assert path.read_bytes() == before


def test_settings_that_are_not_json_are_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"model": "opus", // mine\n}')
    with pytest.raises(BadInput, match="nothing was changed"):
        install(path, "lowwater statusline")
    assert path.read_text() == '{"model": "opus", // mine\n}'


def test_a_file_that_was_not_there_is_made_and_goes_again(tmp_path: Path) -> None:
    path = tmp_path / "home" / "settings.json"
    install(path, "lowwater statusline")
    assert json.loads(path.read_bytes()) == {"statusLine": OURS}
    remove(path)
    assert not path.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_linked_file_stays_a_link(tmp_path: Path) -> None:
    real, path = tmp_path / "dotfiles.json", tmp_path / "settings.json"
    real.write_text('{"model": "opus"}')
    path.symlink_to(real)
    install(path, "lowwater statusline")
    assert path.is_symlink()
    assert "statusLine" in json.loads(real.read_bytes())
