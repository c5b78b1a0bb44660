"""The tools `read_file` and `write_file`."""

from functools import partial

from lowwater.chat.tools.place import Place
from lowwater.chat.tools.tool import Arguments, Tool, number_of, text_of
from lowwater.core.wording import counted
from lowwater.errors import BadInput

_LINES = 2_000
_MOST_LINES = 20_000
_MOST_BYTES = 5_000_000
_SHOWN, _COLUMNS = 8, 100
"""Lines of a new content that the user is shown, and how much of each."""
_PATH = {"type": "string", "description": "A path, relative to the working directory."}


def read_file(place: Place) -> Tool:
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
        run=partial(_read, place),
        question=partial(_reading_elsewhere, place),
    )


def write_file(place: Place) -> Tool:
    """Return the tool that writes a text file."""
    return Tool(
        name="write_file",
        description="Write a text file: a new one, or instead of what was there. The user is asked before.",
        parameters={"path": _PATH, "content": {"type": "string", "description": "The whole new content."}},
        required=("path", "content"),
        run=partial(_write, place),
        question=partial(_writing, place),
    )


def _read(place: Place, arguments: Arguments) -> str:
    path = place.path(text_of(arguments, "path"))
    first = number_of(arguments, "offset", 1, most=10**9)
    most = number_of(arguments, "limit", _LINES, most=_MOST_LINES)
    if path.is_dir():
        raise BadInput(f"{place.shown(path)} is a directory: `search` with a `glob` lists files")
    if not path.is_file():
        raise BadInput(f"there is no file {place.shown(path)}")
    if path.stat().st_size > _MOST_BYTES:
        raise BadInput(
            f"{place.shown(path)} has {path.stat().st_size:,} bytes: look at parts of it with `shell`"
        )
    raw = path.read_bytes()
    if b"\0" in raw[:8_000]:
        raise BadInput(f"{place.shown(path)} is no text file")
    lines = raw.decode("utf-8", "replace").splitlines()
    if first > max(1, len(lines)):
        raise BadInput(f"{place.shown(path)} has only {counted(len(lines), 'line')}")
    some = lines[first - 1 : first - 1 + most]
    told = f"{place.shown(path)}, lines {first:,}-{first + len(some) - 1:,} of {len(lines):,}"
    return "\n".join([f"[{told if some else f'{place.shown(path)} is empty'}]", *some])


def _write(place: Place, arguments: Arguments) -> str:
    path, content = place.path(text_of(arguments, "path")), text_of(arguments, "content", "")
    if path.is_dir():
        raise BadInput(f"{place.shown(path)} is a directory: name a file in it")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8", errors="replace")
    return f"Wrote {counted(len(content.splitlines()), 'line')} to {place.shown(path)}."


def _reading_elsewhere(place: Place, arguments: Arguments) -> str:
    path = place.path(text_of(arguments, "path"))
    return "" if place.is_inside(path) else f"read {path}, outside of the working directory"


def _writing(place: Place, arguments: Arguments) -> str:
    """Return what would be written where, with the first lines of it."""
    path, lines = place.path(text_of(arguments, "path")), text_of(arguments, "content", "").splitlines()
    how = "replacing what is there" if path.exists() else "a new file"
    more = [f"… {len(lines) - _SHOWN:,} more"] if len(lines) > _SHOWN else []
    first = [f"      │ {line[:_COLUMNS]}" for line in [*lines[:_SHOWN], *more]]
    return "\n".join([f"write {place.shown(path)}, {counted(len(lines), 'line')}, {how}", *first])
