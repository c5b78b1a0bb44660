"""Which files a session touched and how, counted from its tool calls."""

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

from lowwater.compact.summary.commands import bare, command_of
from lowwater.compact.summary.story import Step, Story
from lowwater.values.tools import path_of

Touch = Literal["created", "written", "edited", "deleted", "read"]

_PATCH = "*** Begin Patch"
_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+?)\s*$|^\*\*\* Move to: (.+?)\s*$", re.MULTILINE)
_VERBS: dict[str, Touch] = {"Add": "created", "Delete": "deleted"}
_SHOWN = re.compile(
    r"(?:^|[|;&(])\s*(?:cat|head|tail|nl|bat|less)\s+(?:-\S+\s+(?:\d+\s+)?)*(?P<path>[\w@./~+-]*[./][\w@./+-]*\w)"
)
_SED = re.compile(r"\bsed\s+-n\s+['\"]?(?P<first>\d{1,9}),(?P<last>\d{1,9})p['\"]?\s+(?P<path>[\w@./~+-]*\w)")
_CREATED = re.compile(r"\bcreated?\b|create_", re.IGNORECASE)
_PARTIAL = ("old_string", "old_str", "oldText", "edits", "insert_line")
_DEFINED = re.compile(
    r"^[ \t+]*(?:(?:export|default|public|private|protected|static|async|abstract|pub(?:\([^)]*\))?)\s+)*"
    r"(?:def|class|func|function|fn|interface|struct|enum|trait|type|impl)\s+(?:\([^)\n]*\)\s*)?(?P<name>[A-Za-z_]\w{2,60})",
    re.MULTILINE,
)
_CHANGES = (
    "old_string",
    "new_string",
    "old_str",
    "new_str",
    "oldText",
    "newText",
    "content",
    "file_text",
    "input",
    "patch",
)
_MOST_SHOWN = 5
"""Files that one shell command is taken to have shown."""


class Touched(Struct, kw_only=True):
    """What happened to one file so far."""

    created: bool = False
    deleted: bool = False
    writes: int = 0
    edits: int = 0
    reads: int = 0
    ranges: list[tuple[int, int]] = []
    symbols: dict[str, None] = {}
    """What was defined in the text that was written, in order."""
    last: int = 0
    """The number of the message that touched it last."""
    order: int = 0
    """Larger for what was touched later."""

    @property
    def changed(self) -> bool:
        """Whether anything but reading happened to it."""
        return self.created or self.deleted or self.writes > 0 or self.edits > 0


Files = dict[str, Touched]


def touch_files(files: Files, story: Story) -> None:
    """Count the story's steps into `files`; failed ones touched nothing."""
    for order, step in enumerate(story.steps, start=1):
        if step.failed or not step.answered:
            continue
        directory = step.arguments.get("workdir")
        base = directory if isinstance(directory, str) else ""
        for path, touch in _touches(step):
            file = files.setdefault(_joined(base, path), Touched())
            file.order, file.last = order, step.number
            if touch in {"created", "written", "edited"}:
                file.symbols |= dict.fromkeys(_defined(step, path))
            _count(file, touch, step)


def _touches(step: Step) -> Iterator[tuple[str, Touch]]:
    match step.kind:
        case "read" if path := path_of(step.call):
            yield path, "read"
        case "write":
            yield from _written(step)
        case "shell" if _PATCH in step.subject:
            yield from _patched(step.subject)
        case "shell":
            shown = (*_SED.finditer(command_of(step)), *_SHOWN.finditer(bare(command_of(step))))
            yield from ((match["path"], "read") for match in shown[:_MOST_SHOWN])
        case _:
            pass


def _written(step: Step) -> Iterator[tuple[str, Touch]]:
    texts = (value for value in step.arguments.values() if isinstance(value, str))
    patch = next((text for text in texts if _PATCH in text), "")
    if not step.arguments and _PATCH in step.call.arguments:
        patch = step.call.arguments
    if patch:
        yield from _patched(patch)
    elif path := path_of(step.call):
        whole = not any(name in step.arguments for name in _PARTIAL)
        verb = step.arguments.get("command", "")
        made = whole and _CREATED.search(f"{step.call.name} {verb} {step.output[:200]}")
        yield path, "created" if made else "written" if whole else "edited"


def _patched(patch: str) -> Iterator[tuple[str, Touch]]:
    for verb, path, moved in _PATCHED.findall(patch):
        yield (moved or path), _VERBS.get(verb, "edited")


def _defined(step: Step, path: str) -> Iterator[str]:
    """Yield the names that a step's text for a file defines."""
    texts = [value for name in _CHANGES if isinstance(value := step.arguments.get(name), str)]
    if not texts and step.kind == "shell":
        texts = [step.subject]
    for text in texts:
        start = text.find(f" File: {path}") if _PATCH in text else 0
        stop = text.find("\n*** ", start + 1) if _PATCH in text else len(text)
        yield from _DEFINED.findall(text, max(start, 0), stop if stop > 0 else len(text))


def _count(file: Touched, touch: Touch, step: Step) -> None:
    match touch:
        case "read":
            file.reads += 1
            if lines := _lines_read(step):
                file.ranges = united([*file.ranges, lines])
        case "deleted":
            file.deleted = True
        case "created":
            file.created, file.deleted = True, False
        case "written":
            file.writes += 1
        case "edited":
            file.edits += 1


def _lines_read(step: Step) -> tuple[int, int] | None:
    match step.arguments:
        case {"view_range": [int(first), int(last)]} if 0 < first <= last:
            return (first, last)
        case {"offset": int(first), "limit": int(length)} if first > 0 < length:
            return (first, first + length - 1)
        case {"limit": int(length)} if length > 0:
            return (1, length)
    sed = _SED.search(command_of(step))
    return (int(sed["first"]), int(sed["last"])) if sed else None


def united(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the ranges in order, those that touch or overlap made one."""
    result: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(last, result[-1][1]))
        else:
            result.append((first, last))
    return result


def _joined(base: str, path: str) -> str:
    """Return a path below the directory it was named in, without `.` and `..` steps."""
    whole = path if path.startswith(("/", "~")) or not base else f"{base.rstrip('/')}/{path}"
    steps: list[str] = []
    for step in whole.split("/"):
        if step == ".." and steps and steps[-1] not in {"", ".."}:
            steps.pop()
        elif step not in {"", "."} or not steps:
            steps.append(step)
    return "/".join(steps[1:] if steps[0] == "." and len(steps) > 1 else steps)
