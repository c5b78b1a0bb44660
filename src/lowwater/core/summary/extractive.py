"""The summarizer that needs no model: it fills the template with what the transcript really contains."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from lowwater.core.summary.activity import AssistantSentence, Story, story_of, told
from lowwater.core.summary.critical import missing_from, references_of
from lowwater.core.summary.notes import Budget, Note, Room, arranged, carried, ranked, room_for, uncited
from lowwater.core.summary.request import Critical, SummaryRequest, Written
from lowwater.core.summary.safety import concealed
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
from lowwater.core.summary.template import Outline, Section, parse, render
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

NAME = "extractive"
_FACTS = 0.72
"""Share of the budget for what the sections want; the rest goes to references they have not named."""

_WORTH_ADDING = 0.65
"""Notes worth less are not used to fill up what is left."""


class Extractive(Struct, frozen=True):
    """The extractive summarizer as a Summarizer."""

    tokenizer: Tokenizer

    def summarize(self, request: SummaryRequest, /) -> Written:
        """Return the extract; it never fails and never calls a model."""
        return Written(text=extract(request, self.tokenizer), by=NAME)


def extract(request: SummaryRequest, tokenizer: Tokenizer) -> str:
    """Return a summary of at most `max_tokens`; the same request gives the same text.

    An update with no new messages returns the previous summary, shortened only if it does not fit.
    """
    request = concealed(request)
    previous = parse(request.previous)
    if not request.messages:
        return _again(previous, request, tokenizer)
    story = story_of(request)
    room = room_for(request)
    sentences = tuple(sentence for statement in story.statements for sentence in told(statement))
    budget = Budget(request.max_tokens, tokenizer)
    notes = tuple(_notes(request, story, previous, sentences, room))
    budget.share(notes, _FACTS)
    wanted = references_of(story, request.previous)
    missing = missing_from(budget.text(), wanted)
    budget.add(sentence_notes(missing, sentences, room))
    budget.add(_with_errors(notes, missing))
    budget.add(name_notes(missing_from(budget.text(), wanted)))
    budget.add(note for note in ranked(notes) if note.worth >= _WORTH_ADDING)
    budget.add(written_notes(story, budget.text(), room))
    return budget.text()


def _notes(
    request: SummaryRequest,
    story: Story,
    previous: Outline,
    sentences: Sequence[AssistantSentence],
    room: Room,
) -> Iterator[Note]:
    todo = todo_of(story, previous)
    yield from goal_notes(story, previous, room)
    yield from constraint_notes(story, previous, room)
    yield from _carried(previous, story, todo)
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


def _again(previous: Outline, request: SummaryRequest, tokenizer: Tokenizer) -> str:
    """Return a summary for which nothing new came, or several joined into one, in at most `max_tokens`."""
    notes: list[Note] = []
    for section in Section:
        if section == Section.FILES and roots_of(previous) > 1:
            notes += file_notes(files_of(Story(episodes=()), previous), room_for(request))
            notes += _unknown_files(previous)
        else:
            notes += carried(previous, section, 1.0)
    once = {(note.section, uncited(note.text)): note for note in reversed(notes)}
    whole = render(arranged(list(reversed(once.values()))))
    if tokenizer.count(whole) <= request.max_tokens:
        return whole
    budget = Budget(request.max_tokens, tokenizer)
    budget.share(once.values(), 1.0)
    return budget.text()


def _carried(previous: Outline, story: Story, todo: Todo) -> Iterator[Note]:
    """Yield what a previous summary said and no other step looks after."""
    for section, worth in ((Section.DONE, 1.2), (Section.RESOLVED, 0.9), (Section.CONTEXT, 0.7)):
        yield from carried(previous, section, worth)
    yield from _unknown_files(previous)
    if not todo.known:
        for note in carried(previous, Section.IN_PROGRESS, 2):
            if not note.text.startswith((WORKING, LAST_SAID)):
                yield note
    if not story.statements and not story.steps:
        yield from carried(previous, Section.PENDING, 8)


def _unknown_files(previous: Outline) -> Iterator[Note]:
    return (note for note in carried(previous, Section.FILES, 2) if not is_known_item(note.text))


def _with_errors(notes: Sequence[Note], missing: Sequence[Critical]) -> Iterator[Note]:
    """Yield the notes that tell missing errors together with their command and what became of them."""
    lines = [reference.text for reference in missing if reference.kind == "error"]
    return (note for note in ranked(notes) if any(line in note.text for line in lines))


def _todo_notes(todo: Todo) -> Iterator[Note]:
    lists = (
        (Section.DONE, todo.done, 2.6),
        (Section.IN_PROGRESS, todo.doing, 8.5),
        (Section.REMAINING, todo.open, 4.0),
    )
    for section, tasks, worth in lists:
        for at, task in enumerate(tasks):
            yield Note(section=section, text=task, worth=worth - at / 1_000)
