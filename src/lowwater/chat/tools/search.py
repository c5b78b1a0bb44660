"""The tool `search`: lines that match an expression, or a list of files; what git ignores is left out."""

import os
import re
import subprocess
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import partial
from itertools import islice
from pathlib import Path

from lowwater.chat.tools.place import Place
from lowwater.chat.tools.tool import Arguments, Tool, number_of, text_of
from lowwater.core.wording import counted
from lowwater.errors import BadInput

_FOUND = 100
_MOST_FOUND = 2_000
_MOST_BYTES = 1_000_000
"""Of a file; larger ones are left out."""
_MOST_COLUMNS = 300
_PASSED_OVER = frozenset({"node_modules", "__pycache__", "venv", "dist", "build", "target"})


def search(place: Place) -> Tool:
    """Return the tool that looks through the files of the working directory."""
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
        run=partial(_search, place),
    )


def _search(place: Place, arguments: Arguments) -> str:
    glob, most = text_of(arguments, "glob", ""), number_of(arguments, "limit", _FOUND, most=_MOST_FOUND)
    wanted = text_of(arguments, "pattern", "")
    try:
        pattern = re.compile(wanted)
    except re.error as error:
        raise BadInput(f"the pattern is no regular expression: {error}") from None
    files = (name for name in _files(place.directory) if not glob or _matches(name, glob))
    lines = _lines(place.directory, files, pattern) if wanted else files
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
    """Return what a file says; nothing if it is no text, too large, or gone."""
    try:
        raw = path.read_bytes() if path.stat().st_size <= _MOST_BYTES else b""
    except OSError:
        return ""
    return "" if b"\0" in raw[:8_000] else raw.decode("utf-8", "replace")


def _matches(name: str, glob: str) -> bool:
    return fnmatch(name, glob) or fnmatch(name.rpartition("/")[2], glob)


def _files(directory: Path) -> Iterator[str]:
    """Yield the paths of all files, sorted: as git knows them, or else by a walk."""
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
    """Yield files outside of a repository; hidden ones and what the top `.gitignore` names are passed over."""
    ignored = _ignored(directory)
    for at, folders, names in os.walk(directory):
        folders[:] = [each for each in folders if not _is_passed_over(each, ignored)]
        for name in names:
            if not _is_passed_over(name, ignored):
                yield (Path(at) / name).relative_to(directory).as_posix()


def _is_passed_over(name: str, ignored: list[str]) -> bool:
    return name.startswith(".") or name in _PASSED_OVER or any(fnmatch(name, each) for each in ignored)


def _ignored(directory: Path) -> list[str]:
    lines = _text(directory / ".gitignore").splitlines()
    told = [line.strip().strip("/") for line in lines if not line.startswith(("#", "!"))]
    return [line for line in told if line]
