"""Questions about earlier messages of a session, made by rule, each with the messages that hold its evidence.

From a recorded session: a later sentence of the user or the assistant names something (a path, an identifier, a number) that
stands in at most three earlier messages, one of them a tool result or the user's, none of them close by. Those messages are the
evidence. The question is worded in four ways: that sentence with its names spelled as words (`said`), with the name left out
that is asked for (`asked`), the name alone, as words, in a conversational frame (`named`), and what was said just before the
evidence came, without a third of its words (`beside`). Texts of recordings are never stored: the rule is.
"""

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256

from msgspec import Struct

from bench.transcripts import Session
from lowwater.core.messages import Message, Text, texts_of
from lowwater.core.references import NAME
from lowwater.lab.references.uses import Occurrences

CLOSE = 6
"""How many messages before the question evidence may not stand: those are in view anyway."""
MOST_EVIDENCE = 3
PER_KIND = 4
"""Questions of each wording that one session gives at most."""
WORDINGS = ("said", "asked", "named", "beside")
BEFORE_EVIDENCE = 2
"""How many messages before the evidence something may have been said that leads to it."""
FEWEST_WORDS, MOST_WORDS = 6, 45
_LEAST = {"said": 5, "asked": 5, "named": 2, "beside": 4}
"""Words that a question of each wording has at least, without its frame."""
_SENTENCE = re.compile(r"(?<=[.!?:])\s+|\n+")
_CASES = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W_]+")
_SAID = ("{}", "Do you remember: {}", "We said earlier that {}", "What was it again? {}")
_ASKED = (
    "What was it that {}?",
    "Which one was it: {}",
    "Earlier we had this: {} What was it exactly?",
    "{}",
)
_BESIDE = (
    "What came of it when {}?",
    "What did we learn from this: {}",
    "You told me something about {}",
    "what was the answer to {}",
)
_NAMED = (
    "What did we find out about {}?",
    "Where did we see {}?",
    "Can you look up again what was said about the {}?",
    "how did that thing with the {} go",
)


class Question(Struct, frozen=True, kw_only=True):
    """Something to look for before message `before` (numbers from 1), and the messages that hold it."""

    wording: str
    text: str
    before: int
    evidence: tuple[int, ...]


def spoken(name: str) -> str:
    """Return a name as somebody would say it: its words, split at case and separators."""
    return " ".join(_WORD.findall(_CASES.sub(" ", name))).lower()


def recorded_questions(session: Session) -> list[Question]:
    """Return the questions that a recorded session gives, the same ones every time."""
    messages = [each.message for each in session.messages]
    texts = ["\n".join(texts_of(message)) for message in messages]
    sentences = [
        (number, sentence, name)
        for number, each in enumerate(session.messages, start=1)
        if not each.kind
        for sentence in _sentences(each.message)
        for name in dict.fromkeys(NAME.findall(sentence))
    ]
    occurrences = Occurrences(texts, {name for *_, name in sentences})
    found: list[tuple[str, Question]] = []
    for number, sentence, name in sentences:
        evidence = _evidence(messages, occurrences, name, number)
        if evidence:
            led = _led_to(messages, evidence[0], name)
            found += _worded(f"{session.id} {number}", sentence, name, led, evidence)
    return list(_drawn(found))


def _sentences(message: Message) -> Iterator[str]:
    if message.role not in ("user", "assistant"):
        return
    for part in message.parts:
        if isinstance(part, Text):
            for sentence in _SENTENCE.split(part.text):
                if FEWEST_WORDS <= len(sentence.split()) <= MOST_WORDS:
                    yield sentence.strip()


def _evidence(
    messages: Sequence[Message], occurrences: Occurrences, name: str, number: int
) -> tuple[int, ...]:
    """Return the numbers of the earlier messages that have the name, if they are few, none is close, and the assistant did not make it up."""
    earlier = [index + 1 for index in occurrences.of(name) if index + 1 < number]
    is_good = (
        0 < len(earlier) <= MOST_EVIDENCE
        and earlier[-1] <= number - CLOSE
        and any(messages[at - 1].role != "assistant" for at in earlier)
    )
    return tuple(earlier) if is_good else ()


def _led_to(messages: Sequence[Message], evidence: int, name: str) -> str:
    """Return the last sentence said shortly before a message that does not have the name, empty if there is none."""
    for number in range(evidence - 1, max(0, evidence - 1 - BEFORE_EVIDENCE), -1):
        sentences = [sentence for sentence in _sentences(messages[number - 1]) if name not in sentence]
        if sentences:
            return sentences[-1]
    return ""


def _worded(
    place: str, sentence: str, name: str, led: str, evidence: tuple[int, ...]
) -> Iterator[tuple[str, Question]]:
    """Yield the wordings of a question, each with the digest it is drawn by; `place` is the session and the message that asks."""
    whole = NAME.sub(lambda found: spoken(found[0]), sentence)
    without = NAME.sub(lambda found: "" if found[0] == name else spoken(found[0]), sentence)
    for wording, text, frames in (
        ("said", whole, _SAID),
        ("asked", without, _ASKED),
        ("named", spoken(name), _NAMED),
        ("beside", _thinned(led), _BESIDE),
    ):
        digest = sha256(f"{place} {wording} {name}".encode()).hexdigest()
        if len(text.split()) >= _LEAST[wording]:
            asked = frames[int(digest[-4:], 16) % len(frames)].format(" ".join(text.split()))
            before = int(place.rpartition(" ")[2])
            yield digest, Question(wording=wording, text=asked, before=before, evidence=evidence)


def _thinned(sentence: str) -> str:
    """Return a sentence with names spelled as words, without every third word."""
    words = NAME.sub(lambda found: spoken(found[0]), sentence).split()
    return " ".join(word for place, word in enumerate(words) if place % 3 != 1)


def _drawn(found: Sequence[tuple[str, Question]]) -> Iterator[Question]:
    """Yield some questions of each wording, by digest, at most one about the same evidence."""
    for wording in WORDINGS:
        seen: set[tuple[int, ...]] = set()
        for _, question in sorted(found, key=lambda each: each[0]):
            if question.wording == wording and question.evidence not in seen and len(seen) < PER_KIND:
                seen.add(question.evidence)
                yield question
