"""`lowwater run`: the client finds the gateway, the gateway finds the provider, what it does is said, and the bill comes last."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lowwater.adapters.models import load_registry
from lowwater.cli.gateway import announcement
from lowwater.core.accounts.figures import costs_of
from lowwater.core.api_calls import Usage
from lowwater.core.costs.prices import cost_of
from lowwater.core.events import Compaction
from lowwater.core.stored import Account
from lowwater.core.tools import EXPAND, PIN, SEARCH
from lowwater.gateway.clients import started, upstream_in
from lowwater.gateway.options import GatewayOptions, project_at, source_of
from lowwater.stores.sqlite.store import SqliteStore
from lowwater.testing.provider import Provider, Seen
from tests.gateway.conftest import MODEL
from tests.gateway.test_gateway_compaction import bare, marks
from tests.gateway.test_gateway_summaries import is_summary, talks

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
    assert re.search(r"\n3 calls for \$[0-9.]+; nothing had to be compacted\n", done.stderr)
    assert re.search(
        rf"\nsee it: +lowwater dashboard \S+ --store sqlite:///{re.escape(str(path))}\n$", done.stderr
    )
    assert "Traceback" not in done.stderr
    store = SqliteStore(path)
    (session,) = store.sessions()
    assert (session.turns, session.about.source) == (3, source_of("me", project_at(Path.cwd())))
    first = store.messages(session.name, 1, 2, version=session.version)[0].message
    assert first.text == "--policy go", "the client's own arguments are its own"
    store.close()
    assert not any(capability.encode() in file.read_bytes() for file in tmp_path.iterdir())


TALKING = """
import sys
import anthropic

login = {"auth_token": "sk-ant-oat01-abcdef0123456789"}
client = anthropic.Anthropic(**(login if sys.argv[1:] == ["login"] else {"api_key": "sk-test"}))
read = {"name": "read", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}}
messages = [{"role": "user", "content": "Let us talk."}]
for turn in range(50):
    client.messages.create(model="MODEL", max_tokens=900, system="You talk.", tools=[read], messages=messages)
    said = f"turn {turn}: " + "we spoke about the reader of files and its lexer; " * 8
    messages += [{"role": "assistant", "content": "I see. " + said}, {"role": "user", "content": said}]
""".replace("MODEL", MODEL)


def talk_through_run(
    folder: Path, *words: str, options: tuple[str, ...] = ()
) -> tuple[str, list[Seen], Account]:
    """Run a client that talks for fifty turns; return what `run` says, what the provider got, and the account."""
    path = folder / "kept.db"
    with Provider(talks) as provider:
        given = [
            "--store",
            f"sqlite:///{path}",
            "--max-view-tokens",
            "12000",
            "--protect-last-n",
            "4",
            *options,
        ]
        done = lowwater(
            "run",
            *given,
            "--",
            sys.executable,
            "-c",
            TALKING,
            *words,
            env={"ANTHROPIC_BASE_URL": provider.anthropic_base_url, "COLUMNS": "120"},
        )
        assert done.returncode == 0, done.stderr
        assert provider.refusals == ()
        requests = list(provider.requests)
    store = SqliteStore(path)
    (account,) = store.accounts()
    store.close()
    assert any(isinstance(event, Compaction) for event in account.events)
    first = requests[0].body
    assert (bare(first["messages"]), bare(first["system"])) == (
        [{"role": "user", "content": [{"type": "text", "text": "Let us talk."}]}],
        first["system"] if isinstance(first["system"], str) else [{"type": "text", "text": "You talk."}],
    )
    return done.stderr, requests, account


def tools_of(seen: Seen) -> list[str]:
    return [tool["name"] for tool in seen.body["tools"]]


@pytest.mark.moves_prefix(reason="a ceiling compacts")
def test_with_an_api_key_summaries_are_written_on_the_cached_prefix_and_billed(tmp_path: Path) -> None:
    said, requests, account = talk_through_run(tmp_path)
    assert said.count(announcement(GatewayOptions(recall=True, summaries="api-keys"))) == 1
    name = account.session.name
    assert re.search(r"\n50 calls for \$\S+; (without Lowwater about \$|[0-9]+ compactions? cost )", said)
    assert re.search(
        r"\n[0-9.]+ compactions in 100 calls; they had [0-9.]+K? tokens written to the cache again\n", said
    )
    assert re.search(rf"\nsee it: +lowwater dashboard {name} .+\nundo: +lowwater rewind {name} ", said)
    assert tools_of(requests[0]) == ["read", SEARCH, EXPAND, PIN]
    assert all(marks(seen.raw) for seen in requests)
    assert all(seen.raw.count(b'"1h"') == marks(seen.raw) for seen in requests), "the lifetime that pays"
    asked = [at for at, seen in enumerate(requests) if is_summary(seen)]
    assert asked
    for at in asked:
        before, body = bare(requests[at - 1].body), bare(requests[at].body)
        assert body["messages"][: len(before["messages"])] == before["messages"]
        assert (body["tools"], body["system"]) == (before["tools"], before["system"])
    written = [each for each in account.events if isinstance(each, Compaction) and each.summarizer == MODEL]
    assert written
    uncached = cost_of(Usage(uncached=written[0].summary_prompts), load_registry().find(MODEL))
    assert 0 < (written[0].cost or 0) < (uncached or 0)
    assert costs_of(account).summaries
    assert "50 calls for $" in said


@pytest.mark.moves_prefix(reason="a ceiling compacts")
def test_on_a_login_no_call_is_added_and_no_mark(tmp_path: Path) -> None:
    _, requests, account = talk_through_run(tmp_path, "login")
    assert tools_of(requests[0]) == ["read", SEARCH, EXPAND, PIN]
    assert (len(requests), costs_of(account).summaries) == (50, 0)
    assert not any(marks(seen.raw) for seen in requests)


@pytest.mark.moves_prefix(reason="a ceiling compacts")
def test_recall_and_summaries_can_be_turned_off(tmp_path: Path) -> None:
    said, requests, _ = talk_through_run(tmp_path, options=("--no-recall", "--no-summaries"))
    assert "compacting when it pays: no calls for summaries; no recall tools\n" in said
    assert {tuple(tools_of(seen)) for seen in requests} == {("read",)}
    assert len(requests) == 50


ONCE = """
import anthropic
said = [{"role": role, "content": f"hello {at}"} for at, role in enumerate(["user", "assistant"] * 3 + ["user"])]
anthropic.Anthropic(api_key="sk-test").messages.create(model="claude-opus-4-5", max_tokens=99, messages=said)
"""


def test_the_bill_is_of_this_run_where_a_session_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    with Provider() as provider:
        env = {"ANTHROPIC_BASE_URL": provider.anthropic_base_url, "COLUMNS": "120"}
        command = ["run", "--quiet", "--store", f"sqlite:///{path}", "--", sys.executable, "-c", ONCE]
        bills = [lowwater(*command, env=env).stderr for _ in range(2)]
    store = SqliteStore(path)
    (session,) = store.sessions()
    store.close()
    assert session.turns == 2
    assert all("\n1 call for $" in bill for bill in bills), bills
    assert not any("compacting when it pays" in bill for bill in bills), "it is quiet about what it will do"


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
