"""`lowwater run` adds the recall tools and nothing else: each real client's first request beside that of a run without a gateway."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lowwater.core.recall.recalled import anthropic_tools, openai_tools
from lowwater.core.strict_json import write_json
from lowwater.core.tools import EXPAND, PIN, SEARCH
from lowwater.gateway.clients import started
from lowwater.testing.provider import Provider, Seen
from tests.gateway.provider_proxy import direct_to
from tests.gateway.real_clients import ClaudeCode, Client, Codex, Hermes, OpenCode
from tests.gateway.scripted_work import DONE, Work, tool_names

_SLACK = 600
"""Bytes by which paths, dates and ids of two runs may differ, and those of cache marks with their lifetime."""
_RECALL = max(len(write_json(anthropic_tools())), len(write_json(openai_tools())))
"""Bytes of the recall tools."""


def largest(provider: Provider) -> Seen:
    """Return the first request of the conversation itself: titles and the like come without tools."""
    assert provider.refusals == ()
    return next(seen for seen in provider.requests if seen.method == "POST" and tool_names(seen))


class CodexItself(Codex):
    """Codex with the provider it has built in, at another address: it takes no proxy for its web sockets."""

    def straight(self, provider: Provider) -> None:
        self.env["CODEX_API_KEY"] = self.env["OPENAI_API_KEY"]
        self.options += ["-c", f'openai_base_url="{provider.openai_base_url}"']


@pytest.mark.full
@pytest.mark.parametrize(
    "made",
    [
        pytest.param(ClaudeCode, id="claude"),
        pytest.param(CodexItself, id="codex"),
        pytest.param(lambda home: OpenCode(home, "anthropic/claude-opus-4-5"), id="opencode with claude"),
        pytest.param(lambda home: OpenCode(home, "openai/gpt-5.5"), id="opencode with gpt"),
        pytest.param(Hermes, id="hermes"),
    ],
)
def test_a_first_request_through_run_is_a_direct_one_with_the_recall_tools(
    made: Callable[[Path], Client], tmp_path: Path
) -> None:
    with Provider(Work()) as provider, direct_to(provider.anthropic_base_url, tmp_path / "tls") as direct:
        client = made(tmp_path / "direct")
        if isinstance(client, CodexItself):
            client.straight(provider)
        elif isinstance(client, Hermes):
            client.points_at(provider.anthropic_base_url)
        else:
            client.env |= direct.env
        assert DONE in client.ask("Run three commands.")
        by_itself = largest(provider)
    with Provider(Work()) as provider, direct_to(provider.anthropic_base_url, tmp_path / "tls") as direct:
        client, store = made(tmp_path / "run"), f"sqlite:///{tmp_path}/kept.db"
        if isinstance(client, CodexItself | Hermes):
            printed = client.ask_behind_run("Run three commands.", provider.anthropic_base_url, store)
        else:
            client.env |= direct.env
            printed = client.ask_behind_run("Run three commands.", "", store)
        assert DONE in printed
        through = largest(provider)
    sizes = f"direct {len(by_itself.raw):,} bytes and {len(tool_names(by_itself))} tools, through run {len(through.raw):,} and {len(tool_names(through))}"
    print(sizes)  # noqa: T201 - the sizes belong to the test's report
    assert len(through.raw) <= len(by_itself.raw) + _RECALL + _SLACK, sizes
    assert tool_names(through) == tool_names(by_itself) | {SEARCH, EXPAND, PIN}


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, "true"),
        ({"ANTHROPIC_BASE_URL": "https://api.anthropic.com/"}, "true"),
        ({"ENABLE_TOOL_SEARCH": "auto:5"}, None),
        ({"ANTHROPIC_BASE_URL": "https://other.example/anthropic.com"}, None),
    ],
    ids=["Anthropic's own", "Anthropic's by name", "what the user has set stays", "another provider"],
)
def test_claude_searches_its_tools_as_it_does_without_a_gateway(
    env: dict[str, str], expected: str | None
) -> None:
    assert started(["claude"], "http://127.0.0.1:1", env).env.get("ENABLE_TOOL_SEARCH") == expected


def test_a_client_with_a_proxy_does_not_ask_it_for_the_gateway() -> None:
    env = {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "intern"}
    told = started(["claude"], "http://127.0.0.1:4141", env).env
    assert told["NO_PROXY"] == told["no_proxy"] == "intern,127.0.0.1"
    assert "NO_PROXY" not in started(["claude"], "http://127.0.0.1:4141", {}).env
