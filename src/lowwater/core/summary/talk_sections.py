"""The sections of a summary about the conversation: goal, progress, decisions, task list and context."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from lowwater.core.messages import Message
from lowwater.core.summary.activity import (
    ActivityStep,
    AssistantSentence,
    Episode,
    Statement,
    Story,
    condense_sentences,
    join_sentences,
    own_words,
    sentences_of,
    spoken_text,
)
from lowwater.core.summary.notes import AT_END, Note, NotesRoom, carried_notes, without_handle
from lowwater.core.summary.request import Critical, CriticalKind
from lowwater.core.summary.template import Section, SummaryOutline
from lowwater.core.summary.text import asks_back, clip, constraints_in, is_brief, is_question, one_line

WORKING = "Working on: "
LAST_SAID = "Last said: "
_FIRST_ASKED = "First asked: "
_LAST_ASKED = "Asked last: "
_AWAITING = "Waiting for the user's answer to: "
_LONGEST_GOAL = 900
_LONGEST_OUTCOME = 700


def goal_notes(story: Story, previous: SummaryOutline, room: NotesRoom) -> Iterator[Note]:
    """Yield what was asked first and what was asked last."""
    asks = [episode for episode in story.episodes if episode.ask and not is_brief(episode.ask)]
    before = [item for item in previous.of(Section.GOAL) if not item.startswith(_LAST_ASKED)]
    for item in before:
        yield Note(section=Section.GOAL, text=item, worth=9)
    first = asks[:1] if not before else []
    latest = asks[-1:] if asks[-1:] != first else []
    for label, episodes, worth in ((_FIRST_ASKED, first, 9.0), (_LAST_ASKED, latest, 8.0)):
        for episode in episodes:
            limit = room.limit(episode.ask, share=0.05, among=1, most=_LONGEST_GOAL)
            yield Note(
                section=Section.GOAL,
                text=room.cited(label + _quoted(episode.ask, limit), episode.number),
                worth=worth,
            )


def constraint_notes(story: Story, previous: SummaryOutline, room: NotesRoom) -> Iterator[Note]:
    """Yield the user's constraints, those of the previous summary first; they accumulate."""
    yield from carried_notes(previous, Section.CONSTRAINTS, 6)
    found = [(sentence, ep) for ep in story.episodes for sentence in constraints_in(ep.ask)]
    for at, (sentence, episode) in enumerate(found):
        text = room.cited(_quoted(sentence, 320), episode.number)
        yield Note(section=Section.CONSTRAINTS, text=text, worth=room.worth(sentence, 5 + at / len(found)))


def progress_notes(
    story: Story, previous: SummaryOutline, newest_user: Message | None, room: NotesRoom
) -> Iterator[Note]:
    """Yield done, in progress, resolved and pending items; the previous summary's running ask is continued or closed."""
    episodes = _with_running_ask(story.episodes, previous)
    asked = sum(bool(episode.ask) for episode in episodes)
    question = ""
    for at, episode in enumerate(episodes):
        last = at == len(episodes) - 1
        statements = [sentences_of(statement) for statement in episode.statements]
        if last and not episode.reply:
            yield from _unfinished_notes(episode, newest_user, statements, room)
        elif episode.ask or (last and statements):
            worth = 2 + at / len(episodes)
            yield from _finished_notes(episode, question, statements, room, worth=worth, among=asked)
        question = asks_back(episode.reply.text) if episode.reply else ""
    if question and (newest_user is None or own_words(newest_user) == episodes[-1].ask):
        yield Note(section=Section.PENDING, text=_AWAITING + _quoted(question, 300), worth=8)


def _with_running_ask(episodes: Sequence[Episode], previous: SummaryOutline) -> tuple[Episode, ...]:
    """Return the episodes; what came before the first ask gets the ask that the previous summary has as running or pending."""
    lead, *others = episodes
    running = next((item for item in previous.of(Section.IN_PROGRESS) if item.startswith(WORKING)), "")
    pending = [item for item in previous.of(Section.PENDING) if item.startswith('"')]
    ask = without_handle(running.removeprefix(WORKING)).strip('"') or " ".join(
        without_handle(item).strip('"') for item in pending
    )
    if not (lead.statements or lead.steps):
        return tuple(others) if others else (lead,)
    return (Episode(number=lead.number, ask=ask, statements=lead.statements, steps=lead.steps), *others)


def _unfinished_notes(
    episode: Episode,
    newest_user: Message | None,
    statements: Sequence[Sequence[AssistantSentence]],
    room: NotesRoom,
) -> Iterator[Note]:
    ask = episode.ask or (own_words(newest_user) if newest_user else "")
    if not (episode.steps or episode.statements):
        if ask:
            limit = room.limit(ask, share=0.05, among=1, most=_LONGEST_GOAL)
            yield Note(section=Section.PENDING, text=room.cited(_quoted(ask, limit), episode.number), worth=9)
        return
    if ask:
        text = room.cited(WORKING + _quoted(ask, 200), episode.number)
        yield Note(section=Section.IN_PROGRESS, text=text, worth=9)
    latest = next(
        (
            condense_sentences(sentences, 400)
            for sentences in reversed(statements)
            if condense_sentences(sentences, 400)
        ),
        "",
    )
    if latest:
        yield Note(section=Section.IN_PROGRESS, text=LAST_SAID + latest, worth=8)


def _finished_notes(
    episode: Episode,
    question: str,
    statements: Sequence[Sequence[AssistantSentence]],
    room: NotesRoom,
    *,
    worth: float,
    among: int,
) -> Iterator[Note]:
    """Yield an ask with its outcome."""
    limit = room.limit(episode.ask, share=0.35, among=among, most=_LONGEST_OUTCOME)
    outcome = next(
        (text for text in (condense_sentences(s, limit) for s in reversed(statements)) if text), ""
    )
    number = episode.number or (episode.statements[0].number if episode.statements else 0)
    until = episode.statements[-1].number if episode.statements else 0
    ask = _quoted(episode.ask, max(160, limit // 2)) if episode.ask else ""
    changed = any(step.kind == "write" and not step.failed for step in episode.steps)
    if question and is_brief(episode.ask) and not changed:
        text = f"{clip(question, 300)} The user: {ask}"
        yield Note(
            section=Section.RESOLVED,
            text=room.cited(text, number),
            worth=room.worth(question, worth),
            at=number,
        )
        if not outcome:
            return
    if outcome:
        joint = "→" if episode.reply else "(interrupted) " + LAST_SAID.strip()
        text = f"{ask} {joint} {outcome}" if ask else outcome
    else:
        text = f"{ask} → {'files were changed' if changed else 'no answer in words'}."
    section = Section.RESOLVED if is_question(episode.ask) and not changed else Section.DONE
    brief = is_brief(episode.ask) and not changed
    yield Note(
        section=section,
        text=room.cited(text, number, until),
        worth=room.worth(text, worth - (1.5 if brief else 0)),
        at=max(number, until),
    )


def _quoted(text: str, limit: int) -> str:
    """Return a user's text in quotation marks, on one line."""
    return f'"{clip(one_line(text), limit)}"'


# Decisions, plans and next steps


_DECISION = re.compile(
    r"""\b(?:decided?|decision|going\ with|chose|opted|settled\ on|agreed|trade-?off|instead\ of|rather\ than|won't|must\ not
    |so\ (?:we|i)\ (?:should|must|can't))\b
    |决定|选择|而不是|決定""",
    re.IGNORECASE | re.VERBOSE,
)
_EXPLANATION = re.compile(
    r"""\b(?:root\ cause|the\ cause\ (?:is|was)|caused\ by|because|turns\ out
    |the\ (?:real\ |actual\ |main\ |core\ )?(?:problem|issue|bug|reason)\ (?:is|was)
    |the\ fix\ is|the\ key|found\ (?:it|the)|this\ means|that's\ why|which\ means)\b
    |因为|原因|問題は""",
    re.IGNORECASE | re.VERBOSE,
)
_INTENTION = re.compile(r"\b(?:I'?ll|I will|we'?ll|plan is|the plan)\b", re.IGNORECASE)
_ROUTINE = re.compile(
    r"""\b(?:I'?ll|I\ will|we'?ll)\ (?:(?:also|now|just|first|then)\ )*
    (?:read|check|look|run|see|search|find|view|examine|start|verify|continue|get|open|review|try|use|test|rerun|add\ it|do)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_REMAINING = re.compile(
    r"""\b(?:next\ steps?|remaining|still\ (?:need|have|to|missing|open)|left\ to|to-?do|follow-?ups?|not\ yet|what's\ left
    |outstanding|afterwards|then\ i'?ll)\b
    |下一步|接下来|残り|剩下""",
    re.IGNORECASE | re.VERBOSE,
)
_LONGEST_ITEM = 360
_REPORT_READ = 8_000
"""Characters of a plan or report that are read."""
_LATEST_STATEMENTS = 4
"""How many of the last statements are searched for remaining work."""


def decision_notes(
    sentences: Sequence[AssistantSentence], previous: SummaryOutline, room: NotesRoom
) -> Iterator[Note]:
    """Yield the sentences in which the assistant decided or explained something, in order."""
    yield from carried_notes(previous, Section.DECISIONS, 1.5)
    for at, sentence in enumerate(sentences):
        worth = _decision_worth(sentence)
        if worth <= 0 or sentence.text.endswith(("?", ":")):
            continue
        text = clip(sentence.text, _LONGEST_ITEM)
        if len(text) < 30:
            continue
        recent = at / len(sentences)
        yield Note(
            section=Section.DECISIONS,
            text=room.cited(text, sentence.number),
            worth=room.worth(text, worth + recent),
            at=sentence.number,
        )


def _decision_worth(sentence: AssistantSentence) -> float:
    worth = 2.0 * bool(_DECISION.search(sentence.text)) + 1.5 * bool(_EXPLANATION.search(sentence.text))
    if (
        not worth
        and sentence.names
        and _INTENTION.search(sentence.text)
        and not _ROUTINE.search(sentence.text)
    ):
        worth = 0.6
    if not worth:
        return 0.0
    return worth + 0.25 * min(len(sentence.names), 4) - (1.5 if sentence.process else 0)


def plan_notes(story: Story, room: NotesRoom) -> Iterator[Note]:
    """Yield plans shown to the user, answers that the user chose, and reports of sub-agents."""
    for step in story.steps:
        if step.failed or step.refused:
            continue
        plan = step.arguments.get("plan")
        if isinstance(plan, str):
            yield _step_note(step, Section.DECISIONS, f"Plan: {_condensed_report(plan, room)}", 3.0, room)
        elif step.kind == "clarify" and step.output:
            yield _step_note(step, Section.RESOLVED, clip(step.output, 500), 3.0, room)
        elif step.kind == "agent" and step.output:
            about = clip(str(step.arguments.get("description") or step.subject), 80)
            text = f'A sub-agent on "{about}" reported: {_condensed_report(step.output, room)}'
            yield _step_note(step, Section.RESOLVED, text, 2.2, room)


def _condensed_report(text: str, room: NotesRoom) -> str:
    limit = room.limit(text[:_REPORT_READ], share=0.15, among=4, most=800)
    return condense_sentences(
        sentences_of(Statement(number=0, text=spoken_text(text[:_REPORT_READ]), closes=True)), limit
    )


def _step_note(step: ActivityStep, section: Section, text: str, worth: float, room: NotesRoom) -> Note:
    return Note(
        section=section,
        text=room.cited(text, step.number),
        worth=room.worth(text, worth),
        at=step.number,
    )


def next_notes(story: Story, previous: SummaryOutline, room: NotesRoom) -> Iterator[Note]:
    """Yield the remaining work that the assistant mentioned last, or else that of the previous summary."""
    found = [
        sentence
        for statement in story.statements[-_LATEST_STATEMENTS:]
        for sentence in sentences_of(statement)
        if _REMAINING.search(sentence.text) and not sentence.text.endswith("?") and len(sentence.text) >= 20
    ]
    for sentence in found[-8:]:
        text = room.cited(clip(sentence.text, _LONGEST_ITEM), sentence.number)
        yield Note(section=Section.REMAINING, text=text, worth=3)
    if not found:
        yield from carried_notes(previous, Section.REMAINING, 2)


# The task list


TaskState = Literal["done", "doing", "open"]
_STATES: dict[str, TaskState] = {
    "completed": "done",
    "complete": "done",
    "done": "done",
    "finished": "done",
    "in_progress": "doing",
    "in-progress": "doing",
    "active": "doing",
    "doing": "doing",
}
_DELETED_STATES = frozenset({"deleted", "cancelled", "canceled", "removed"})
_TASK_TEXT_FIELDS = ("content", "step", "subject", "title", "text", "task", "description")
_CREATED = re.compile(r"[Tt]ask #?(\d+)")
_NUMBERED = re.compile(r"#(\d+) (.+)", re.DOTALL)
_LONGEST_TASK = 240


class Todo(Struct, frozen=True, kw_only=True):
    """The tasks of the latest task list by state; `known` is False if there never was one."""

    known: bool = False
    done: tuple[str, ...] = ()
    doing: tuple[str, ...] = ()
    open: tuple[str, ...] = ()


def todo_of(story: Story, previous: SummaryOutline) -> Todo:
    """Return the task list after the story, whose steps may change tasks that the previous summary names."""
    tasks: dict[str, tuple[str, TaskState]] = dict(_previous_tasks(previous))
    known = False
    for step in story.steps:
        if step.kind != "todo" or step.failed:
            continue
        listed = tuple(_listed_tasks(step))
        if listed:
            tasks = {text: (text, state) for text, state in listed}
            known = True
        else:
            known = _change_task(tasks, step) or known
    if not known:
        return Todo()
    return Todo(
        known=True,
        done=tuple(text for text, state in tasks.values() if state == "done"),
        doing=tuple(text for text, state in tasks.values() if state == "doing"),
        open=tuple(text for text, state in tasks.values() if state == "open"),
    )


def _previous_tasks(previous: SummaryOutline) -> Iterator[tuple[str, tuple[str, TaskState]]]:
    states: tuple[tuple[Section, TaskState], ...] = (
        (Section.DONE, "done"),
        (Section.IN_PROGRESS, "doing"),
        (Section.REMAINING, "open"),
    )
    for section, state in states:
        for item in previous.of(section):
            if match := _NUMBERED.fullmatch(without_handle(item)):
                yield match[1], (without_handle(item), state)


def _listed_tasks(step: ActivityStep) -> Iterator[tuple[str, TaskState]]:
    """Yield the tasks of a call that writes the whole list."""
    for value in step.arguments.values():
        for task in value if isinstance(value, list) else ():
            if isinstance(task, dict) and (text := _task_text(task)):
                yield text, _task_state(task)


def _change_task(tasks: dict[str, tuple[str, TaskState]], step: ActivityStep) -> bool:
    """Create or change the task that the step names; return whether there was one."""
    task_id = str(step.arguments.get("taskId") or step.arguments.get("task_id") or "")
    if task_id:
        text, state = tasks.get(task_id, ("", "open"))
        subject = _task_text(step.arguments, ("subject", "title", "content"))
        text = f"#{task_id} {subject}" if subject else text
        status = str(step.arguments.get("status", "")).lower()
        if status in _DELETED_STATES:
            tasks.pop(task_id, None)
        elif text:
            tasks[task_id] = (text, _STATES.get(status, "open") if status else state)
        return bool(text)
    subject = _task_text(step.arguments)
    created = _CREATED.search(step.output, 0, 200)
    if not subject or not created:
        return False
    tasks[created[1]] = (f"#{created[1]} {subject}", "open")
    return True


def _task_text(task: dict[str, object], names: tuple[str, ...] = _TASK_TEXT_FIELDS) -> str:
    found = (task.get(name) for name in names)
    return next((clip(text, _LONGEST_TASK) for text in found if isinstance(text, str) and text.strip()), "")


def _task_state(task: dict[str, object]) -> TaskState:
    if task.get("done") is True or task.get("completed") is True:
        return "done"
    return _STATES.get(str(task.get("status") or task.get("state") or "").lower(), "open")


# References that no other section names


_LABELS: Mapping[CriticalKind, str] = {
    "path": "Paths also named: ",
    "identifier": "Identifiers also named: ",
    "value": "Values also named: ",
}
_NAMES_PER_ITEM = 24
_LONGEST_SENTENCE = 300
_SENTENCES_PER_ITEM = 5
"""The most sentences in one item."""


def sentence_notes(
    missing: Sequence[Critical], sentences: Sequence[AssistantSentence], room: NotesRoom
) -> Iterator[Note]:
    """Yield sentences that name missing references, those with the most names per character first.

    Each adds a new name. Sentences of one message are put into one item.
    """
    open_names = {reference.text for reference in missing}
    ranked = sorted(
        sentences, key=lambda one: (-room.focuses(one.text), -_density(one, open_names), one.number)
    )
    by_message: dict[int, list[AssistantSentence]] = {}
    for sentence in ranked:
        gained = sentence.names & open_names
        if not gained or sentence.process or len(sentence.text) > _LONGEST_SENTENCE:
            continue
        if len(gained) < 2 and len(sentence.text) > 120:
            continue
        open_names -= gained
        by_message.setdefault(sentence.number, []).append(sentence)
    order = {id(sentence): at for at, sentence in enumerate(sentences)}
    for number, chosen in by_message.items():
        for start in range(0, len(chosen), _SENTENCES_PER_ITEM):
            in_order = sorted(
                chosen[start : start + _SENTENCES_PER_ITEM], key=lambda sentence: order[id(sentence)]
            )
            text = room.cited(join_sentences(sentence.text for sentence in in_order), number)
            yield Note(section=Section.CONTEXT, text=text, worth=room.worth(text, 1.0), at=number)


def _density(sentence: AssistantSentence, open_names: set[str]) -> float:
    return len(sentence.names & open_names) / (len(sentence.text) + 40)


def name_notes(missing: Sequence[Critical]) -> Iterator[Note]:
    """Yield the missing references: names as lists by kind, the others one by one."""
    for reference in missing:
        if reference.kind == "error":
            yield Note(
                section=Section.CONTEXT, text=f"Seen on the way: {reference.text}", worth=1.1, at=AT_END
            )
    for reference in missing:
        if reference.kind in {"ask", "forbidden"}:
            section = Section.RESOLVED if reference.kind == "ask" else Section.CONSTRAINTS
            yield Note(section=section, text=f'"{reference.text}"', worth=1.1, at=AT_END)
    for kind, label in _LABELS.items():
        names = [_as_listed(reference.text) for reference in missing if reference.kind == kind]
        for start in range(0, len(names), _NAMES_PER_ITEM):
            text = label + ", ".join(names[start : start + _NAMES_PER_ITEM])
            yield Note(section=Section.CONTEXT, text=text, worth=0.5, at=AT_END)


def _as_listed(name: str) -> str:
    return f"`{name}`" if " " in name or "," in name else name
