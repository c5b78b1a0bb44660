"""What the assistant decided and found out, and what it said is left to do."""

import re
from collections.abc import Iterator, Sequence

from lowwater.compact.summary.hygiene import said
from lowwater.compact.summary.notes import Note, Room, carried
from lowwater.compact.summary.phrases import clip
from lowwater.compact.summary.story import Statement, Step, Story
from lowwater.compact.summary.telling import Told, condense, told
from lowwater.compact.summary.template import Outline, Section

_DECIDES = re.compile(
    r"""\b(?:decided?|decision|going\ with|chose|opted|settled\ on|agreed|trade-?off|instead\ of|rather\ than|won't|must\ not
    |so\ (?:we|i)\ (?:should|must|can't))\b
    |决定|选择|而不是|決定""",
    re.IGNORECASE | re.VERBOSE,
)
_EXPLAINS = re.compile(
    r"""\b(?:root\ cause|the\ cause\ (?:is|was)|caused\ by|because|turns\ out
    |the\ (?:real\ |actual\ |main\ |core\ )?(?:problem|issue|bug|reason)\ (?:is|was)
    |the\ fix\ is|the\ key|found\ (?:it|the)|this\ means|that's\ why|which\ means)\b
    |因为|原因|問題は""",
    re.IGNORECASE | re.VERBOSE,
)
_INTENDS = re.compile(r"\b(?:I'?ll|I will|we'?ll|plan is|the plan)\b", re.IGNORECASE)
_STEPS = re.compile(
    r"""\b(?:I'?ll|I\ will|we'?ll)\ (?:(?:also|now|just|first|then)\ )*
    (?:read|check|look|run|see|search|find|view|examine|start|verify|continue|get|open|review|try|use|test|rerun|add\ it|do)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_NEXT = re.compile(
    r"""\b(?:next\ steps?|remaining|still\ (?:need|have|to|missing|open)|left\ to|to-?do|follow-?ups?|not\ yet|what's\ left
    |outstanding|afterwards|then\ i'?ll)\b
    |下一步|接下来|残り|剩下""",
    re.IGNORECASE | re.VERBOSE,
)
_LONGEST = 360
_REPORT_READ = 8_000
"""Characters of a plan or report that are read."""
_LATE = 4
"""Statements at the end in which what is left to do is looked for."""


def decision_notes(sentences: Sequence[Told], previous: Outline, room: Room) -> Iterator[Note]:
    """Yield the sentences in which the assistant decided or explained something, in order."""
    yield from carried(previous, Section.DECISIONS, 1.5)
    for at, sentence in enumerate(sentences):
        worth = _worth(sentence)
        if worth <= 0 or sentence.text.endswith(("?", ":")):
            continue
        text = clip(sentence.text, _LONGEST)
        if len(text) < 30:
            continue
        recent = at / len(sentences)
        yield Note(
            section=Section.DECISIONS,
            text=room.cited(text, sentence.number),
            worth=room.worth(text, worth + recent),
            at=sentence.number,
        )


def _worth(sentence: Told) -> float:
    worth = 2.0 * bool(_DECIDES.search(sentence.text)) + 1.5 * bool(_EXPLAINS.search(sentence.text))
    if not worth and sentence.names and _INTENDS.search(sentence.text) and not _STEPS.search(sentence.text):
        worth = 0.6
    if not worth:
        return 0.0
    return worth + 0.25 * min(len(sentence.names), 4) - (1.5 if sentence.process else 0)


def plan_notes(story: Story, room: Room) -> Iterator[Note]:
    """Yield plans that were put before the user, answers the user picked, and what sub-agents reported."""
    for step in story.steps:
        if step.failed or step.refused:
            continue
        plan = step.arguments.get("plan")
        if isinstance(plan, str):
            yield _note(step, Section.DECISIONS, f"Plan: {_condensed(plan, room)}", 3.0, room)
        elif step.kind == "clarify" and step.output:
            yield _note(step, Section.RESOLVED, clip(step.output, 500), 3.0, room)
        elif step.kind == "agent" and step.output:
            about = clip(str(step.arguments.get("description") or step.subject), 80)
            text = f'A sub-agent on "{about}" reported: {_condensed(step.output, room)}'
            yield _note(step, Section.RESOLVED, text, 2.2, room)


def _condensed(text: str, room: Room) -> str:
    limit = room.limit(text[:_REPORT_READ], share=0.15, among=4, most=800)
    return condense(told(Statement(number=0, text=said(text[:_REPORT_READ]), closes=True)), limit)


def _note(step: Step, section: Section, text: str, worth: float, room: Room) -> Note:
    return Note(
        section=section,
        text=room.cited(text, step.number),
        worth=room.worth(text, worth),
        at=step.number,
    )


def next_notes(story: Story, previous: Outline, room: Room) -> Iterator[Note]:
    """Yield what the assistant last said is left to do, or what the previous summary says."""
    found = [
        sentence
        for statement in story.statements[-_LATE:]
        for sentence in told(statement)
        if _NEXT.search(sentence.text) and not sentence.text.endswith("?") and len(sentence.text) >= 20
    ]
    for sentence in found[-8:]:
        text = room.cited(clip(sentence.text, _LONGEST), sentence.number)
        yield Note(section=Section.REMAINING, text=text, worth=3)
    if not found:
        yield from carried(previous, Section.REMAINING, 2)
