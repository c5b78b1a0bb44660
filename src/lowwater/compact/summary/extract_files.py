"""The files section: writing down which files were touched, and reading that back from an earlier summary."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from lowwater.compact.summary.notes import Note, Room
from lowwater.compact.summary.story import Story
from lowwater.compact.summary.template import Outline, Section
from lowwater.compact.summary.touched import Files, Touched, touch_files

_ROOT = re.compile(r"Paths are relative to `([^`]+)`\.")
_LINE = re.compile(r"`(?P<path>[^`]+)` · (?P<what>.+)")
_ALSO = "Also read: "
_QUOTED = re.compile(r"`([^`]+)`")
_COUNTED = re.compile(r"(created|written|edited|deleted|read)(?: (\d{1,9})×)?")
_RANGES = re.compile(r"(\d{1,9})–(\d{1,9})")
_HANDLE = re.compile(r"\(lw:(\d{1,18})\)$")
_MOST_READ = 40
"""Files that were only read and have an item of their own."""
_MOST_RANGES = 4
_MOST_SYMBOLS = 12
_ROOMY = 20_000
_DEFINES = " · defines "


def files_of(story: Story, previous: Outline) -> Files:
    """Return the files touched in the story and those the previous summary knows, by path."""
    files = _known(previous)
    touch_files(files, story)
    return files


def file_notes(files: Files, room: Room) -> Iterator[Note]:
    """Yield the items of the section: the root, changed files, files only read, and the names of the rest."""
    root = _root(files)
    if root:
        yield Note(section=Section.FILES, text=f"Paths are relative to `{root}`.", worth=9)
    changed = sorted((p for p in files if files[p].changed), key=lambda p: (-files[p].order, p))
    read = sorted(
        (p for p in files if not files[p].changed), key=lambda p: (-files[p].reads, -files[p].order, p)
    )
    for at, path in enumerate(changed + read[:_MOST_READ]):
        file = files[path]
        text = f"`{_short(path, root)}` · {_what(file)}{_defined(file, room)}"
        yield Note(
            section=Section.FILES,
            text=room.cited(text, file.last) if file.changed else text,
            worth=room.worth(path, (4.0 if file.changed else 1.5) - at / (at + 20)),
        )
    for start in range(_MOST_READ, len(read), 10):
        names = ", ".join(f"`{_short(path, root)}`" for path in read[start : start + 10])
        yield Note(section=Section.FILES, text=_ALSO + names, worth=0.5)


def roots_of(previous: Outline) -> int:
    """Return how many roots the files of a previous summary are relative to; several if it was joined from several."""
    return sum(_ROOT.fullmatch(item) is not None for item in previous.of(Section.FILES))


def is_known_item(item: str) -> bool:
    """Tell whether an item of an earlier summary was read back, so that it need not be carried over as it is."""
    return bool(_ROOT.fullmatch(item) or _listed(item))


def _what(file: Touched) -> str:
    words = ["created"] * file.created
    counts = (("written", file.writes), ("edited", file.edits), ("read", file.reads))
    words += [f"{word} {count}×" if count > 1 else word for word, count in counts if count]
    words += ["deleted"] * file.deleted
    spans = [f"{first}–{last}" for first, last in file.ranges]
    shown = spans[:_MOST_RANGES] + ["…"] * (len(spans) > _MOST_RANGES)
    return ", ".join(words) + (f" (lines {', '.join(shown)})" if shown else "")


def _defined(file: Touched, room: Room) -> str:
    """Return what was defined last in a file: a few names, more if there is room for many."""
    most = _MOST_SYMBOLS if room.chars >= _ROOMY else _MOST_SYMBOLS // 3
    names = [f"`{name}`" for name in file.symbols][-most:]
    return _DEFINES + ", ".join(names) if names else ""


def _root(paths: Iterable[str]) -> str:
    """Return the deepest directory that holds most of the absolute paths, or nothing."""
    absolute = [path for path in paths if path.startswith("/")]
    holds: Counter[str] = Counter()
    for path in absolute:
        parent = path.rpartition("/")[0]
        while parent.count("/") >= 2:
            holds[parent] += 1
            parent = parent.rpartition("/")[0]
    good = [directory for directory, count in holds.items() if count >= max(2, 0.6 * len(absolute))]
    return max(good, key=lambda directory: (directory.count("/"), directory), default="")


def _short(path: str, root: str) -> str:
    """Return a path as the section shows it: beside a root, what was only ever named as a relative path begins with `./`."""
    if not root:
        return path
    return path.removeprefix(f"{root}/") if path.startswith(("/", "~")) else f"./{path}"


def _full(path: str, root: str) -> str:
    if path.startswith(("/", "~")) or not root:
        return path
    return path[2:] if path.startswith("./") else f"{root}/{path}"


def _known(previous: Outline) -> Files:
    """Read back the files of an earlier summary; later items were touched earlier."""
    root = ""
    files: Files = {}
    for order, item in enumerate(previous.of(Section.FILES), start=1):
        if match := _ROOT.fullmatch(item):
            root = match[1]
        for path, what in _listed(item):
            files.setdefault(_full(path, root), _read_back(what, -order))
    return files


def _listed(item: str) -> list[tuple[str, str]]:
    if item.startswith(_ALSO):
        return [(path, "read") for path in _QUOTED.findall(item)]
    match = _LINE.fullmatch(item)
    return [(match["path"], match["what"])] if match and _COUNTED.match(match["what"]) else []


def _read_back(what: str, order: int) -> Touched:
    told, _, symbols = what.partition(_DEFINES)
    counts = {word: int(count or 1) for word, count in _COUNTED.findall(told)}
    handle = _HANDLE.search(what)
    spans = told.partition(" (lines ")[2].partition(")")[0]
    return Touched(
        created="created" in counts,
        deleted="deleted" in counts,
        writes=counts.get("written", 0),
        edits=counts.get("edited", 0),
        reads=counts.get("read", 0),
        ranges=[(int(first), int(last)) for first, last in _RANGES.findall(spans)],
        symbols=dict.fromkeys(_QUOTED.findall(symbols)),
        last=int(handle[1]) if handle else 0,
        order=order,
    )
