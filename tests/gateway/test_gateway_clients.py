"""Real clients through the gateway: sessions of many turns with tools, that go on after the client has ended."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from lowwater.core.stored import Listed
from lowwater.stores.sqlite.store import SqliteStore
from lowwater.testing.provider import Answer, Call, CallTools, Provider, Say, Seen
from tests.gateway.real_clients import ClaudeCode, Client, Codex, Hermes, OpenCode
from tests.gateway.request_prefixes import moves
from tests.gateway.scripted_work import DONE, SUMMARY, Work, listed_in, text_of, tool_names
from tests.gateway.serving import served_process
from tests.gateway.test_gateway_compaction import marks

pytestmark = pytest.mark.full

Made = Callable[[Path], Client]
CLIENTS: dict[str, Made] = {
    "claude": ClaudeCode,
    "codex": Codex,
    "codex, newest model": lambda home: Codex(home, "gpt-6.1-sol"),
    "opencode with claude": lambda home: OpenCode(home, "anthropic/claude-opus-4-5"),
    "opencode with gpt": lambda home: OpenCode(home, "openai/gpt-5.5"),
    "hermes": Hermes,
}
EVERY = pytest.mark.parametrize("made", list(CLIENTS.values()), ids=list(CLIENTS))


def kept_in(path: Path) -> list[Listed]:
    """Return the sessions in a store, the one with most turns first."""
    store = SqliteStore(path)
    sessions = sorted(store.sessions(), key=lambda session: -session.turns)
    store.close()
    return sessions


def said_in(path: Path, name: str) -> str:
    store = SqliteStore(path)
    version = store.outline(name).version
    messages = store.messages(name, 1, 10_000, version=version)
    store.close()
    return "".join(repr(one.message) for one in messages)


def check(provider: Provider, path: Path, *, turns: int) -> Listed:
    """Check that all was legal and one session has all turns; beside it there are at most titles."""
    assert provider.refusals == ()
    main, *others = kept_in(path)
    # A client that asks something aside, as Hermes does when it looks back, has the scripted model count that too.
    assert turns <= main.turns <= turns + 12
    assert all(other.turns <= 1 for other in others)
    text = said_in(path, main.name)
    # Some clients put what a shell said into JSON.
    assert all(re.search(rf"{number}000\\+n{number}001", text) for number in range(1, 6))
    return main


@EVERY
def test_a_session_through_run_goes_on_in_the_next_run(made: Made, tmp_path: Path) -> None:
    client, store = made(tmp_path / "home"), tmp_path / "kept.db"
    with Provider(Work()) as provider:
        url = provider.anthropic_base_url
        first = client.ask_behind_run("Run three commands.", url, f"sqlite:///{store}")
        again = client.ask_behind_run("Once more.", url, f"sqlite:///{store}", goes_on=True)
        for printed in (first, again):
            assert DONE in printed
            assert " calls for " in printed
            assert "Traceback" not in printed
        assert check(provider, store, turns=8).about.source.startswith("gateway:me:")
        assert not any("lw-" in seen.path for seen in provider.requests), "the capability goes no further"


@EVERY
def test_a_session_through_serve_goes_on_in_the_same_session(made: Made, tmp_path: Path) -> None:
    client, store = made(tmp_path / "home"), tmp_path / "kept.db"
    with (
        Provider(Work()) as provider,
        served_process(provider.anthropic_base_url, f"sqlite:///{store}", "--no-log") as gateway,
    ):
        client.points_at(gateway.url)
        assert DONE in client.ask("Run three commands.")
        assert DONE in client.ask("Once more.", goes_on=True)
        check(provider, store, turns=8)


@pytest.mark.parametrize(
    "made", [CLIENTS[name] for name in ("claude", "codex", "opencode with claude", "hermes")]
)
def test_a_client_brings_the_gateways_own_key(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOWWATER_GATEWAY_KEYS", "other,open-sesame")
    client, store = made(tmp_path / "home"), f"sqlite:///{tmp_path / 'kept.db'}"
    with (
        Provider(Work()) as provider,
        served_process(provider.anthropic_base_url, store, "--no-log") as gateway,
    ):
        client.points_at(gateway.url, access="open-sesame")
        assert DONE in client.ask("Run three commands.")
        assert all("x-lowwater-key" not in seen.headers for seen in provider.requests)


def talks(requests: tuple[Seen, ...]) -> list[Seen]:
    """Return the requests of the conversation itself."""
    return [seen for seen in requests if seen.method == "POST" and len(tool_names(seen)) > 4]


@pytest.mark.moves_prefix(reason="a ceiling compacts")
@pytest.mark.parametrize(
    ("made", "ceiling"),
    [
        pytest.param(CLIENTS["claude"], 34_000, id="claude"),
        pytest.param(CLIENTS["codex"], 24_000, id="codex"),
        pytest.param(CLIENTS["codex, newest model"], 30_000, id="codex, newest model"),
        pytest.param(CLIENTS["opencode with claude"], 24_000, id="opencode"),
        pytest.param(CLIENTS["hermes"], 32_000, id="hermes"),
    ],
)
def test_a_client_never_notices_that_its_conversation_was_compacted(
    made: Made, ceiling: int, tmp_path: Path
) -> None:
    client, store = made(tmp_path / "home"), tmp_path / "kept.db"
    options = ["--max-view-tokens", str(ceiling), "--protect-last-n", "4", "--no-log"]
    with (
        Provider(Work("seq {0}000 {0}900", calls=12)) as provider,
        served_process(provider.anthropic_base_url, f"sqlite:///{store}", *options) as gateway,
    ):
        client.points_at(gateway.url)
        assert DONE in client.ask("Run twelve commands.")
        assert DONE in client.ask("Once more.", goes_on=True)
        main = check(provider, store, turns=26)
        assert main.compactions >= 1
        requests = talks(provider.requests)
        assert moves(requests) == main.compactions
        assert all(marks(seen.raw) <= 4 for seen in requests)


def test_claude_compacts_by_itself_and_goes_on_in_the_same_session(tmp_path: Path) -> None:
    client, store = ClaudeCode(tmp_path / "home"), tmp_path / "kept.db"
    with (
        Provider(Work()) as provider,
        served_process(provider.anthropic_base_url, f"sqlite:///{store}", "--no-log") as gateway,
    ):
        client.points_at(gateway.url)
        client.ask("Run three commands.")
        client.ask("/compact", goes_on=True)
        assert DONE in client.ask("Once more.", goes_on=True)
        check(provider, store, turns=8)
        assert "is being continued" in text_of(listed_in(provider.requests[-1])[0])


def test_codex_compacts_by_itself_and_goes_on_in_the_same_session(tmp_path: Path) -> None:
    client, store = Codex(tmp_path / "home"), tmp_path / "kept.db"
    client.options += ["-c", "model_auto_compact_token_limit=11000"]
    with (
        Provider(Work("seq {0}000 {0}900")) as provider,
        served_process(provider.anthropic_base_url, f"sqlite:///{store}", "--no-log") as gateway,
    ):
        client.points_at(gateway.url)
        assert DONE in client.ask("Run three commands.")
        assert DONE in client.ask("Once more.", goes_on=True)
        asked = [seen for seen in provider.requests if isinstance(seen.answer, Say | CallTools)]
        summaries = [seen for seen in asked if "CHECKPOINT" in text_of(listed_in(seen)[-1])]
        assert len(summaries) >= 2
        (session,) = kept_in(store)
        assert session.turns == len(asked), "its calls for summaries are billed too"
        assert provider.refusals == ()


def test_opencode_compacts_by_itself_and_goes_on_in_the_same_session(tmp_path: Path) -> None:
    client, store = OpenCode(tmp_path / "home", "anthropic/claude-opus-4-5"), tmp_path / "kept.db"
    small = {"claude-opus-4-5": {"limit": {"context": 14_000, "output": 1_000}}}
    client.env["OPENCODE_CONFIG_CONTENT"] = msgspec.json.encode(
        {"provider": {"anthropic": {"models": small}}}
    ).decode()
    with (
        Provider(Work("seq {0}000 {0}900", calls=6)) as provider,
        served_process(provider.anthropic_base_url, f"sqlite:///{store}", "--no-log") as gateway,
    ):
        client.points_at(gateway.url)
        assert DONE in client.ask("Run six commands.")
        assert DONE in client.ask("Once more.", goes_on=True)
        asked = [seen for seen in provider.requests if seen.answer is not None]
        summaries = [seen for seen in asked if seen.answer == Say(text=SUMMARY)]
        assert len(summaries) == 2
        main, *others = kept_in(store)
        assert main.turns == len(talks(provider.requests))
        # A title, and each question for a summary, which brings the conversation inside it.
        assert [other.turns for other in others] == [1, 1, 1]
        assert provider.refusals == ()


def test_hermes_compacts_by_itself_and_goes_on_in_the_same_session(tmp_path: Path) -> None:
    client, store = Hermes(tmp_path / "home"), tmp_path / "kept.db"
    with (
        Provider(Work("seq {0}00000 {0}03000", calls=10)) as provider,
        # Hermes names no session: what its own summary continues is known by that alone, if the operator says so.
        served_process(
            provider.anthropic_base_url, f"sqlite:///{store}", "--no-log", "--continue-by-summary"
        ) as gateway,
    ):
        client.points_at(gateway.url)
        with (tmp_path / "home" / ".hermes" / "config.yaml").open("a") as config:
            config.write("  context_length: 65536\ncompression:\n  threshold: 0.5\n  protect_last_n: 4\n")
        assert DONE in client.ask("Run ten commands.")
        summaries = [seen for seen in provider.requests if seen.answer == Say(text=SUMMARY)]
        assert len(summaries) == 1
        assert [session.turns for session in kept_in(store)] == [11, 1]
        assert provider.refusals == ()


class Delegating(Work):
    """Calls a sub-agent twice with the same words, which runs a command."""

    def __call__(self, seen: Seen) -> Answer:
        if any("You are the little helper" in text_of(each) for each in listed_in(seen)[:1]):
            return super().__call__(seen)
        results = sum(
            isinstance(each.get("content"), list)
            and any(part.get("type") == "tool_result" for part in each["content"])
            for each in listed_in(seen)
        )
        if results == 2:
            return Say(text="Both have helped.")
        given = {
            "description": "helps",
            "prompt": "You are the little helper. Count.",
            "subagent_type": "general-purpose",
        }
        return CallTools(calls=(Call(name="Agent", arguments=given),))


def test_sub_agents_of_claude_are_sessions_of_their_own(tmp_path: Path) -> None:
    client, store = ClaudeCode(tmp_path / "home"), tmp_path / "kept.db"
    with (
        Provider(Delegating(calls=2)) as provider,
        served_process(provider.anthropic_base_url, f"sqlite:///{store}", "--no-log") as gateway,
    ):
        client.points_at(gateway.url)
        assert "Both have helped." in client.ask("Have two helpers count.")
        assert provider.refusals == ()
    assert [session.turns for session in kept_in(store)] == [3, 3, 3]


class Recalling(Work):
    """Searches through MCP for what the first run printed, once it has run."""

    def __call__(self, seen: Seen) -> Answer:
        searched = [name for name in tool_names(seen) if name.endswith("lowwater_search")]
        if searched and "Look it up." in text_of(listed_in(seen)[-2]) + text_of(listed_in(seen)[-1]):
            return CallTools(calls=(Call(name=searched[0], arguments={"query": "three commands"}),))
        return super().__call__(seen)


def test_claude_recalls_through_mcp(tmp_path: Path) -> None:
    client, path = ClaudeCode(tmp_path / "home"), tmp_path / "kept.db"
    told = {
        "command": sys.executable,
        "args": [
            "-m",
            "lowwater",
            "serve",
            "--mcp",
            "--source",
            "gateway:me",
            "--store",
            f"sqlite:///{path}",
        ],
    }
    config = tmp_path / "mcp.json"
    config.write_bytes(msgspec.json.encode({"mcpServers": {"lowwater": told}}))
    client.env["MCP_CONNECTION_NONBLOCKING"] = "0"
    client.options = ["--mcp-config", str(config), "--allowedTools", "Bash,mcp__lowwater__lowwater_search"]
    with (
        Provider(Recalling()) as provider,
        served_process(
            provider.anthropic_base_url, f"sqlite:///{path}", "--no-log", "--tenant", "me"
        ) as gateway,
    ):
        client.points_at(gateway.url)
        client.ask("Run three commands.")
        client.ask("Look it up.", goes_on=True)
        found = provider.requests[-1].body["messages"]
        results = [
            part
            for each in found
            if isinstance(each["content"], list)
            for part in each["content"]
            if part["type"] == "tool_result"
        ]
        assert "lw:" in str(results[3]["content"])
        assert "Run three commands." in str(results[3]["content"])
        assert provider.refusals == ()
