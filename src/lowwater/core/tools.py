"""The kind of tool that a call is for, and what the call is about, across the names that agents give their tools."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

import msgspec
from msgspec import Struct

from lowwater.core.messages import ToolCall

SEARCH = "lowwater_search"
EXPAND = "lowwater_expand"
PIN = "lowwater_pin"
COMPACT = "lowwater_compact"
"""The names of the recall tools; `PIN` proposes a standing instruction to the user, `COMPACT` is offered only where asked for."""
ToolClass = Literal[
    "read", "write", "shell", "search", "list", "web", "agent", "todo", "memory", "skill", "clarify", "other"
]

_NAMES: dict[ToolClass, str] = {
    "read": "read read_file readfile view view_file open cat get_file read_many_files notebookread file_read",
    "write": "write write_file edit edit_file multiedit apply_patch str_replace str_replace_editor create_file patch "
    "notebookedit replace insert update_file str_replace_based_edit_tool file_write",
    "shell": "bash shell terminal exec exec_command run_command execute execute_bash run local_shell powershell cmd "
    "write_stdin bashoutput shell_command execute_code python run_shell_command run_in_terminal",
    "search": "grep rg search search_files glob find ripgrep codebase_search search_file_content grep_search file_search "
    "searchtext code_search toolsearch",
    "list": "ls list list_files list_dir list_directory tree dir",
    "web": "web web_search websearch web_fetch webfetch fetch browse browser http image_search crawl navigate",
    "agent": "task agent spawn_agent subagent delegate dispatch_agent delegate_task wait_agent",
    "todo": "todo todowrite todo_write todoread update_plan taskcreate taskupdate tasklist write_todos plan",
    "memory": "memory remember save_memory recall store_memory",
    "skill": "skill skill_view load_skill use_skill activate_skill",
    "clarify": "clarify ask ask_user ask_clarification askuserquestion ask_followup_question request_user_input",
}
_CLASSES: dict[str, ToolClass] = {name: kind for kind, names in _NAMES.items() for name in names.split()}
_ARGUMENTS = msgspec.json.Decoder(dict[str, object])
_PLAIN = re.compile(r"[^a-z0-9]+")
_NAMESPACE = re.compile(r"__|[.:/]")
_BY_PLAIN: dict[str, ToolClass] = {_PLAIN.sub("", name): kind for name, kind in _CLASSES.items()}
_PATHS = "file_path path filename file notebook_path target_file filepath".split()
_SUBJECTS = [
    *_PATHS,
    *"command cmd script pattern query regex url prompt description question name key id".split(),
]

_PATCH = "*** Begin Patch"
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_PART = re.compile(r"offset|limit|line|range|start|end|page|head|tail")


@lru_cache(maxsize=1_024)
def classify(tool: str) -> ToolClass:
    """Return the kind of a tool by its name: `Read`, `read_file` and `mcp__fs__read_file` are all `read`."""
    for name in (tool, bare_name(tool)):
        found = _BY_PLAIN.get(_PLAIN.sub("", name.lower()))
        if found is not None:
            return found
    return "other"


def bare_name(tool: str) -> str:
    """Return a tool's name without the server or namespace before it: `read_file` for `mcp__fs__read_file`."""
    return _NAMESPACE.split(tool)[-1]


def class_of(call: ToolCall) -> ToolClass:
    """Return the kind of tool that a call is for; a call of an editor to view a file is a `read`."""
    kind = classify(call.name)
    if kind == "write" and arguments_of(call).get("command") == "view":
        return "read"
    return kind


def arguments_of(call: ToolCall) -> dict[str, object]:
    """Return the call's arguments; empty if they are not a JSON object."""
    try:
        return _ARGUMENTS.decode(call.arguments)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return {}


def subject_of(call: ToolCall) -> str:
    """Return what a call is about: its path, command, pattern or query, or else all its arguments."""
    return subject_in(arguments_of(call)) or call.arguments.strip()


def subject_in(arguments: Mapping[str, object]) -> str:
    """Return what a call with these arguments is about: its path, command, pattern or query; empty if it has none."""
    for name in _SUBJECTS:
        value = arguments.get(name)
        if isinstance(value, str) and value.strip():
            return value
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            return " ".join(value)
    return ""


def path_of(call: ToolCall) -> str:
    """Return the path in a call's arguments, as it is written; empty if there is none."""
    return path_in(arguments_of(call))


def path_in(arguments: Mapping[str, object]) -> str:
    """Return the path in these arguments, as it is written; empty if there is none."""
    for name in _PATHS:
        value = arguments.get(name)
        if isinstance(value, str) and value.strip():
            return value
    return ""


# Which files a call reads or changes


class FileAccess(Struct, frozen=True, kw_only=True):
    """A call that reads or changes files."""

    paths: tuple[str, ...]
    changes: bool
    part: str = ""
    """Which part of the file is read, as the arguments say it; empty for the whole file."""


def file_access(call: ToolCall) -> FileAccess | None:
    """Return which files a call reads or changes, as far as its arguments name them; None for any other call."""
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


# Recall tools


def is_recall(name: str) -> bool:
    """Return whether a tool is a recall tool; an MCP client puts `mcp__SERVER__` before its name."""
    return name.rsplit("__", 1)[-1] in (SEARCH, EXPAND, PIN, COMPACT)


def offers_recall(tools_json: bytes) -> bool:
    """Return whether a request's `tools`, as JSON, include `lowwater_expand`; unreadable JSON does not."""
    if EXPAND.encode() not in tools_json:
        return False
    try:
        tools = msgspec.json.decode(tools_json)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
    return isinstance(tools, list) and any(_tool_name(tool).rsplit("__", 1)[-1] == EXPAND for tool in tools)


def _tool_name(tool: object) -> str:
    if not isinstance(tool, dict):
        return ""
    function = tool.get("function")
    name = function.get("name") if isinstance(function, dict) else tool.get("name")
    return name if isinstance(name, str) else ""
