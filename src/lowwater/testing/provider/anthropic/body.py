"""Reading a Messages request: blocks with their paths, turns, cache marks and prompt pieces."""

import re
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from lowwater.testing.provider.prompt import Piece, Section
from lowwater.testing.provider.rule import Json, Violation

THINKING = ("thinking", "redacted_thinking")

_VERSION = re.compile(r"^claude-(?P<family>[a-z]+)-(?P<major>\d)(?:[-.](?P<minor>\d))?(?!\d)")


class Block(Struct, frozen=True, kw_only=True):
    """One content block and where it stands."""

    path: str
    role: str
    message: int
    value: Json

    @property
    def type(self) -> str:
        """The block's type."""
        return str(self.value["type"])


class Turn(Struct, frozen=True, kw_only=True):
    """Neighbouring messages of one role, which the API reads as one."""

    role: str
    message: int
    """The index of its first message."""
    blocks: tuple[Block, ...]

    def of_type(self, kind: str) -> list[Block]:
        """Return its blocks of one type, in order."""
        return [block for block in self.blocks if block.type == kind]


class Mark(Struct, frozen=True, kw_only=True):
    """One `cache_control` and what carries it."""

    path: str
    holder: Json
    value: object

    @property
    def ttl(self) -> str:
        """Its lifetime; five minutes unless it says otherwise."""
        return _ttl(self.value)


def invalid(message: str) -> Violation:
    """Return the ordinary 400 of this API."""
    return Violation(message=message)


class Version(Struct, frozen=True, kw_only=True):
    """Which Claude model it is."""

    family: str
    number: tuple[int, int]


def version(model: str) -> Version | None:
    """Return the version of a Claude model named the current way, else None."""
    found = _VERSION.match(model)
    if found is None:
        return None
    return Version(family=found["family"], number=(int(found["major"]), int(found["minor"] or 0)))


def blocks_of(message: Json, at: int) -> tuple[Block, ...]:
    """Return the blocks of the message at index `at`; a string is one text block, an empty string none."""
    content = message["content"]
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content else []
    return tuple(
        Block(path=f"messages.{at}.content.{index}", role=message["role"], message=at, value=value)
        for index, value in enumerate(content)
    )


def blocks(body: Json) -> Iterator[Block]:
    """Yield every block of every message."""
    for at, message in enumerate(body["messages"]):
        yield from blocks_of(message, at)


def turns(body: Json) -> list[Turn]:
    """Return the conversation with neighbouring messages of one role merged; a signed compaction block is no part of it."""
    merged: list[Turn] = []
    for at, message in enumerate(body["messages"]):
        own = blocks_of(message, at)
        if at == 0 and own and own[0].type == "compaction" and own[0].value.get("signature"):
            own = own[1:]
            if not own and len(body["messages"]) > 1:
                continue
        if merged and merged[-1].role == message["role"]:
            last = merged.pop()
            merged.append(Turn(role=last.role, message=last.message, blocks=(*last.blocks, *own)))
        else:
            merged.append(Turn(role=message["role"], message=at, blocks=own))
    return merged


def system_blocks(body: Json) -> list[Json]:
    """Return the system prompt as blocks."""
    system = body.get("system") or []
    return [{"type": "text", "text": system}] if isinstance(system, str) else list(system)


def inner_blocks(block: Json) -> list[Json]:
    """Return the blocks inside a tool result; other blocks hold none."""
    content = block.get("content") if block.get("type") == "tool_result" else None
    return content if isinstance(content, list) else []


def marks(body: Json) -> list[Mark]:
    """Return every cache mark as the API processes them: tools, system, messages, then the whole request."""
    holders = [(f"tools.{at}", tool) for at, tool in enumerate(body.get("tools") or [])]
    holders += [(f"system.{at}", block) for at, block in enumerate(system_blocks(body))]
    for block in blocks(body):
        holders += [
            (f"{block.path}.content.{at}", inner) for at, inner in enumerate(inner_blocks(block.value))
        ]
        holders.append((block.path, block.value))
    holders.append(("", body))
    return [
        Mark(path=f"{path}.cache_control".removeprefix("."), holder=holder, value=holder["cache_control"])
        for path, holder in holders
        if holder.get("cache_control") is not None
    ]


def pieces(body: Json) -> list[Piece]:
    """Return the prompt in the order the model reads it; a mark on the whole request stands on its last piece."""
    found = [_piece("tools", f"tools.{at}", "", tool) for at, tool in enumerate(body.get("tools") or [])]
    found += [_piece("system", f"system.{at}", "", block) for at, block in enumerate(system_blocks(body))]
    for at, message in enumerate(body["messages"]):
        found += message_pieces(message, at)
    if body.get("cache_control") and found and not found[-1].mark:
        found[-1] = replace(found[-1], mark=_ttl(body["cache_control"]))
    return found


def message_pieces(message: Json, at: int) -> list[Piece]:
    """Return the pieces of the message at index `at`."""
    return [_piece("messages", block.path, block.role, block.value) for block in blocks_of(message, at)]


def _piece(section: Section, path: str, role: str, value: Json) -> Piece:
    inner = inner_blocks(value)
    control = [held["cache_control"] for held in (value, *inner) if held.get("cache_control") is not None]
    bare = _bare(value)
    if inner:
        bare["content"] = [_bare(block) for block in inner]
    elif value.get("type") == "tool_result" and isinstance(value.get("content"), str):
        bare["content"] = [{"type": "text", "text": value["content"]}]
    return Piece(section=section, path=path, role=role, value=bare, mark=_ttl(control[0]) if control else "")


def _bare(value: Json) -> Json:
    # Clients write fields out as null or leave them away, and the API does not tell the two apart.
    return {key: held for key, held in value.items() if key != "cache_control" and held is not None}


def _ttl(control: object) -> str:
    return str(control.get("ttl") or "5m") if isinstance(control, dict) else "5m"
