"""The status line inside the real Claude Code, in a real terminal beside a gateway."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lowwater.testing.provider import Provider
from tests.gateway.installed_clients import CLAUDE, program_of
from tests.gateway.real_clients import KEY, ClaudeCode
from tests.gateway.scripted_work import DONE, Work

pytestmark = pytest.mark.full
SOCKET = f"lowwater-statusline-{os.getpid()}"


def tmux(*words: str) -> str:
    done = subprocess.run(["tmux", "-L", SOCKET, *words], capture_output=True, text=True, check=False)
    return done.stdout


@pytest.fixture
def terminal() -> Iterator[None]:
    if shutil.which("tmux") is None:
        pytest.skip("no tmux is installed")
    yield
    tmux("kill-server")


def screen_with(*wanted: str, seconds: float = 120) -> str:
    """Return what the terminal shows once it has all these words."""
    end, shown = time.monotonic() + seconds, ""
    while time.monotonic() < end:
        shown = tmux("capture-pane", "-p", "-t", "claude")
        if all(word in shown for word in wanted):
            return shown
        time.sleep(0.3)
    pytest.fail(f"the terminal never showed {wanted}:\n{shown}")


@pytest.mark.usefixtures("terminal")
def test_claude_shows_the_session_below_its_prompt(tmp_path: Path) -> None:
    client, store = ClaudeCode(tmp_path / "home"), f"sqlite:///{tmp_path / 'kept.db'}"
    # What its first start would ask: a theme, whether the key may be used, whether the folder is trusted.
    known = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
    }
    known["projects"] = {
        str(client.work): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    }
    (client.home / ".claude.json").write_text(json.dumps(known))
    settings = client.home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{\n  "permissions": {"allow": ["Bash"]}\n}\n')
    before = settings.read_bytes()
    lowwater = [sys.executable, "-m", "lowwater"]
    env = client.env | {"TERM": "xterm-256color", "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    subprocess.run([*lowwater, "statusline", "install", "--store", store], env=env, check=True)
    with Provider(Work()) as provider:
        variables = [
            f"{name}={value}"
            for name, value in (env | client.behind_run(provider.anthropic_base_url)).items()
        ]
        command = [*lowwater, "run", "--store", store, "--", str(program_of(CLAUDE))]
        line = shlex.join(["env", "-i", *variables, *command])
        tmux(
            "new-session",
            "-d",
            "-s",
            "claude",
            "-x",
            "150",
            "-y",
            "45",
            "-c",
            str(client.work),
            f"{line}; sleep 5",
        )
        screen_with("Lowwater: no answer yet")
        tmux("send-keys", "-t", "claude", "-l", "Run three commands.")
        time.sleep(1)
        tmux("send-keys", "-t", "claude", "Enter")
        shown = screen_with(DONE, "so far")
        (status,) = [line for line in shown.splitlines() if "so far" in line]
        assert "of 1M" in status or "of 200K" in status, status
        assert "cache warm" in status
        assert "not compacted" in status
        assert provider.refusals == ()
    subprocess.run([*lowwater, "statusline", "remove"], env=env, check=True)
    assert settings.read_bytes() == before
