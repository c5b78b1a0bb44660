"""The Claude Agent SDK, with the command line it brings along, through a real gateway."""

import os
import subprocess
from pathlib import Path

import pytest

from bench.peers.environment import python_with
from lowwater.stores.addresses import open_store
from lowwater.testing.provider import Provider, Say
from tests.gateway.serving import served_process

EXAMPLE = Path(__file__).parents[2] / "examples" / "claude_agent.py"


@pytest.mark.full
def test_the_example_asks_through_the_gateway(tmp_path: Path) -> None:
    python = python_with("claude_agent_sdk", "claude-agent-sdk")
    store = f"sqlite:///{tmp_path}/kept.db"
    with (
        Provider(lambda _: Say(text="It keeps conversations small.")) as provider,
        served_process(provider.anthropic_base_url, store) as gateway,
    ):
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "LOWWATER_URL": gateway.url,
            "ANTHROPIC_API_KEY": "sk-of-a-test",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }
        done = subprocess.run(
            [python, str(EXAMPLE)],
            env=env,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "It keeps conversations small." in done.stdout
        assert provider.refusals == ()
        assert any(seen.path.startswith("/v1/messages") for seen in provider.requests)
    opened = open_store(store)
    assert sum(session.turns for session in opened.sessions()) >= 1
    opened.close()
