"""What a tool call does to files: which it reads or changes, and how much of them."""

import re
from collections.abc import Mapping

from msgspec import Struct

from lowwater.values.parts import ToolCall
from lowwater.values.tools import arguments_of, classify, path_in

_PATCH = "*** Begin Patch"
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_PART = re.compile(r"offset|limit|line|range|start|end|page|head|tail")


class FileAccess(Struct, frozen=True, kw_only=True):
    """A call that reads or changes files."""

    paths: tuple[str, ...]
    changes: bool
    part: str = ""
    """Which part of the file is read, as the arguments say it; empty for all of it."""


def file_access(call: ToolCall) -> FileAccess | None:
    """Return what a call does to files, as far as its arguments name them; None for any other call."""
    kind = classify(call.name)
    patches = kind in {"write", "shell"} and _PATCH in call.arguments
    if not patches and kind not in {"read", "write"}:
        return None
    arguments = arguments_of(call)
    if patches:
        return FileAccess(paths=_patched(call, arguments), changes=True)
    path = path_in(arguments)
    if not path:
        return None
    changes = kind == "write" and arguments.get("command") != "view"
    return FileAccess(paths=(_plain(path),), changes=changes, part="" if changes else _part(arguments))


def _patched(call: ToolCall, arguments: Mapping[str, object]) -> tuple[str, ...]:
    texts = [value for value in arguments.values() if isinstance(value, str)] or [call.arguments]
    return tuple(dict.fromkeys(_plain(path) for text in texts for path in _PATCHED.findall(text)))


def _part(arguments: Mapping[str, object]) -> str:
    named = [name for name in sorted(arguments) if _PART.search(name) and arguments[name]]
    return " ".join(f"{name}={arguments[name]}" for name in named)


def _plain(path: str) -> str:
    return path.strip().removeprefix("./")
