"""The sections of a summary about work: files, commands, errors, calls and what was written."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import Struct

from lowwater.core.summary.activity import (
    ActivityStep,
    CommandOutcome,
    FileActivity,
    Files,
    Story,
    bare_command,
    command_of,
    error_lines,
    outcome_of,
    plain_text,
    purpose_of_command,
    record_file_activity,
    same_error,
)
from lowwater.core.summary.critical import KeptReferences
from lowwater.core.summary.notes import AT_END, Note, NotesRoom, without_handle
from lowwater.core.summary.request import Critical
from lowwater.core.summary.template import Section, SummaryOutline
from lowwater.core.summary.text import NameFinder, clip, flat
from lowwater.core.tools import path_of

_ROOT = re.compile(r"Paths are relative to `([^`]+)`\.")
_LINE = re.compile(r"`(?P<path>[^`]+)` · (?P<what>.+)")
_ALSO = "Also read: "
_DEFINES = " · defines "
_QUOTED = re.compile(r"`([^`]+)`")
_COUNTED = re.compile(r"(created|written|edited|deleted|read)(?: (\d{1,9})×)?")
_RANGES = re.compile(r"(\d{1,9})–(\d{1,9})")
_HANDLE = re.compile(r"\(lw:(\d{1,18})\)$")
_MOST_READ = 40
"""The most unchanged files with an item of their own."""
_MOST_RANGES = 4
_MOST_SYMBOLS = 12
_LARGE_ROOM = 20_000


def files_of(story: Story, previous: SummaryOutline) -> Files:
    """Return the files touched in the story and those in the previous summary, by path."""
    files = _previous_files(previous)
    record_file_activity(files, story)
    return files


def _previous_files(previous: SummaryOutline) -> Files:
    """Return the files of a previous summary; later items were touched earlier."""
    root = ""
    files: Files = {}
    for order, item in enumerate(previous.of(Section.FILES), start=1):
        if match := _ROOT.fullmatch(item):
            root = match[1]
        for path, what in _parse_item(item):
            files.setdefault(_full_path(path, root), _parse_activity(what, -order))
    return files


def _parse_item(item: str) -> list[tuple[str, str]]:
    if item.startswith(_ALSO):
        return [(path, "read") for path in _QUOTED.findall(item)]
    match = _LINE.fullmatch(item)
    return [(match["path"], match["what"])] if match and _COUNTED.match(match["what"]) else []


def _parse_activity(what: str, order: int) -> FileActivity:
    activity, _, symbols = what.partition(_DEFINES)
    counts = {word: int(count or 1) for word, count in _COUNTED.findall(activity)}
    handle = _HANDLE.search(what)
    spans = activity.partition(" (lines ")[2].partition(")")[0]
    return FileActivity(
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


def file_notes(files: Files, room: NotesRoom) -> Iterator[Note]:
    """Yield the items about files: the root, changed files, files that were only read, and the names of the rest."""
    root = _common_root(files)
    if root:
        yield Note(section=Section.FILES, text=f"Paths are relative to `{root}`.", worth=9)
    changed = sorted((p for p in files if files[p].changed), key=lambda p: (-files[p].order, p))
    read = sorted(
        (p for p in files if not files[p].changed), key=lambda p: (-files[p].reads, -files[p].order, p)
    )
    for at, path in enumerate(changed + read[:_MOST_READ]):
        file = files[path]
        text = f"`{_shown_path(path, root)}` · {_describe_activity(file)}{_describe_symbols(file, room)}"
        yield Note(
            section=Section.FILES,
            text=room.cited(text, file.last) if file.changed else text,
            worth=room.worth(path, (4.0 if file.changed else 1.5) - at / (at + 20)),
        )
    for start in range(_MOST_READ, len(read), 10):
        names = ", ".join(f"`{_shown_path(path, root)}`" for path in read[start : start + 10])
        yield Note(section=Section.FILES, text=_ALSO + names, worth=0.5)


def _describe_activity(file: FileActivity) -> str:
    words = ["created"] * file.created
    counts = (("written", file.writes), ("edited", file.edits), ("read", file.reads))
    words += [f"{word} {count}×" if count > 1 else word for word, count in counts if count]
    words += ["deleted"] * file.deleted
    spans = [f"{first}–{last}" for first, last in file.ranges]
    shown = spans[:_MOST_RANGES] + ["…"] * (len(spans) > _MOST_RANGES)
    return ", ".join(words) + (f" (lines {', '.join(shown)})" if shown else "")


def _describe_symbols(file: FileActivity, room: NotesRoom) -> str:
    """Return the names defined last in a file: a few, or more if the room is large."""
    most = _MOST_SYMBOLS if room.chars >= _LARGE_ROOM else _MOST_SYMBOLS // 3
    names = [f"`{name}`" for name in file.symbols][-most:]
    return _DEFINES + ", ".join(names) if names else ""


def _common_root(paths: Iterable[str]) -> str:
    """Return the deepest directory that contains most of the absolute paths; empty if there is none."""
    absolute = [path for path in paths if path.startswith("/")]
    holds: Counter[str] = Counter()
    for path in absolute:
        parent = path.rpartition("/")[0]
        while parent.count("/") >= 2:
            holds[parent] += 1
            parent = parent.rpartition("/")[0]
    good = [directory for directory, count in holds.items() if count >= max(2, 0.6 * len(absolute))]
    return max(good, key=lambda directory: (directory.count("/"), directory), default="")


def _shown_path(path: str, root: str) -> str:
    """Return a path as it is shown: relative to the root if there is one; paths that were relative before begin with `./`."""
    if not root:
        return path
    return path.removeprefix(f"{root}/") if path.startswith(("/", "~")) else f"./{path}"


def _full_path(path: str, root: str) -> str:
    if path.startswith(("/", "~")) or not root:
        return path
    return path[2:] if path.startswith("./") else f"{root}/{path}"


def roots_of(previous: SummaryOutline) -> int:
    """Return how many roots the paths of a previous summary are relative to: several if it was merged from several."""
    return sum(_ROOT.fullmatch(item) is not None for item in previous.of(Section.FILES))


def is_known_item(item: str) -> bool:
    """Return whether `files_of` parses an item of a previous summary, so that it need not be carried over as it is."""
    return bool(_ROOT.fullmatch(item) or _parse_item(item))


# Commands


_COMMITTED = re.compile(
    r"^\[(?P<branch>[^\s\]]+)(?: \([^)]*\))? (?P<hash>[0-9a-f]{6,40})\] (?P<subject>.+)$", re.MULTILINE
)
_URL = re.compile(r"https?://\S+/(?:pull|issues|merge_requests|pulls)/\d+")
_TITLE = re.compile(r"(?:--title|-t)[ =](?:\"([^\"]+)\"|'([^']+)')")
_BRANCH = re.compile(r"^(?:On branch|Switched to (?:a new )?branch) '?([^\s']+)'?", re.MULTILINE)
_LABELS = {"test": "Test", "check": "Check", "build": "Build"}
_LONGEST_COMMAND = 160
_OFTEN = 3


def command_notes(story: Story, previous: SummaryOutline, room: NotesRoom) -> Iterator[Note]:
    """Yield commits and pull requests as done, the commands that tests, checks and builds ran, and the git branch."""
    runs: dict[tuple[str, str], list[CommandOutcome]] = {}
    numbers: dict[tuple[str, str], int] = {}
    often: Counter[str] = Counter()
    branch = ""
    for step in story.steps:
        if step.kind != "shell" or not step.answered or step.refused:
            continue
        command = clip(bare_command(command_of(step)), _LONGEST_COMMAND)
        kind = purpose_of_command(command)
        if found := _BRANCH.search(step.output[:2_000]):
            branch = found[1]
        if kind in {"commit", "publish"}:
            yield from _published_notes(step, room)
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
    runs: dict[tuple[str, str], list[CommandOutcome]], numbers: dict[tuple[str, str], int], room: NotesRoom
) -> Iterator[Note]:
    for at, ((kind, command), outcomes) in enumerate(runs.items()):
        times = f"{len(outcomes)} runs, the last" if len(outcomes) > 1 else "one run,"
        code = command if "`" in command else f"`{command}`"
        text = room.cited(f"{_LABELS[kind]}: {code} · {times} {outcomes[-1]}", numbers[kind, command])
        worth = min(len(outcomes), 5) / 2 + at / len(runs)
        yield Note(section=Section.TOOLS, text=text, worth=room.worth(command, worth))


def _published_notes(step: ActivityStep, room: NotesRoom) -> Iterator[Note]:
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


def tool_note(story: Story, previous: SummaryOutline) -> Iterator[Note]:
    """Yield one item that counts the tools used, including the previous summary's counts."""
    times: Counter[str] = Counter()
    for item in previous.of(Section.TOOLS):
        if item.startswith("Tools: "):
            times.update(
                {name: int(count) for name, count in re.findall(r"(\S+) (\d+)×", without_handle(item))}
            )
    times.update(step.call.name for step in story.steps)
    if times:
        counts = ", ".join(f"{name} {count}×" for name, count in times.most_common(12))
        yield Note(section=Section.TOOLS, text="Tools: " + counts, worth=0.8)


# Errors


_FAILS = " fails: "
_FIXED = "No longer failing: "
_SEEN = "Seen on the way: "
_RECENT = 12
"""A failure that is not of a test, check or build blocks only if it is among this many last steps."""
_LONGEST_LINE = 160
_FAILURES_PER_ITEM = 6
_VERIFYING = frozenset({"test", "check", "build"})


class _Failure(Struct, kw_only=True):
    """An error line and where it was last seen."""

    line: str
    at: int
    number: int


def error_notes(story: Story, previous: SummaryOutline, room: NotesRoom) -> Iterator[Note]:
    """Yield errors grouped by the command that printed them; those of the previous summary are resolved by a successful run."""
    failures: dict[str, dict[str, _Failure]] = {}
    last_run: dict[str, int] = {}
    last_good: dict[str, int] = {}
    purposes: dict[str, str] = {}
    for at, step in enumerate(story.steps):
        if not step.answered or step.refused:
            continue
        key = _failure_key(step)
        lines = error_lines(step)
        purposes[key] = purpose_of_command(key) if step.kind == "shell" else step.kind
        last_run[key] = at
        if not lines and not step.failed:
            last_good[purposes[key]] = at
        for line in lines:
            failures.setdefault(key, {})[same_error(line)] = _Failure(line=line, at=at, number=step.number)
    for key, seen in failures.items():
        done = max(last_run[key], last_good.get(purposes[key], -1) if purposes[key] in _VERIFYING else -1)
        opened = [failure for failure in seen.values() if failure.at >= done]
        closed = [failure for failure in seen.values() if failure.at < done]
        if purposes[key] == "view":
            yield from _failure_notes(key, list(seen.values()), Section.CONTEXT, room, 0.8)
            continue
        blocks = purposes[key] in _VERIFYING or done >= len(story.steps) - _RECENT
        section = Section.BLOCKED if blocks else Section.CONTEXT
        yield from _failure_notes(key, opened, section, room, 4.0 if blocks else 1.2)
        yield from _failure_notes(
            key, closed, Section.RESOLVED, room, 1.5 if purposes[key] in _VERIFYING else 0.8
        )
    for item in previous.of(Section.BLOCKED):
        yield _carried_failure(item, last_run, failures)


def _failure_key(step: ActivityStep) -> str:
    if step.kind == "shell":
        return clip(bare_command(command_of(step)), _LONGEST_LINE) or step.call.name
    path = "/".join(path_of(step.call).rsplit("/", 2)[-2:])
    first = next((value for value in step.arguments.values() if isinstance(value, str)), "")
    return f"{step.call.name} {path or clip(first, 80)}".strip()


def _failure_notes(
    key: str, failures: list[_Failure], section: Section, room: NotesRoom, worth: float
) -> Iterator[Note]:
    ordered = sorted(failures, key=lambda failure: failure.at)
    for start in range(0, len(ordered), _FAILURES_PER_ITEM):
        group = ordered[start : start + _FAILURES_PER_ITEM]
        lines = " | ".join(filter(None, (clip(failure.line, _LONGEST_LINE) for failure in group)))
        label = {Section.BLOCKED: "", Section.RESOLVED: _FIXED}.get(section, _SEEN)
        joint = _FAILS if section == Section.BLOCKED else ": "
        text = f"{label}{_as_code(key)}{joint}{lines}"
        number = group[-1].number
        yield Note(section=section, text=room.cited(text, number), worth=room.worth(text, worth), at=number)


def _as_code(text: str) -> str:
    return text if "`" in text else f"`{text}`"


def _carried_failure(item: str, last_run: dict[str, int], failures: dict[str, dict[str, _Failure]]) -> Note:
    """Return a blocked item of the previous summary as still blocked, or as resolved if its command has succeeded since."""
    key = item.partition(_FAILS)[0].strip("`")
    if key in last_run and not any(f.at >= last_run[key] for f in failures.get(key, {}).values()):
        return Note(section=Section.RESOLVED, text=_FIXED + item.replace(_FAILS, ": ", 1), worth=1.2)
    return Note(section=Section.BLOCKED, text=item, worth=3)


# Calls of other tools


_LOOKUP_NAME = re.compile(
    r"(?:^|_)(?:get|list|search|find|fetch|read|query|describe|lookup|show|view|check|track|status|count|resolve|think"
    r"|calculate)(?:_|$)"
)
_UNREPORTED = frozenset({"EnterPlanMode", "ExitPlanMode", "TaskOutput", "think", "view_image"})
_REPORTED_KINDS = frozenset({"other", "web", "memory"})
_LONGEST_ARGUMENTS = 300


def call_notes(story: Story, room: NotesRoom) -> Iterator[Note]:
    """Yield what calls of other tools did, as done, or looked up, as context; failed calls are left to `error_notes`."""
    for step in story.steps:
        if (
            step.kind not in _REPORTED_KINDS
            or step.failed
            or not step.answered
            or step.call.name in _UNREPORTED
        ):
            continue
        is_lookup = step.kind == "web" or _LOOKUP_NAME.search(_base_name(step.call.name)) is not None
        text = f"`{step.call.name}` {_arguments(step)} → {clip(plain_text(step.output[:600]), 160) or 'no output'}"
        yield Note(
            section=Section.CONTEXT if is_lookup else Section.DONE,
            text=room.cited(text, step.number),
            worth=room.worth(text, 0.9 if is_lookup else 2.0),
            at=step.number,
        )


def _base_name(name: str) -> str:
    return name.rsplit("__", 1)[-1].lower().replace("-", "_")


def _arguments(step: ActivityStep) -> str:
    """Return the arguments as `name=value`, with long values clipped."""
    pairs = (f"{name}={clip(_as_text(value), 120) or '…'}" for name, value in step.arguments.items())
    return clip(", ".join(pairs), _LONGEST_ARGUMENTS)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else str(value)


# Names in what was written


_WRITTEN_NAMES = "Names in what was written to "
_MOST_NAMES = 24
"""The most names listed for one file."""
_ARGUMENT_READ = 20_000
"""Characters of one argument that are read."""


def written_notes(story: Story, text: str, room: NotesRoom) -> Iterator[Note]:
    """Yield for each file written to, newest first, the names in what was written that `text` lacks, most frequent first."""
    naming = NameFinder()
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
            :_MOST_NAMES
        ]
        listed.update(fresh)
        if fresh:
            line = f"{_WRITTEN_NAMES}`{path}`: {', '.join(name.text for name in fresh)}"
            yield Note(section=Section.CONTEXT, text=line, worth=room.worth(line, 0.4), at=AT_END)


def _texts(step: ActivityStep) -> Iterator[str]:
    """Yield every text in the arguments of a call, at any depth."""
    pending: list[object] = list(step.arguments.values())
    while pending:
        match pending.pop():
            case str(text):
                yield text[:_ARGUMENT_READ]
            case list(items):
                pending += items
            case dict(fields):
                pending += fields.values()
            case _:
                pass
