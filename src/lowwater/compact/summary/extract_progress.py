"""Goal, progress, answered questions and open asks, from who said what after whom."""

from collections.abc import Iterator, Sequence

from lowwater.compact.summary.asking import asks_back, constraints_in, is_brief, is_question
from lowwater.compact.summary.hygiene import own_words
from lowwater.compact.summary.notes import Note, Room, carried, uncited
from lowwater.compact.summary.phrases import clip, one_line
from lowwater.compact.summary.story import Episode, Story
from lowwater.compact.summary.telling import Told, condense, told
from lowwater.compact.summary.template import Outline, Section
from lowwater.values.message import Message

FIRST = "First asked: "
LATEST = "Asked last: "
WORKING = "Working on: "
LAST_SAID = "Last said: "
AWAITS = "Waiting for the user's answer to: "
_LONGEST_GOAL = 900
_LONGEST_OUTCOME = 700


def quoted(text: str, limit: int) -> str:
    """Return what a user said in quotes, on one line."""
    return f'"{clip(one_line(text), limit)}"'


def goal_notes(story: Story, previous: Outline, room: Room) -> Iterator[Note]:
    """Yield what was asked first and what was asked last."""
    asks = [episode for episode in story.episodes if episode.ask and not is_brief(episode.ask)]
    before = [item for item in previous.of(Section.GOAL) if not item.startswith(LATEST)]
    for item in before:
        yield Note(section=Section.GOAL, text=item, worth=9)
    first = asks[:1] if not before else []
    latest = asks[-1:] if asks[-1:] != first else []
    for label, episodes, worth in ((FIRST, first, 9.0), (LATEST, latest, 8.0)):
        for episode in episodes:
            limit = room.limit(episode.ask, share=0.05, among=1, most=_LONGEST_GOAL)
            yield Note(
                section=Section.GOAL,
                text=room.cited(label + quoted(episode.ask, limit), episode.number),
                worth=worth,
            )


def constraint_notes(story: Story, previous: Outline, room: Room) -> Iterator[Note]:
    """Yield what the user said must, must not or should preferably be done; it accumulates."""
    yield from carried(previous, Section.CONSTRAINTS, 6)
    found = [(sentence, ep) for ep in story.episodes for sentence in constraints_in(ep.ask)]
    for at, (sentence, episode) in enumerate(found):
        text = room.cited(quoted(sentence, 320), episode.number)
        yield Note(section=Section.CONSTRAINTS, text=text, worth=room.worth(sentence, 5 + at / len(found)))


def progress_notes(
    story: Story, previous: Outline, newest_user: Message | None, room: Room
) -> Iterator[Note]:
    """Yield done, in progress, resolved and pending items; what was running before is carried on or closed."""
    episodes = _continued(story.episodes, previous)
    asked = sum(bool(episode.ask) for episode in episodes)
    question = ""
    for at, episode in enumerate(episodes):
        last = at == len(episodes) - 1
        spoken = [told(statement) for statement in episode.statements]
        if last and not episode.reply:
            yield from _unfinished(episode, newest_user, spoken, room)
        elif episode.ask or (last and spoken):
            worth = 2 + at / len(episodes)
            yield from _finished(episode, question, spoken, room, worth=worth, among=asked)
        question = asks_back(episode.reply.text) if episode.reply else ""
    if question and (newest_user is None or own_words(newest_user) == episodes[-1].ask):
        yield Note(section=Section.PENDING, text=AWAITS + quoted(question, 300), worth=8)


def _continued(episodes: Sequence[Episode], previous: Outline) -> tuple[Episode, ...]:
    """Give what came before the first ask the ask that the previous summary says was running or pending."""
    lead, *others = episodes
    running = next((item for item in previous.of(Section.IN_PROGRESS) if item.startswith(WORKING)), "")
    pending = [item for item in previous.of(Section.PENDING) if item.startswith('"')]
    ask = uncited(running.removeprefix(WORKING)).strip('"') or " ".join(
        uncited(item).strip('"') for item in pending
    )
    if not (lead.statements or lead.steps):
        return tuple(others) if others else (lead,)
    return (Episode(number=lead.number, ask=ask, statements=lead.statements, steps=lead.steps), *others)


def _unfinished(
    episode: Episode, newest_user: Message | None, spoken: Sequence[Sequence[Told]], room: Room
) -> Iterator[Note]:
    ask = episode.ask or (own_words(newest_user) if newest_user else "")
    if not (episode.steps or episode.statements):
        if ask:
            limit = room.limit(ask, share=0.05, among=1, most=_LONGEST_GOAL)
            yield Note(section=Section.PENDING, text=room.cited(quoted(ask, limit), episode.number), worth=9)
        return
    if ask:
        text = room.cited(WORKING + quoted(ask, 200), episode.number)
        yield Note(section=Section.IN_PROGRESS, text=text, worth=9)
    latest = next(
        (condense(sentences, 400) for sentences in reversed(spoken) if condense(sentences, 400)), ""
    )
    if latest:
        yield Note(section=Section.IN_PROGRESS, text=LAST_SAID + latest, worth=8)


def _finished(
    episode: Episode, question: str, spoken: Sequence[Sequence[Told]], room: Room, *, worth: float, among: int
) -> Iterator[Note]:
    """Yield one item for an ask and what came of it."""
    limit = room.limit(episode.ask, share=0.35, among=among, most=_LONGEST_OUTCOME)
    outcome = next((text for text in (condense(s, limit) for s in reversed(spoken)) if text), "")
    number = episode.number or (episode.statements[0].number if episode.statements else 0)
    until = episode.statements[-1].number if episode.statements else 0
    ask = quoted(episode.ask, max(160, limit // 2)) if episode.ask else ""
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
