"""`lowwater run`: the client finds the gateway, the gateway finds the provider, and the bill comes at the end."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lowwater.gateway.clients import started, upstream_in
from lowwater.gateway.options import project_at, source_of
from lowwater.stores.sqlite.store import SqliteStore
from lowwater.testing.provider import Provider

AGENT = Path(__file__).with_name("small_agent.py")


def lowwater(*arguments: str, env: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "lowwater", *arguments],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_client_runs_behind_a_gateway_and_its_bill_is_printed(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    with Provider() as provider:
        done = lowwater(
            "run",
            "--store",
            f"sqlite:///{path}",
            "--",
            sys.executable,
            str(AGENT),
            "--policy",
            "go",
            env={"ANTHROPIC_BASE_URL": provider.anthropic_base_url, "COLUMNS": "120"},
        )
        assert [seen.path for seen in provider.requests] == ["/v1/messages"] * 3
    assert done.returncode == 3, done.stderr
    (capability,) = re.findall(r"asked http://127\.0\.0\.1:[0-9]+/(lw-[\w-]{32})\n", done.stdout)
    assert capability not in done.stderr
    assert "3 calls for $" in done.stderr
    assert "Traceback" not in done.stderr
    store = SqliteStore(path)
    (session,) = store.sessions()
    assert (session.turns, session.about.source) == (3, source_of("me", project_at(Path.cwd())))
    first = store.messages(session.name, 1, 2, version=session.version)[0].message
    assert first.text == "--policy go", "the client's own arguments are its own"
    store.close()
    assert not any(capability.encode() in file.read_bytes() for file in tmp_path.iterdir())


ONCE = """
import anthropic
said = [{"role": role, "content": f"hello {at}"} for at, role in enumerate(["user", "assistant"] * 3 + ["user"])]
anthropic.Anthropic(api_key="sk-test").messages.create(model="claude-opus-4-5", max_tokens=99, messages=said)
"""


def test_the_bill_is_of_this_run_where_a_session_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    with Provider() as provider:
        env = {"ANTHROPIC_BASE_URL": provider.anthropic_base_url, "COLUMNS": "120"}
        command = ["run", "--store", f"sqlite:///{path}", "--", sys.executable, "-c", ONCE]
        bills = [lowwater(*command, env=env).stderr for _ in range(2)]
    store = SqliteStore(path)
    (session,) = store.sessions()
    store.close()
    assert session.turns == 2
    assert all("\n1 call for $" in bill for bill in bills), bills


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["text", "json"])
def test_in_the_shadow_nothing_is_changed_and_nothing_is_kept(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    path = tmp_path / "kept.db"
    with Provider() as provider:
        env = {"ANTHROPIC_BASE_URL": provider.anthropic_base_url, "LOWWATER_STORE": f"sqlite:///{path}"}
        command = ["run", "--shadow", *options, "--", sys.executable, str(AGENT), "--policy", "go"]
        done = lowwater(*command, env={**env, "COLUMNS": "120"})
        tools = [tool["name"] for seen in provider.requests for tool in seen.body.get("tools", ())]
    assert done.returncode == 3, done.stderr
    assert not path.exists()
    assert not any("lowwater" in name for name in tools)
    first, *_, last = done.stderr.strip().splitlines()
    assert "shadow: every byte goes through as it comes" in first
    if not options:
        assert re.search(r"3 calls for \$[0-9.]+; with Lowwater they would have cost \$[0-9.]+", last), last
        return
    bill = msgspec.json.decode(last)
    assert bill["would_have_saved"] == bill["cost"] - bill["would_have_cost"]
    assert (bill["calls"], "net" in bill) == (3, False)


def test_a_program_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    done = lowwater("run", "--", "no-such-agent", env={"LOWWATER_STORE": f"sqlite:///{tmp_path}/x.db"})
    assert done.returncode == 1
    assert done.stderr.startswith("lowwater: there is no program 'no-such-agent'")


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, ("https://api.anthropic.com", "https://api.openai.com")),
        ({"OPENAI_BASE_URL": "http://local/v1"}, ("https://api.anthropic.com", "http://local/v1")),
    ],
    ids=["the providers' own", "the user's"],
)
def test_the_gateway_goes_where_the_client_would_have_gone(
    env: dict[str, str], expected: tuple[str, str]
) -> None:
    found = upstream_in(env)
    assert (found.anthropic, found.openai) == expected


def test_codex_is_told_by_arguments_before_its_own() -> None:
    client = started(["/usr/bin/codex", "exec", "hi"], "http://g", {"OPENAI_API_KEY": "k"})
    assert client.command[0] == "/usr/bin/codex"
    assert client.command[-2:] == ("exec", "hi")
    table = client.command[2]
    assert 'base_url="http://g/v1"' in table
    assert 'env_key="OPENAI_API_KEY"' in table
    assert "k" not in client.env.values()


def test_opencode_keeps_what_its_user_has_set() -> None:
    own: dict[str, Any] = {"theme": "dark", "provider": {"openai": {"options": {"timeout": 5}}}}
    client = started(["opencode"], "http://g", {"OPENCODE_CONFIG_CONTENT": msgspec.json.encode(own).decode()})
    told = msgspec.json.decode(client.env["OPENCODE_CONFIG_CONTENT"])
    assert told["theme"] == "dark"
    assert told["provider"]["openai"]["options"] == {"timeout": 5, "baseURL": "http://g/v1"}
