"""Recall over the Model Context Protocol: the official client, a real process, a real store."""

import asyncio
import os
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from lowwater import Lowwater
from lowwater.gateway.options import project_at, source_of
from lowwater.session.internals import internals
from lowwater.settings import CompressionSettings, Settings
from lowwater.stores.sqlite.store import SqliteStore


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
    internals(library.session("older", source="gateway:aaaa")).sync_messages(
        [{"role": "user", "content": "something else"}]
    )
    library.session("work", source="gateway:bbbb").prepare(messages)
    store.close()
    return path


def asking(path: Path, *calls: tuple[str, dict[str, Any]], options: tuple[str, ...] = ()) -> list[str]:
    """Start the server as a client does, and return what it answers."""

    async def asked() -> list[str]:
        arguments = ["-m", "lowwater", "serve", "--mcp", "--store", f"sqlite:///{path}", *options]
        # The client passes on few variables by itself, and not where the package is.
        server = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))
        async with (
            stdio_client(server) as (read, write),
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
        options=("--source", "gateway:bbbb"),
    )
    assert tools == "lowwater_expand,lowwater_pin,lowwater_search,lowwater_sessions"
    assert sessions.splitlines()[0].startswith("work · claude-opus-4-5 · 25 messages, 1 compaction")
    assert "lw:9" in found
    assert "marker-3 line 3 of it" in whole


def test_a_client_has_its_session_compacted_where_that_is_offered(kept: Path) -> None:
    mine = ("--source", "gateway:bbbb")
    without, refused = asking(kept, ("lowwater_compact", {}), options=mine)
    assert "lowwater_compact" not in without
    assert "lowwater_compact" in refused
    tools, done = asking(kept, ("lowwater_compact", {"focus": "marker-3"}), options=(*mine, "--compact"))
    assert tools == "lowwater_compact,lowwater_expand,lowwater_pin,lowwater_search,lowwater_sessions"
    assert done.startswith(("Compacted: the prompt goes from about", "Nothing compacted: what could go"))


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


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        ((), "mine"),
        (("--project", "PROJECT"), "theirs"),
        (("--tenant", "team"), "the team's"),
        (("--tenant", "teams"), ""),
        (("--session", "of the team"), ""),
    ],
    ids=["where it is started", "another project", "another tenant", "no such tenant", "a session outside"],
)
def test_it_sees_only_the_tenant_and_the_project_it_was_started_for(
    tmp_path: Path, options: tuple[str, ...], seen: str
) -> None:
    here, elsewhere = project_at(Path.cwd()), tmp_path / "elsewhere"
    sources = {
        "mine": source_of("me", here),
        "theirs": source_of("me", project_at(elsewhere)),
        "before projects": source_of("me"),
        "the team's": source_of("team"),
        "of the library": "cli",
    }
    path = tmp_path / "sessions.db"
    with closing(SqliteStore(path)) as store:
        library = Lowwater(model="claude-opus-4-5", store=store)
        for text, source in sources.items():
            internals(library.session(f"session {text}", source=source)).sync_messages(
                [{"role": "user", "content": f"the secret is {text}"}]
            )
    given = tuple(str(elsewhere) if each == "PROJECT" else each for each in options)
    calls = [("lowwater_search", {"query": "secret", "session": f"session {text}"}) for text in sources]
    _, listed, *found = asking(path, ("lowwater_sessions", {}), *calls, options=given)
    assert [text for text in sources if f"session {text} " in listed] == ([seen] if seen else [])
    assert [text for text, said in zip(sources, found, strict=True) if f"is {text}" in said] == (
        [seen] if seen else []
    )


def test_bad_arguments_are_answered_by_a_sentence(kept: Path) -> None:
    _, unknown, odd = asking(
        kept,
        ("lowwater_expand", {"handle": "lw:999"}),
        ("lowwater_expand", {"handle": "what"}),
        options=("--source", "gateway:bbbb"),
    )
    assert "999" in unknown
    assert "Traceback" not in unknown + odd
    assert odd
