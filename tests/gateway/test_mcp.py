"""Recall over the Model Context Protocol: the official client, a real process, a real store."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from lowwater import Lowwater
from lowwater.store.sqlite.store import SqliteStore
from lowwater.values.settings import CompressionSettings, Settings


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A store with two sessions, one of them compacted."""
    path = tmp_path / "sessions.db"
    store = SqliteStore(path)
    settings = Settings(compression=CompressionSettings(max_view_tokens=6_000, protect_last_n=2))
    library = Lowwater(model="claude-opus-4-5", store=store, settings=settings)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Find the defect."}]
    for turn in range(12):
        call = {
            "type": "tool_use",
            "id": f"c{turn}",
            "name": "terminal",
            "input": {"command": f"cat part_{turn}"},
        }
        result = f"marker-{turn} " + f"line {turn} of it\n" * 300
        messages += [
            {"role": "assistant", "content": [call]},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": f"c{turn}", "content": result}],
            },
        ]
    library.session("older", source="gateway:aaaa").take_in([{"role": "user", "content": "something else"}])
    library.session("work", source="gateway:bbbb").prepare(messages)
    store.close()
    return path


def asking(path: Path, *calls: tuple[str, dict[str, Any]], options: tuple[str, ...] = ()) -> list[str]:
    """Start the server as a client does, and return what it answers."""

    async def asked() -> list[str]:
        arguments = ["-m", "lowwater", "mcp", "--store", f"sqlite:///{path}", *options]
        async with (
            stdio_client(StdioServerParameters(command=sys.executable, args=arguments)) as (read, write),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            listed = await session.list_tools()
            answers = [",".join(sorted(tool.name for tool in listed.tools))]
            for name, given in calls:
                result = await session.call_tool(name, given)
                answers.append("".join(getattr(part, "text", "") for part in result.content))
            return answers

    return asyncio.run(asked())


def test_a_client_searches_and_expands_what_was_compacted(kept: Path) -> None:
    tools, sessions, found, whole = asking(
        kept,
        ("lowwater_sessions", {}),
        ("lowwater_search", {"query": "marker-3"}),
        ("lowwater_expand", {"handle": "lw:9", "lines": [1, 1]}),
    )
    assert tools == "lowwater_expand,lowwater_search,lowwater_sessions"
    assert sessions.splitlines()[0].startswith("work · claude-opus-4-5 · 25 messages, 1 compaction")
    assert "lw:9" in found
    assert "marker-3 line 3 of it" in whole


def test_a_session_that_is_not_named_is_not_there(kept: Path) -> None:
    _, sessions, found, other = asking(
        kept,
        ("lowwater_sessions", {}),
        ("lowwater_search", {"query": "something"}),
        ("lowwater_search", {"query": "marker-3", "session": "work"}),
        options=("--source", "gateway:aaaa"),
    )
    assert "work" not in sessions
    assert "something else" in found
    assert "There is no session 'work'" in other


def test_bad_arguments_are_answered_by_a_sentence(kept: Path) -> None:
    _, unknown, odd = asking(
        kept, ("lowwater_expand", {"handle": "lw:999"}), ("lowwater_expand", {"handle": "what"})
    )
    assert "999" in unknown
    assert "Traceback" not in unknown + odd
    assert odd
