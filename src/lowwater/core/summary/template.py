"""The template of every summary: its sections, rendering them as Markdown, and parsing them back."""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType

from msgspec import Struct


class Section(StrEnum):
    """A section of the template; the value is its heading."""

    GOAL = "Goal"
    CONSTRAINTS = "Constraints & Preferences"
    DONE = "Done"
    IN_PROGRESS = "In Progress"
    BLOCKED = "Blocked"
    DECISIONS = "Key Decisions"
    RESOLVED = "Resolved Questions"
    PENDING = "Pending User Asks"
    FILES = "Relevant Files"
    REMAINING = "Remaining Work / Next Steps"
    CONTEXT = "Critical Context"
    TOOLS = "Tools & Patterns"


HINTS: MappingProxyType[Section, str] = MappingProxyType(
    {
        Section.GOAL: "what the user wants in the end",
        Section.CONSTRAINTS: "everything the user demanded, preferred or forbade, in the user's words",
        Section.DONE: "what is finished, with the files, commands and tests it concerned",
        Section.IN_PROGRESS: "what was being worked on last, and how far it got",
        Section.BLOCKED: "what does not work, with the error lines word for word",
        Section.DECISIONS: "what was decided, and why",
        Section.RESOLVED: "questions that were answered, with their answers",
        Section.PENDING: "what the user asked for and has not been given",
        Section.FILES: "each path that was read or changed, and what matters about it",
        Section.REMAINING: "what is left to do, in order",
        Section.CONTEXT: "values, ids, names and numbers that cannot be guessed",
        Section.TOOLS: "how commands and tools had to be called to work",
    }
)
"""What a model is told that each section is for."""

PROGRESS = "Progress"
_PROGRESS_SECTIONS = (Section.DONE, Section.IN_PROGRESS, Section.BLOCKED)
_LINE = re.compile(r"(?P<marks>#{1,4})\s+(?P<heading>.+?)\s*#*|(?P<bullet>[-*•]|\d+[.)])\s+(?P<item>\S.*)")
_WORDS = re.compile(r"[a-z]+")
_HEADINGS = {
    "goal": Section.GOAL,
    "constraint": Section.CONSTRAINTS,
    "preference": Section.CONSTRAINTS,
    "done": Section.DONE,
    "complete": Section.DONE,
    "progress": Section.DONE,
    "in progress": Section.IN_PROGRESS,
    "current": Section.IN_PROGRESS,
    "active": Section.IN_PROGRESS,
    "blocked": Section.BLOCKED,
    "key decision": Section.DECISIONS,
    "decision": Section.DECISIONS,
    "resolved": Section.RESOLVED,
    "pending": Section.PENDING,
    "relevant file": Section.FILES,
    "file": Section.FILES,
    "remaining": Section.REMAINING,
    "next step": Section.REMAINING,
    "critical context": Section.CONTEXT,
    "tool": Section.TOOLS,
}


class SummaryOutline(Struct, frozen=True, kw_only=True):
    """A summary as items by section; an item is a bullet point and may have several lines."""

    items: Mapping[Section, tuple[str, ...]] = {}

    def of(self, section: Section) -> tuple[str, ...]:
        """Return the items of a section."""
        return self.items.get(section, ())

    def __bool__(self) -> bool:
        return any(self.items.values())


def outline(items: Mapping[Section, Iterable[str]]) -> SummaryOutline:
    """Return an outline of these items, without blank lines and surrounding spaces."""
    tidied = {section: tuple(filter(None, map(_tidy, items.get(section, ())))) for section in Section}
    return SummaryOutline(items={section: texts for section, texts in tidied.items() if texts})


def render(summary: SummaryOutline) -> str:
    """Return the outline as Markdown; empty sections are left out."""
    blocks: list[str] = []
    in_progress = False
    for section in Section:
        texts = summary.of(section)
        if not texts:
            continue
        within = section in _PROGRESS_SECTIONS
        if within and not in_progress:
            blocks.append(f"## {PROGRESS}")
            in_progress = True
        heading = f"{'###' if within else '##'} {section}"
        blocks.append("\n".join([heading, *("- " + text.replace("\n", "\n  ") for text in texts)]))
    return "\n\n".join(blocks)


def parse(text: str) -> SummaryOutline:
    """Return the outline of a summary, whoever wrote it; items under no known heading are critical context."""
    found: dict[Section, list[str]] = {section: [] for section in Section}
    section = Section.CONTEXT
    for line in text.splitlines():
        stripped = line.strip()
        match = _LINE.fullmatch(line.rstrip())
        if not stripped:
            continue
        if match and match["marks"]:
            section = _section_of(match["heading"])
        elif match:
            found[section].append(match["item"])
        elif line[:1].isspace() and found[section]:
            found[section][-1] += "\n" + line.removeprefix("  ").rstrip()
        else:
            found[section].append(stripped)
    return outline(found)


def _section_of(heading: str) -> Section:
    words = " ".join(_WORDS.findall(heading.lower()))
    return next(
        (section for opening, section in _HEADINGS.items() if words.startswith(opening)),
        Section.CONTEXT,
    )


def _tidy(item: str) -> str:
    return "\n".join(line.rstrip() for line in item.strip().splitlines() if line.strip())
