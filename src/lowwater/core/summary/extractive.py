"""The summarizer without a model: it fills the template with what the transcript contains."""

from collections.abc import Iterator, Sequence

from lowwater.core.summary.activity import AssistantSentence, Story, sentences_of, story_of
from lowwater.core.summary.critical import missing_from, references_of
from lowwater.core.summary.notes import (
    Budget,
    Note,
    NotesRoom,
    by_worth,
    carried_notes,
    notes_room,
    to_outline,
    without_handle,
)
from lowwater.core.summary.request import Critical, SummaryRequest
from lowwater.core.summary.sanitize import concealed
from lowwater.core.summary.talk_sections import (
    LAST_SAID,
    WORKING,
    Todo,
    constraint_notes,
    decision_notes,
    goal_notes,
    name_notes,
    next_notes,
    plan_notes,
    progress_notes,
    sentence_notes,
    todo_of,
)
from lowwater.core.summary.template import Section, SummaryOutline, parse, render
from lowwater.core.summary.work_sections import (
    call_notes,
    command_notes,
    error_notes,
    file_notes,
    files_of,
    is_known_item,
    roots_of,
    tool_note,
    written_notes,
)
from lowwater.protocols import Tokenizer

_NOTES_SHARE = 0.72
"""The share of the budget for the sections' notes; the rest goes to critical references that they do not name."""

_LEAST_WORTH = 0.65
"""Notes worth less than this are not used to fill the rest of the budget."""


def extract(request: SummaryRequest, tokenizer: Tokenizer) -> str:
    """Return a summary of at most `max_tokens`; the same request gives the same text.

    Without new messages it returns the previous summary, shortened only if it does not fit.
    """
    request = concealed(request)
    previous = parse(request.previous)
    if not request.messages:
        return _rewrite_previous(previous, request, tokenizer)
    story = story_of(request)
    room = notes_room(request)
    sentences = tuple(sentence for statement in story.statements for sentence in sentences_of(statement))
    budget = Budget(request.max_tokens, tokenizer)
    notes = tuple(_all_notes(request, story, previous, sentences, room))
    budget.share(notes, _NOTES_SHARE)
    wanted = references_of(story, request.previous)
    missing = missing_from(budget.text(), wanted)
    budget.add(sentence_notes(missing, sentences, room))
    budget.add(_notes_with_errors(notes, missing))
    budget.add(name_notes(missing_from(budget.text(), wanted)))
    budget.add(note for note in by_worth(notes) if note.worth >= _LEAST_WORTH)
    budget.add(written_notes(story, budget.text(), room))
    return budget.text()


def _all_notes(
    request: SummaryRequest,
    story: Story,
    previous: SummaryOutline,
    sentences: Sequence[AssistantSentence],
    room: NotesRoom,
) -> Iterator[Note]:
    todo = todo_of(story, previous)
    yield from goal_notes(story, previous, room)
    yield from constraint_notes(story, previous, room)
    yield from _carried_over(previous, story, todo)
    yield from progress_notes(story, previous, request.newest_user, room)
    yield from _todo_notes(todo)
    yield from error_notes(story, previous, room)
    yield from plan_notes(story, room)
    yield from decision_notes(sentences, previous, room)
    yield from call_notes(story, room)
    yield from file_notes(files_of(story, previous), room)
    if not todo.known:
        yield from next_notes(story, previous, room)
    yield from command_notes(story, previous, room)
    yield from tool_note(story, previous)


def _rewrite_previous(previous: SummaryOutline, request: SummaryRequest, tokenizer: Tokenizer) -> str:
    """Return the previous summary, or several of them merged into one, in at most `max_tokens`."""
    notes: list[Note] = []
    for section in Section:
        if section == Section.FILES and roots_of(previous) > 1:
            notes += file_notes(files_of(Story(episodes=()), previous), notes_room(request))
            notes += _unparsed_file_notes(previous)
        else:
            notes += carried_notes(previous, section, 1.0)
    unique = {(note.section, without_handle(note.text)): note for note in reversed(notes)}
    whole = render(to_outline(list(reversed(unique.values()))))
    if tokenizer.count(whole) <= request.max_tokens:
        return whole
    budget = Budget(request.max_tokens, tokenizer)
    budget.share(unique.values(), 1.0)
    return budget.text()


def _carried_over(previous: SummaryOutline, story: Story, todo: Todo) -> Iterator[Note]:
    """Yield the items of a previous summary that no other function updates."""
    for section, worth in ((Section.DONE, 1.2), (Section.RESOLVED, 0.9), (Section.CONTEXT, 0.7)):
        yield from carried_notes(previous, section, worth)
    yield from _unparsed_file_notes(previous)
    if not todo.known:
        for note in carried_notes(previous, Section.IN_PROGRESS, 2):
            if not note.text.startswith((WORKING, LAST_SAID)):
                yield note
    if not story.statements and not story.steps:
        yield from carried_notes(previous, Section.PENDING, 8)


def _unparsed_file_notes(previous: SummaryOutline) -> Iterator[Note]:
    return (note for note in carried_notes(previous, Section.FILES, 2) if not is_known_item(note.text))


def _notes_with_errors(notes: Sequence[Note], missing: Sequence[Critical]) -> Iterator[Note]:
    """Return the notes that contain missing error lines, with their command and outcome."""
    lines = [reference.text for reference in missing if reference.kind == "error"]
    return (note for note in by_worth(notes) if any(line in note.text for line in lines))


def _todo_notes(todo: Todo) -> Iterator[Note]:
    lists = (
        (Section.DONE, todo.done, 2.6),
        (Section.IN_PROGRESS, todo.doing, 8.5),
        (Section.REMAINING, todo.open, 4.0),
    )
    for section, tasks, worth in lists:
        for at, task in enumerate(tasks):
            yield Note(section=section, text=task, worth=worth - at / 1_000)
