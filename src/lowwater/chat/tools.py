"""The tools of the reference agent: shell, files, search, a to-do list and a memory."""

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal

import msgspec
from msgspec import Struct
from platformdirs import user_data_path

from lowwater.core.messages import ToolCall
from lowwater.core.secrets.redaction import conceal
from lowwater.core.wording import counted
from lowwater.errors import BadInput

Arguments = Mapping[str, Any]


# A tool, and running it

DECLINED = "The user declined this. Do not try it again in another way; ask what to do instead."


class Workspace(Struct, frozen=True, kw_only=True):
    """A directory to work in, and others that may be read."""

    directory: Path
    readable: tuple[Path, ...] = ()

    def path(self, written: str) -> Path:
        """Return the absolute path of a file, with links resolved."""
        return (self.directory / Path(written).expanduser()).resolve()

    def is_inside(self, path: Path) -> bool:
        """Return whether a file is below one of the directories."""
        return any(path.is_relative_to(root.resolve()) for root in (self.directory, *self.readable))

    def shown(self, path: Path) -> str:
        """Return a path relative to the directory if possible."""
        home = self.directory.resolve()
        return str(path.relative_to(home)) if path.is_relative_to(home) else str(path)


class ToolOutcome(Struct, frozen=True, kw_only=True):
    """The output of a tool, or an error message."""

    text: str
    is_error: bool = False


def _never(_arguments: Arguments) -> str:
    return ""


class Tool(Struct, frozen=True, kw_only=True):
    """One tool; `run` returns its output or raises BadInput, whose sentence the model reads."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """A JSON schema for each argument."""
    required: tuple[str, ...] = ()
    run: Callable[[Arguments], str]
    question: Callable[[Arguments], str] = _never
    """The question that the user is asked before it runs; empty if none is needed."""

    def declared(self) -> dict[str, Any]:
        """Return the tool as a Messages request declares it."""
        schema = {
            "type": "object",
            "properties": dict(self.parameters),
            "required": list(self.required),
            "additionalProperties": False,
        }
        return {"name": self.name, "description": self.description, "input_schema": schema}


class Toolbox:
    """Runs tool calls; `allow` asks the user a question and returns whether the answer was yes."""

    def __init__(self, tools: Iterable[Tool], *, allow: Callable[[str], bool]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._allow = allow

    def declared(self) -> list[dict[str, Any]]:
        """Return all tools as a Messages request declares them; always the same bytes."""
        return [tool.declared() for tool in self._tools.values()]

    def run(self, call: ToolCall) -> ToolOutcome:
        """Return the outcome of a call; anything wrong with it becomes a sentence for the model."""
        tool = self._tools.get(call.name)
        if tool is None:
            return ToolOutcome(text=f"There is no tool {call.name!r}: use {self._names()}.", is_error=True)
        try:
            arguments = read_arguments(call.arguments)
            question = tool.question(arguments)
            if question and not self._allow(question):
                return ToolOutcome(text=DECLINED, is_error=True)
            return ToolOutcome(text=tool.run(arguments) or "(no output)")
        except BadInput as error:
            return ToolOutcome(text=f"{call.name}: {error}.", is_error=True)
        except OSError as error:
            return ToolOutcome(text=f"{call.name}: {error.strerror or type(error).__name__}.", is_error=True)

    def _names(self) -> str:
        return ", ".join(self._tools)


def read_arguments(written: str) -> Arguments:
    """Return the arguments that a model wrote, or raise BadInput."""
    try:
        return msgspec.json.decode(written or "{}", type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        raise BadInput("the arguments are no JSON object: write them again") from None


def text_argument(arguments: Arguments, name: str, default: str | None = None) -> str:
    """Return a text argument, or raise BadInput; without a default it is required."""
    value = arguments.get(name, default)
    if not isinstance(value, str) or (default is None and not value):
        raise BadInput(f"the argument `{name}` is missing or no text")
    return value


def number_of(arguments: Arguments, name: str, default: int, *, most: int) -> int:
    """Return an integer argument from 1 to `most`, or raise BadInput."""
    value = arguments.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BadInput(f"the argument `{name}` has to be a whole number of at least 1")
    return min(value, most)


# Files

_LINES = 2_000
_MOST_LINES = 20_000
_MOST_BYTES = 5_000_000
_SHOWN, _COLUMNS = 8, 100
"""Lines of a file's new content that the user is shown, and characters of each."""
_PATH = {"type": "string", "description": "A path, relative to the working directory."}


def read_file(workspace: Workspace) -> Tool:
    """Return the tool that reads a text file, or a range of its lines."""
    return Tool(
        name="read_file",
        description="Read a text file, or some lines of it. Says how many lines there are in all.",
        parameters={
            "path": _PATH,
            "offset": {
                "type": "integer",
                "minimum": 1,
                "description": "The first line wanted; 1 if left out.",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "description": f"How many lines; {_LINES:,} if left out.",
            },
        },
        required=("path",),
        run=partial(_read, workspace),
        question=partial(_reading_elsewhere, workspace),
    )


def write_file(workspace: Workspace) -> Tool:
    """Return the tool that writes a text file."""
    return Tool(
        name="write_file",
        description="Write a text file: a new one, or instead of what was there. The user is asked before.",
        parameters={"path": _PATH, "content": {"type": "string", "description": "The whole new content."}},
        required=("path", "content"),
        run=partial(_write, workspace),
        question=partial(_writing, workspace),
    )


def _read(workspace: Workspace, arguments: Arguments) -> str:
    path = workspace.path(text_argument(arguments, "path"))
    first = number_of(arguments, "offset", 1, most=10**9)
    most = number_of(arguments, "limit", _LINES, most=_MOST_LINES)
    if path.is_dir():
        raise BadInput(f"{workspace.shown(path)} is a directory: `search` with a `glob` lists files")
    if not path.is_file():
        raise BadInput(f"there is no file {workspace.shown(path)}")
    if path.stat().st_size > _MOST_BYTES:
        raise BadInput(
            f"{workspace.shown(path)} has {path.stat().st_size:,} bytes: look at parts of it with `shell`"
        )
    raw = path.read_bytes()
    if b"\0" in raw[:8_000]:
        raise BadInput(f"{workspace.shown(path)} is no text file")
    lines = raw.decode("utf-8", "replace").splitlines()
    if first > max(1, len(lines)):
        raise BadInput(f"{workspace.shown(path)} has only {counted(len(lines), 'line')}")
    some = lines[first - 1 : first - 1 + most]
    told = f"{workspace.shown(path)}, lines {first:,}-{first + len(some) - 1:,} of {len(lines):,}"
    return "\n".join([f"[{told if some else f'{workspace.shown(path)} is empty'}]", *some])


def _write(workspace: Workspace, arguments: Arguments) -> str:
    path, content = workspace.path(text_argument(arguments, "path")), text_argument(arguments, "content", "")
    if path.is_dir():
        raise BadInput(f"{workspace.shown(path)} is a directory: name a file in it")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8", errors="replace")
    return f"Wrote {counted(len(content.splitlines()), 'line')} to {workspace.shown(path)}."


def _reading_elsewhere(workspace: Workspace, arguments: Arguments) -> str:
    path = workspace.path(text_argument(arguments, "path"))
    return "" if workspace.is_inside(path) else f"read {path}, outside of the working directory"


def _writing(workspace: Workspace, arguments: Arguments) -> str:
    """Return the question before writing: the file, and the first lines of its new content."""
    path, lines = (
        workspace.path(text_argument(arguments, "path")),
        text_argument(arguments, "content", "").splitlines(),
    )
    how = "replacing what is there" if path.exists() else "a new file"
    more = [f"… {len(lines) - _SHOWN:,} more"] if len(lines) > _SHOWN else []
    first = [f"      │ {line[:_COLUMNS]}" for line in [*lines[:_SHOWN], *more]]
    return "\n".join([f"write {workspace.shown(path)}, {counted(len(lines), 'line')}, {how}", *first])


# Search

_FOUND = 100
_MOST_FOUND = 2_000
_MOST_SEARCHED = 1_000_000
"""Bytes of a file; larger ones are skipped."""
_MOST_COLUMNS = 300
_SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "venv", "dist", "build", "target"})


def search(workspace: Workspace) -> Tool:
    """Return the tool that searches the files of the working directory."""
    return Tool(
        name="search",
        description="Find lines that match a regular expression in the files of the working directory, with path and "
        "line number; without a pattern, list the files. Files that git ignores are left out.",
        parameters={
            "pattern": {"type": "string", "description": "A Python regular expression."},
            "glob": {"type": "string", "description": "Only files whose path or name matches, such as *.py."},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "description": f"At most so many; {_FOUND} if left out.",
            },
        },
        run=partial(_search, workspace),
    )


def _search(workspace: Workspace, arguments: Arguments) -> str:
    glob, most = text_argument(arguments, "glob", ""), number_of(arguments, "limit", _FOUND, most=_MOST_FOUND)
    wanted = text_argument(arguments, "pattern", "")
    try:
        pattern = re.compile(wanted)
    except re.error as error:
        raise BadInput(f"the pattern is no regular expression: {error}") from None
    files = (name for name in _files(workspace.directory) if not glob or _matches(name, glob))
    lines = _lines(workspace.directory, files, pattern) if wanted else files
    found = list(islice(lines, most + 1))
    what = "line" if wanted else "file"
    if not found:
        return f"No {what}."
    more = f"\n[more than {most:,}: narrow it down, or raise `limit`]" if len(found) > most else ""
    return f"[{counted(min(len(found), most), what)}]\n" + "\n".join(found[:most]) + more


def _lines(directory: Path, files: Iterator[str], pattern: re.Pattern[str]) -> Iterator[str]:
    for name in files:
        for number, line in enumerate(_text(directory / name).splitlines(), start=1):
            if pattern.search(line):
                yield f"{name}:{number}: {line.strip()[:_MOST_COLUMNS]}"


def _text(path: Path) -> str:
    """Return the text of a file; empty if it is not text, too large, or missing."""
    try:
        raw = path.read_bytes() if path.stat().st_size <= _MOST_SEARCHED else b""
    except OSError:
        return ""
    return "" if b"\0" in raw[:8_000] else raw.decode("utf-8", "replace")


def _matches(name: str, glob: str) -> bool:
    return fnmatch(name, glob) or fnmatch(name.rpartition("/")[2], glob)


def _files(directory: Path) -> Iterator[str]:
    """Yield the paths of all files, sorted: those that git lists, or outside of a repository by a walk."""
    listed = _by_git(directory)
    yield from sorted(_by_walking(directory)) if listed is None else sorted(listed)


def _by_git(directory: Path) -> list[str] | None:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(  # noqa: S603  # the command is a constant
            command, cwd=directory, capture_output=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    names = {name for name in done.stdout.decode("utf-8", "replace").split("\0") if name}
    return [name for name in names if (directory / name).is_file()]


def _by_walking(directory: Path) -> Iterator[str]:
    """Yield files outside of a repository; hidden ones and those in the top `.gitignore` are skipped."""
    ignored = _ignored(directory)
    for at, folders, names in os.walk(directory):
        folders[:] = [each for each in folders if not _is_skipped(each, ignored)]
        for name in names:
            if not _is_skipped(name, ignored):
                yield (Path(at) / name).relative_to(directory).as_posix()


def _is_skipped(name: str, ignored: list[str]) -> bool:
    return name.startswith(".") or name in _SKIPPED_FOLDERS or any(fnmatch(name, each) for each in ignored)


def _ignored(directory: Path) -> list[str]:
    lines = _text(directory / ".gitignore").splitlines()
    told = [line.strip().strip("/") for line in lines if not line.startswith(("#", "!"))]
    return [line for line in told if line]


# Shell

KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY")
"""Variables that a command does not inherit, so that a model cannot read them by printing its environment."""
_SECONDS = 120
_MOST_SECONDS = 600
_MOST_OUTPUT = 400_000
"""Characters of an output that are kept: its beginning and its end."""


def shell(workspace: Workspace, *, withheld: tuple[str, ...] = ()) -> Tool:
    """Return the tool that runs a command; the user is asked each time."""
    return Tool(
        name="shell",
        description="Run a command in the user's shell, in the working directory; returns its exit code and all its "
        "output. It gets no input. The user is asked before it runs.",
        parameters={
            "command": {"type": "string", "description": "The command line."},
            "timeout": {
                "type": "integer",
                "minimum": 1,
                "description": f"Seconds after which it is stopped; {_SECONDS} if left out, at most {_MOST_SECONDS}.",
            },
        },
        required=("command",),
        run=partial(_run, workspace, frozenset((*KEYS, *withheld))),
        question=lambda arguments: f"run: {text_argument(arguments, 'command')}",
    )


def _run(workspace: Workspace, withheld: frozenset[str], arguments: Arguments) -> str:
    command = text_argument(arguments, "command")
    seconds = number_of(arguments, "timeout", _SECONDS, most=_MOST_SECONDS)
    environment = {name: value for name, value in os.environ.items() if name not in withheld}
    with tempfile.TemporaryFile() as output:
        running = subprocess.Popen(  # noqa: S602  # a shell is what the user was asked for
            command,
            shell=True,
            cwd=workspace.directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            ended = f"exit code {running.wait(timeout=seconds)}"
        except subprocess.TimeoutExpired:
            ended = f"stopped after {seconds} s"
        finally:
            _stop(running)
        return f"[{ended}]\n{_output_text(output)}"


def _stop(running: "subprocess.Popen[bytes]") -> None:
    """Kill a command that is still running and everything it started; a finished command's background jobs stay."""
    if running.poll() is None:
        if hasattr(os, "killpg"):
            os.killpg(running.pid, signal.SIGKILL)
        else:
            # Windows has no process groups to kill; taskkill follows the children.
            subprocess.run(  # noqa: S603
                ["taskkill", "/T", "/F", "/PID", str(running.pid)],  # noqa: S607 - a part of Windows
                capture_output=True,
                check=False,
            )
        running.wait()


def _output_text(output: IO[bytes]) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(0)
    if size <= _MOST_OUTPUT:
        return output.read().decode("utf-8", "replace")
    head = output.read(_MOST_OUTPUT // 2)
    output.seek(-(_MOST_OUTPUT // 2), os.SEEK_END)
    left_out = f"\n[{size - _MOST_OUTPUT:,} bytes left out]\n"
    return head.decode("utf-8", "replace") + left_out + output.read().decode("utf-8", "replace")


# To-do list

TodoState = Literal["open", "doing", "done"]
_SIGNS: dict[TodoState, str] = {"open": "[ ]", "doing": "[>]", "done": "[x]"}


class _Item(Struct, frozen=True):
    text: str
    state: TodoState = "open"


def todo() -> Tool:
    """Return the tool that writes down the whole to-do list."""
    item = {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "state": {"type": "string", "enum": ["open", "doing", "done"]},
        },
        "required": ["text"],
    }
    return Tool(
        name="todo",
        description="Write down the whole list of what is to be done as it is now, for work of several steps.",
        parameters={"items": {"type": "array", "items": item}},
        required=("items",),
        run=_write_list,
    )


def _write_list(arguments: Arguments) -> str:
    try:
        items = msgspec.convert(arguments.get("items"), type=list[_Item])
    except msgspec.ValidationError as error:
        raise BadInput(f"`items` is a list of objects with `text` and `state`: {error}") from None
    done = sum(item.state == "done" for item in items)
    lines = [f"{_SIGNS[item.state]} {' '.join(item.text.split())}" for item in items]
    return "\n".join([f"{done} of {len(items)} done", *lines])


# Memory

_MOST_NOTES = 200
_MOST_CHARACTERS = 500
_HEADING = "# What lowwater chat was asked to remember\n"


def default_file() -> Path:
    """Return the default file for notes."""
    return user_data_path("lowwater", appauthor=False) / "memory.md"


class Memory:
    """Notes, one per line; `flush` writes new ones to the file, before each compaction and after each turn.

    It is a memory hook of Lowwater. Secrets in notes are redacted.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._notes = _read_notes(file)
        self._is_changed = False

    @property
    def notes(self) -> tuple[str, ...]:
        """All notes, oldest first."""
        return tuple(self._notes)

    def on_pre_compress(self, messages: Sequence[object], /) -> None:
        """Add nothing: what matters was noted when it was said."""

    def flush(self) -> None:
        """Write what is new to the file."""
        if not self._is_changed:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._file.with_name(f"{self._file.name}.new")
        fresh.write_text(_HEADING + "".join(f"- {note}\n" for note in self._notes), encoding="utf-8")
        fresh.replace(self._file)
        self._is_changed = False

    def tool(self) -> Tool:
        """Return the tool by which the model reads and changes its notes."""
        return Tool(
            name="memory",
            description="Notes that outlive this conversation: preferences, decisions, facts about the project. `add` a "
            "note in one sentence, `remove` one by its words, or `list` them all.",
            parameters={
                "action": {"type": "string", "enum": ["add", "remove", "list"]},
                "note": {"type": "string", "description": "The note; not needed to list."},
            },
            required=("action",),
            run=self._run,
        )

    def _run(self, arguments: Arguments) -> str:
        match text_argument(arguments, "action"):
            case "add":
                self._add(conceal(" ".join(text_argument(arguments, "note").split())))
            case "remove":
                self._remove(" ".join(text_argument(arguments, "note").split()))
            case "list":
                pass
            case other:
                raise BadInput(f"there is no action {other[:40]!r}: use add, remove or list")
        lines = [counted(len(self._notes), "note"), *(f"- {note}" for note in self._notes)]
        return "\n".join(lines)

    def _add(self, note: str) -> None:
        if len(note) > _MOST_CHARACTERS:
            raise BadInput(f"a note has at most {_MOST_CHARACTERS} characters: say it in one sentence")
        if len(self._notes) >= _MOST_NOTES:
            raise BadInput(f"there are {_MOST_NOTES} notes already: remove some first")
        if note not in self._notes:
            self._notes.append(note)
            self._is_changed = True

    def _remove(self, words: str) -> None:
        kept = [note for note in self._notes if words.casefold() not in note.casefold()]
        if len(kept) == len(self._notes):
            raise BadInput("no note has these words: `list` shows them")
        self._notes, self._is_changed = kept, True


def _read_notes(file: Path) -> list[str]:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [line.removeprefix("- ").strip() for line in lines if line.startswith("- ")]
