"""Recall over the Model Context Protocol: the gateway's recall tools, reading the same store."""

from collections.abc import Callable, Collection
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from pydantic import Field

from lowwater.core.recall.recalled import anthropic_tools
from lowwater.core.stored import Listed
from lowwater.core.tools import COMPACT, EXPAND, PIN, SEARCH
from lowwater.core.wording import counted
from lowwater.errors import BadInput
from lowwater.protocols import Store
from lowwater.session.session import Session

NAME = "lowwater"
SESSIONS = "lowwater_sessions"

_INSTRUCTIONS = (
    "Everything said and done in conversations that Lowwater keeps, including what was compacted and is no longer visible. "
    "Search when you need a detail from earlier that you cannot see; expand a handle (lw:412) to read it in full."
)
_SESSION = "The session to look in, by its name; the one used last if left out."
_LISTS = "List the conversations that are kept, the one used last first: name, title, model, messages."
_MOST_LISTED = 20

Opener = Callable[[Store, str], Session]


def server_over(
    store: Store,
    *,
    open_session: Opener,
    sources: Collection[str],
    session: str = "",
    version: str = "",
    compact: bool = False,
) -> MCPServer[Any]:
    """Return a server that searches the sessions of some sources in a store, or one session of them, and takes proposals of pins.

    With `compact` it has a tool that compacts, too. A source names a tenant and possibly a project: `source_of`.
    """
    server: MCPServer[Any] = MCPServer(NAME, instructions=_INSTRUCTIONS, version=version, log_level="ERROR")
    descriptions = {tool["name"]: tool["description"] for tool in anthropic_tools(compact=True)}
    visible = _VisibleSessions(store, open_session=open_session, session=session, sources=sources)

    @server.tool(name=SEARCH, description=descriptions[SEARCH])
    def search(
        query: str,
        limit: Annotated[int, Field(ge=1, le=20)] = 5,
        session: Annotated[str, Field(description=_SESSION)] = "",
    ) -> str:
        return visible.answer(session, SEARCH, {"query": query, "limit": limit})

    @server.tool(name=EXPAND, description=descriptions[EXPAND])
    def expand(
        handle: str,
        around: str = "",
        lines: Annotated[list[int], Field(max_length=2)] | None = None,
        characters: Annotated[list[int], Field(max_length=2)] | None = None,
        session: Annotated[str, Field(description=_SESSION)] = "",
    ) -> str:
        arguments = {"handle": handle, "around": around, "lines": lines, "characters": characters}
        return visible.answer(session, EXPAND, {name: value for name, value in arguments.items() if value})

    @server.tool(name=PIN, description=descriptions[PIN])
    def pin(text: str, session: Annotated[str, Field(description=_SESSION)] = "") -> str:
        return visible.answer(session, PIN, {"text": text})

    if compact:

        @server.tool(name=COMPACT, description=descriptions[COMPACT])
        def compact_now(focus: str = "", session: Annotated[str, Field(description=_SESSION)] = "") -> str:
            return visible.answer(session, COMPACT, {"focus": focus} if focus else {})

    @server.tool(name=SESSIONS, description=_LISTS)
    def sessions() -> str:
        return "\n".join(map(_line, visible.listed()[:_MOST_LISTED])) or "No conversation is kept yet."

    return server


class _VisibleSessions:
    """The sessions that a client may read."""

    def __init__(self, store: Store, *, open_session: Opener, session: str, sources: Collection[str]) -> None:
        self._store = store
        self._open_session = open_session
        self._session = session
        self._sources = frozenset(sources)

    def listed(self) -> list[Listed]:
        """Return them, most recently used first."""
        return [
            each
            for each in self._store.sessions()
            if self._session in {"", each.name} and each.about.source in self._sources
        ]

    def answer(self, name: str, tool: str, arguments: dict[str, object]) -> str:
        """Return a tool's answer for a session; one that the client may not read does not exist for it."""
        known = [each.name for each in self.listed()]
        if not known:
            return "No conversation is kept yet."
        if name and name not in known:
            return f"There is no session {name!r}: {SESSIONS} lists those that there are."
        try:
            session = self._open_session(self._store, name or known[0])
            tools = session.recall_tools()
            return (tools.with_compact if tool == COMPACT else tools).handle(tool, arguments)
        except BadInput as error:
            return str(error)


def _line(listed: Listed) -> str:
    title = f" · {listed.about.title}" if listed.about.title else ""
    kept = f"{counted(listed.messages, 'message')}, {counted(listed.compactions, 'compaction')}"
    return f"{listed.name}{title} · {listed.model} · {kept}"
