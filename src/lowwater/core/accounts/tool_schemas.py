"""What fills a request before the first message: the system prompt, and the definition of each tool, called or not."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec import Raw, Struct

from lowwater.core.api_calls import Usage
from lowwater.core.costs.prices import cost_of
from lowwater.core.messages import Message
from lowwater.core.models.model import Model

_MCP = "mcp__"
"""What the names of an MCP server's tools begin with in Claude Code and in clients that follow it."""
CountTools = Callable[[bytes], int]
"""Returns the tokens that a list of tools takes, given as JSON."""


class ToolSchema(Struct, frozen=True, kw_only=True):
    """One tool's definition."""

    name: str
    server: str = ""
    """The MCP server that offers it, if its name says so; empty for the client's own tools."""
    tokens: int
    calls: int
    """How often it was called."""


class Preamble(Struct, frozen=True, kw_only=True):
    """What every request begins with, in tokens. Tools that were never called come first, then the larger ones."""

    system: int
    tools: tuple[ToolSchema, ...] = ()

    @property
    def tool_tokens(self) -> int:
        """The tokens of all definitions."""
        return sum(tool.tokens for tool in self.tools)

    @property
    def unused(self) -> tuple[ToolSchema, ...]:
        """The tools that were never called."""
        return tuple(tool for tool in self.tools if not tool.calls)

    def servers(self) -> tuple[ToolSchema, ...]:
        """Return the tools of each MCP server added up, in the same order."""
        tokens, calls = Counter[str](), Counter[str]()
        for tool in self.tools:
            if tool.server:
                tokens[tool.server] += tool.tokens
                calls[tool.server] += tool.calls
        return _ordered(
            ToolSchema(name=each, server=each, tokens=tokens[each], calls=calls[each]) for each in tokens
        )


class _Function(Struct, frozen=True):
    name: str = ""


class _Tool(Struct, frozen=True):
    name: str = ""
    type: str = ""
    function: _Function = _Function()


def preamble_of(tools: bytes, messages: Iterable[Message], *, system: int, count: CountTools) -> Preamble:
    """Return what requests with these tools begin with; a list of tools that cannot be read counts as empty."""
    made = Counter(call.name for message in messages for call in message.calls)
    read = _definitions(tools)
    sizes = [count(b"[" + raw + b"]") for _, raw in read]
    # Each of these sizes includes what any list of tools takes besides the definitions; that is subtracted below.
    shared = max(0, sum(sizes) - count(tools)) // (len(sizes) - 1) if len(sizes) > 1 else 0
    found = [
        ToolSchema(name=name, server=server_of(name), tokens=max(0, size - shared), calls=made[name])
        for (name, _), size in zip(read, sizes, strict=True)
    ]
    return Preamble(system=system, tools=_ordered(found))


def server_of(name: str) -> str:
    """Return the MCP server that is in a tool's name; empty if there is none."""
    return name.removeprefix(_MCP).partition("__")[0] if name.startswith(_MCP) else ""


def start_cost(tokens: int, usages: Iterable[Usage], model: Model) -> int | None:
    """Return what the first `tokens` of every prompt cost in these calls; None if a price is unknown.

    Whatever a call read from the cache was the start of its prompt; the part that was not read is billed like the rest of the prompt.
    """
    total = 0
    for usage in usages:
        read = min(tokens, usage.cache_read)
        rest, left = max(0, usage.prompt - usage.cache_read), max(0, tokens - read)
        whole = cost_of(
            Usage(
                uncached=usage.uncached,
                cache_write=usage.cache_write,
                cache_write_long=usage.cache_write_long,
            ),
            model,
        )
        reading = cost_of(Usage(cache_read=read), model)
        if whole is None or reading is None:
            return None
        total += reading + (whole * min(left, rest) // rest if rest else 0)
    return total


def _definitions(tools: bytes) -> Sequence[tuple[str, bytes]]:
    if not tools:
        return ()
    try:
        raws = msgspec.json.decode(tools, type=list[Raw])
        read = [(msgspec.json.decode(raw, type=_Tool), bytes(raw)) for raw in raws]
    except msgspec.MsgspecError:
        return ()
    return [(tool.name or tool.function.name or tool.type or "?", raw) for tool, raw in read]


def _ordered(tools: Iterable[ToolSchema]) -> tuple[ToolSchema, ...]:
    return tuple(sorted(tools, key=lambda tool: (tool.calls > 0, -tool.tokens, tool.name)))
