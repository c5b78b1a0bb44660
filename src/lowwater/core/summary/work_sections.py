"""The sections of a summary about work: files, commands, errors, calls and what was written."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import Struct

from lowwater.core.summary.activity import (
    Files,
    Outcome,
    Step,
    Story,
    Touched,
    bare,
    command_of,
    error_lines,
    outcome_of,
    plain,
    purpose,
    same_error,
    touch_files,
)
from lowwater.core.summary.critical import KeptReferences
from lowwater.core.summary.notes import LAST, Note, Room, uncited
from lowwater.core.summary.request import Critical
from lowwater.core.summary.template import Outline, Section
from lowwater.core.summary.text import Naming, clip, flat
from lowwater.core.tools import path_of

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


_COMMITTED = re.compile(
    r"^\[(?P<branch>[^\s\]]+)(?: \([^)]*\))? (?P<hash>[0-9a-f]{6,40})\] (?P<subject>.+)$", re.MULTILINE
)
_URL = re.compile(r"https?://\S+/(?:pull|issues|merge_requests|pulls)/\d+")
_TITLE = re.compile(r"(?:--title|-t)[ =](?:\"([^\"]+)\"|'([^']+)')")
_BRANCH = re.compile(r"^(?:On branch|Switched to (?:a new )?branch) '?([^\s']+)'?", re.MULTILINE)
_LABELS = {"test": "Test", "check": "Check", "build": "Build"}
_LONGEST_COMMAND = 160
_OFTEN = 3


def command_notes(story: Story, previous: Outline, room: Room) -> Iterator[Note]:
    """Yield commits and pull requests as done, and the commands and tools that this work uses."""
    runs: dict[tuple[str, str], list[Outcome]] = {}
    numbers: dict[tuple[str, str], int] = {}
    often: Counter[str] = Counter()
    branch = ""
    for step in story.steps:
        if step.kind != "shell" or not step.answered or step.refused:
            continue
        command = clip(bare(command_of(step)), _LONGEST_COMMAND)
        kind = purpose(command)
        if found := _BRANCH.search(step.output[:2_000]):
            branch = found[1]
        if kind in {"commit", "publish"}:
            yield from _published(step, room)
        elif command and kind in _LABELS:
            runs.setdefault((kind, command), []).append(outcome_of(step))
            numbers[kind, command] = step.number
        elif command and kind == "other" and len(command) <= 60:
            often[command] += 1
    yield from _run_notes(runs, numbers, room)
    named = {command for _, command in runs}
    for item in previous.of(Section.TOOLS):
        if not any(f"`{command}`" in item for command in named) and not item.startswith(
            ("Often: ", "Tools: ")
        ):
            yield Note(section=Section.TOOLS, text=item, worth=1)
    if frequent := [f"`{command}`" for command, count in often.most_common(8) if count >= _OFTEN]:
        yield Note(section=Section.TOOLS, text="Often: " + ", ".join(frequent), worth=1)
    if branch:
        yield Note(section=Section.CONTEXT, text=f"Git branch last seen: `{branch}`.", worth=5)


def _run_notes(
    runs: dict[tuple[str, str], list[Outcome]], numbers: dict[tuple[str, str], int], room: Room
) -> Iterator[Note]:
    for at, ((kind, command), outcomes) in enumerate(runs.items()):
        times = f"{len(outcomes)} runs, the last" if len(outcomes) > 1 else "one run,"
        code = command if "`" in command else f"`{command}`"
        text = room.cited(f"{_LABELS[kind]}: {code} · {times} {outcomes[-1]}", numbers[kind, command])
        worth = min(len(outcomes), 5) / 2 + at / len(runs)
        yield Note(section=Section.TOOLS, text=text, worth=room.worth(command, worth))


def tool_note(story: Story, previous: Outline) -> Iterator[Note]:
    """Yield one item that counts the tools used, the previous summary's counts included."""
    times: Counter[str] = Counter()
    for item in previous.of(Section.TOOLS):
        if item.startswith("Tools: "):
            times.update({name: int(count) for name, count in re.findall(r"(\S+) (\d+)×", uncited(item))})
    times.update(step.call.name for step in story.steps)
    if times:
        counts = ", ".join(f"{name} {count}×" for name, count in times.most_common(12))
        yield Note(section=Section.TOOLS, text="Tools: " + counts, worth=0.8)


def _published(step: Step, room: Room) -> Iterator[Note]:
    if step.failed:
        return
    for match in _COMMITTED.finditer(step.output):
        text = f"Committed `{match['hash']}` on `{match['branch']}`: {clip(match['subject'], 160)}"
        yield Note(
            section=Section.DONE,
            text=room.cited(text, step.number),
            worth=room.worth(text, 2.5),
            at=step.number,
        )
    if url := _URL.search(step.output):
        title = _TITLE.search(command_of(step))
        about = f": {flat(title[1] or title[2])}" if title else ""
        verb = "Opened" if " create" in command_of(step) else "Updated"
        text = f"{verb} {url[0]}{about}"
        yield Note(
            section=Section.DONE,
            text=room.cited(text, step.number),
            worth=room.worth(text, 3),
            at=step.number,
        )


FAILS = " fails: "
_FIXED = "No longer failing: "
_SEEN = "Seen on the way: "
_RECENT = 12
"""Steps after which a one-off failure that nothing repeated is history."""
_LONGEST_LINE = 160
_PER_ITEM = 6


class _Failure(Struct, kw_only=True):
    """Where an error was last seen."""

    line: str
    at: int
    number: int


def error_notes(story: Story, previous: Outline, room: Room) -> Iterator[Note]:
    """Yield errors grouped by what showed them; those of the previous summary go when their command succeeds."""
    failures: dict[str, dict[str, _Failure]] = {}
    last_run: dict[str, int] = {}
    last_good: dict[str, int] = {}
    purposes: dict[str, str] = {}
    for at, step in enumerate(story.steps):
        if not step.answered or step.refused:
            continue
        key = _key(step)
        lines = error_lines(step)
        purposes[key] = purpose(key) if step.kind == "shell" else step.kind
        last_run[key] = at
        if not lines and not step.failed:
            last_good[purposes[key]] = at
        for line in lines:
            failures.setdefault(key, {})[same_error(line)] = _Failure(line=line, at=at, number=step.number)
    for key, seen in failures.items():
        done = max(last_run[key], last_good.get(purposes[key], -1) if purposes[key] in _JUDGED else -1)
        opened = [failure for failure in seen.values() if failure.at >= done]
        closed = [failure for failure in seen.values() if failure.at < done]
        if purposes[key] == "view":
            yield from _grouped(key, list(seen.values()), Section.CONTEXT, room, 0.8)
            continue
        judged = purposes[key] in _JUDGED or done >= len(story.steps) - _RECENT
        section = Section.BLOCKED if judged else Section.CONTEXT
        yield from _grouped(key, opened, section, room, 4.0 if judged else 1.2)
        yield from _grouped(key, closed, Section.RESOLVED, room, 1.5 if purposes[key] in _JUDGED else 0.8)
    for item in previous.of(Section.BLOCKED):
        yield _carried(item, last_run, failures)


_JUDGED = frozenset({"test", "check", "build"})


def _key(step: Step) -> str:
    if step.kind == "shell":
        return clip(bare(command_of(step)), _LONGEST_LINE) or step.call.name
    path = "/".join(path_of(step.call).rsplit("/", 2)[-2:])
    first = next((value for value in step.arguments.values() if isinstance(value, str)), "")
    return f"{step.call.name} {path or clip(first, 80)}".strip()


def _grouped(
    key: str, failures: list[_Failure], section: Section, room: Room, worth: float
) -> Iterator[Note]:
    ordered = sorted(failures, key=lambda failure: failure.at)
    for start in range(0, len(ordered), _PER_ITEM):
        some = ordered[start : start + _PER_ITEM]
        lines = " | ".join(filter(None, (clip(failure.line, _LONGEST_LINE) for failure in some)))
        label = {Section.BLOCKED: "", Section.RESOLVED: _FIXED}.get(section, _SEEN)
        joint = FAILS if section == Section.BLOCKED else ": "
        text = f"{label}{_code(key)}{joint}{lines}"
        number = some[-1].number
        yield Note(section=section, text=room.cited(text, number), worth=room.worth(text, worth), at=number)


def _code(text: str) -> str:
    return text if "`" in text else f"`{text}`"


def _carried(item: str, last_run: dict[str, int], failures: dict[str, dict[str, _Failure]]) -> Note:
    """Return a blocked item of the previous summary as still blocked, or as resolved if its command ran again well."""
    key = item.partition(FAILS)[0].strip("`")
    if key in last_run and not any(f.at >= last_run[key] for f in failures.get(key, {}).values()):
        return Note(section=Section.RESOLVED, text=_FIXED + item.replace(FAILS, ": ", 1), worth=1.2)
    return Note(section=Section.BLOCKED, text=item, worth=3)


_LOOKS = re.compile(
    r"(?:^|_)(?:get|list|search|find|fetch|read|query|describe|lookup|show|view|check|track|status|count|resolve|think"
    r"|calculate)(?:_|$)"
)
_SILENT = frozenset({"EnterPlanMode", "ExitPlanMode", "TaskOutput", "think", "view_image"})
_KINDS = frozenset({"other", "web", "memory"})
_LONGEST = 300


def call_notes(story: Story, room: Room) -> Iterator[Note]:
    """Yield what such calls did, as done, and what they looked up, as context; failed ones are errors, not here."""
    for step in story.steps:
        if step.kind not in _KINDS or step.failed or not step.answered or step.call.name in _SILENT:
            continue
        looked = step.kind == "web" or _LOOKS.search(_plain_name(step.call.name)) is not None
        text = f"`{step.call.name}` {_arguments(step)} → {clip(plain(step.output[:600]), 160) or 'no output'}"
        yield Note(
            section=Section.CONTEXT if looked else Section.DONE,
            text=room.cited(text, step.number),
            worth=room.worth(text, 0.9 if looked else 2.0),
            at=step.number,
        )


def _plain_name(name: str) -> str:
    return name.rsplit("__", 1)[-1].lower().replace("-", "_")


def _arguments(step: Step) -> str:
    """Return the arguments as `name=value`, long values shortened."""
    pairs = (f"{name}={clip(_plainly(value), 120) or '…'}" for name, value in step.arguments.items())
    return clip(", ".join(pairs), _LONGEST)


def _plainly(value: object) -> str:
    return value if isinstance(value, str) else str(value)


WRITTEN = "Names in what was written to "
_MOST = 24
"""Names of one file."""
_READ = 20_000
"""Characters of one argument that are read."""


def written_notes(story: Story, text: str, room: Room) -> Iterator[Note]:
    """Yield for each file written to, the newest first, the names in it that `text` does not have, those used most first."""
    naming = Naming()
    times: dict[str, Counter[Critical]] = {}
    for step in story.steps:
        if step.kind != "write" or step.failed:
            continue
        path = path_of(step.call).rpartition("/")[2] or step.call.name
        names = times.pop(path, Counter[Critical]())
        for value in _texts(step):
            names.update(
                Critical(kind=kind, text=name) for kind, name in naming.named_in(value) if kind != "value"
            )
        times[path] = names
    kept, listed = KeptReferences(text), set[Critical]()
    for path in reversed(times):
        fresh = [name for name, _ in times[path].most_common() if name not in listed and not kept.has(name)][
            :_MOST
        ]
        listed.update(fresh)
        if fresh:
            line = f"{WRITTEN}`{path}`: {', '.join(name.text for name in fresh)}"
            yield Note(section=Section.CONTEXT, text=line, worth=room.worth(line, 0.4), at=LAST)


def _texts(step: Step) -> Iterator[str]:
    """Yield every text in the arguments of a call, however deep."""
    waiting: list[object] = list(step.arguments.values())
    while waiting:
        match waiting.pop():
            case str(text):
                yield text[:_READ]
            case list(items):
                waiting += items
            case dict(fields):
                waiting += fields.values()
            case _:
                pass
