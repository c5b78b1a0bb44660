"""How this project is tested, built and checked, what was published, and which tools were used."""

import re
from collections import Counter
from collections.abc import Iterator

from lowwater.compact.summary.commands import bare, command_of, purpose
from lowwater.compact.summary.notes import Note, Room, uncited
from lowwater.compact.summary.outcomes import Outcome, outcome_of
from lowwater.compact.summary.phrases import clip, flat
from lowwater.compact.summary.story import Step, Story
from lowwater.compact.summary.template import Outline, Section

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
