"""Errors by the command that showed them: still open, resolved later, or passed by."""

from collections.abc import Iterator

from msgspec import Struct

from lowwater.compact.summary.commands import bare, command_of, purpose
from lowwater.compact.summary.notes import Note, Room
from lowwater.compact.summary.phrases import clip
from lowwater.compact.summary.story import Step, Story
from lowwater.compact.summary.template import Outline, Section
from lowwater.compact.summary.trouble import error_lines, same_error
from lowwater.values.tools import path_of

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
