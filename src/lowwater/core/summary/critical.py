"""Critical references, which a summary must not lose: finding them in messages, and checking a text for them."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from lowwater.core.secrets.redaction import conceal
from lowwater.core.summary.activity import ActivityStep, Story, error_prefix, errors_in, story_of
from lowwater.core.summary.request import Critical, SummaryRequest
from lowwater.core.summary.template import Section, parse
from lowwater.core.summary.text import (
    Named,
    NameFinder,
    clip,
    constraints_in,
    flat,
    is_prohibition,
    key_words,
    words,
)

_ASK_READ = 300
"""Characters of a user message that say what is asked; the rest is detail or pasted text."""
_ASK_NAMED = 1_500
"""Characters of a user message in which names count."""
_ARGUMENT_READ = 400
"""Characters of an argument that are searched for names; the rest is usually content."""
_CONTENT_ARGUMENTS = frozenset(
    "content contents new_string old_string newtext oldtext new_str old_str file_text text body prompt plan todos edits "
    "patch input insert_text code explanation description activeform status output_mode mode type format subagent_type "
    "model".split()
)
_ENOUGH = 0.6
"""The share of a reference's key words that a text must contain."""
_CONSTRAINT_CHARS = 200
"""The most characters of a constraint that are quoted; a prohibition is quoted whole."""
_TOKEN = re.compile(r"[\w@./+-]{0,200}\w")
_CLAUSE_END = re.compile(r"[,;:(—–]\s|\b(?:because|since|weil|denn|parce que|porque)\b", re.IGNORECASE)
_WORD = re.compile(r"\w+")
"""A text that contains a name contains every word of it: a quick test before searching."""


def critical_references(request: SummaryRequest) -> tuple[Critical, ...]:
    """Return what a summary for `request` should still say, the most important first.

    These are the user's asks and constraints, error lines, and the paths, identifiers and values that the assistant
    named; of a previous summary, its constraints and files. A reference that contains a secret is left out, except for a
    prohibition, which is quoted without the secret.
    """
    every = references_of(story_of(request), request.previous)
    together = "\n".join(reference.text for reference in every)
    if not request.redact or conceal(together) is together:
        return every
    return tuple(filter(None, map(_without_secrets, every)))


def _without_secrets(reference: Critical) -> Critical | None:
    concealed = conceal(reference.text)
    if concealed is reference.text:
        return reference
    return _constraint(concealed) if is_forbidden(reference) else None


def is_forbidden(reference: Critical) -> bool:
    """Return whether a reference is a prohibition, rather than something the user asked for or preferred."""
    return reference.kind == "forbidden" and is_prohibition(reference.text)


def forbidding_words(prohibition: str) -> tuple[str, ...]:
    """Return the key words of the clause that forbids something, without the reasons and requests around it."""
    clauses = (clause for clause in _CLAUSE_END.split(prohibition[:_ASK_READ]) if is_prohibition(clause))
    return next((words for clause in clauses if len(words := key_words(clause)) > 1), key_words(prohibition))


def _constraint(sentence: str) -> Critical:
    """Return a user's constraint as a reference; a prohibition is quoted whole, anything else is clipped."""
    text = flat(sentence) if is_prohibition(sentence) else clip(sentence, _CONSTRAINT_CHARS)
    return Critical(kind="forbidden", text=text, words=key_words(sentence[:_ASK_READ]))


def references_of(story: Story, previous: str = "") -> tuple[Critical, ...]:
    """Return the critical references of a story and of the summary before it."""
    naming = NameFinder()
    found: dict[tuple[str, str], Critical] = {}
    for reference in (
        *_from_user(story, naming),
        *_from_errors(story),
        *_from_previous(previous, naming),
        *_from_assistant(story, naming),
    ):
        found.setdefault((reference.kind, reference.text), reference)
    return tuple(found.values())


def _from_user(story: Story, naming: NameFinder) -> Iterator[Critical]:
    for episode in story.episodes:
        asked = episode.ask[:_ASK_READ]
        carried = key_words(asked)
        if len(carried) >= 3:
            yield Critical(kind="ask", text=clip(asked, 100) or carried[0], words=carried)
    for episode in story.episodes:
        for sentence in constraints_in(episode.ask):
            yield _constraint(sentence)
    for episode in story.episodes:
        for kind, text in naming.named_in(episode.ask[:_ASK_NAMED]):
            if kind != "value":
                yield Critical(kind=kind, text=text)


def _from_errors(story: Story) -> Iterator[Critical]:
    lines: dict[str, str] = {}
    for step in story.steps:
        lines |= errors_in(step)
    return (Critical(kind="error", text=error_prefix(line)) for line in lines.values())


def _from_previous(previous: str, naming: NameFinder) -> Iterator[Critical]:
    if not previous:
        return
    before = parse(previous)
    for section in (Section.CONSTRAINTS, Section.GOAL, Section.PENDING):
        for item in before.of(section):
            text = _unquoted(flat(item))
            if key_words(text) and (section is Section.CONSTRAINTS or is_prohibition(text)):
                yield _constraint(text)
    for item in before.of(Section.FILES):
        yield from (
            Critical(kind="path", text=text) for kind, text in naming.named_in(item) if kind == "path"
        )


def _unquoted(item: str) -> str:
    """Return the item without quotation marks if it is one quotation."""
    inner = item[1:-1]
    return inner if item[:1] == item[-1:] == '"' and '"' not in inner else item


def _from_assistant(story: Story, naming: NameFinder) -> Iterator[Critical]:
    """Yield what the assistant named, the most frequent first."""
    named: list[Named] = []
    for statement in story.statements:
        named += naming.named_in(statement.text)
    names_in: dict[str, list[Named]] = {}
    for step in story.steps:
        for text in _naming_arguments(step):
            if text not in names_in:
                names_in[text] = [pair for pair in naming.named_in(text) if pair[0] != "value"]
            named += names_in[text]
    for (kind, text), _ in sorted(Counter(named).items(), key=lambda pair: -pair[1]):
        yield Critical(kind=kind, text=text)


def _naming_arguments(step: ActivityStep) -> Iterator[str]:
    """Yield the arguments of a call that may name things, which excludes the content it writes."""
    for name, value in step.arguments.items():
        if isinstance(value, str) and name.lower() not in _CONTENT_ARGUMENTS:
            yield value[:_ARGUMENT_READ]


def missing_from(text: str, wanted: Iterable[Critical]) -> tuple[Critical, ...]:
    """Return the references that a text does not contain, in the order given."""
    kept = KeptReferences(text)
    return tuple(reference for reference in wanted if not kept.has(reference))


class KeptReferences:
    """A text that is searched for critical references."""

    def __init__(self, text: str) -> None:
        self._text = flat(text)
        self._words = words(text)
        self._forbidding = [words(line) for line in text.splitlines() if is_prohibition(line)]
        self._tokens = set(_TOKEN.findall(self._text))
        self._word_set = set(_WORD.findall(self._text))
        self._looked_for: dict[str, bool] = {}

    def has(self, reference: Critical) -> bool:
        """Return whether the text contains the reference."""
        match reference.kind:
            case "forbidden" if is_forbidden(reference):
                return self._forbids(reference)
            case "ask" | "forbidden":
                return _has_enough_words(reference, self._words)
            case "path":
                return self._has_path(reference.text)
            case "error":
                return self._says(flat(reference.text))
            case _:
                return self._names(reference.text)

    def _forbids(self, reference: Critical) -> bool:
        """Return whether a single line forbids the same; the words spread over a text may say the opposite."""
        if flat(reference.text) in self._text:
            return True
        if reference.words and any(_has_enough_words(reference, line) for line in self._forbidding):
            return True
        meant = forbidding_words(reference.text)
        return len(meant) > 1 and any(line.issuperset(meant) for line in self._forbidding)

    def _says(self, text: str) -> bool:
        """Return whether the text contains the sentence anywhere; its first and last word may be parts of longer ones."""
        return self._word_set.issuperset(_WORD.findall(text)[1:-1]) and text in self._text

    def _names(self, text: str) -> bool:
        """Return whether the text contains the name by itself, not as part of a longer one."""
        if text in self._tokens:
            return True
        known = self._looked_for.get(text)
        if known is None:
            known = self._looked_for[text] = self._stands_alone(text)
        return known

    def _stands_alone(self, text: str) -> bool:
        if not self._word_set.issuperset(_WORD.findall(text)):
            return False
        at = self._text.find(text)
        while at >= 0:
            before, after = self._text[at - 1 : at], self._text[at + len(text) : at + len(text) + 1]
            if not (_is_word_character(before) or _is_word_character(after)):
                return True
            at = self._text.find(text, at + 1)
        return False

    def _has_path(self, path: str) -> bool:
        """Return whether the text contains the path in one piece, or its directory and the rest separately."""
        if path in self._tokens:
            return True
        apart = [(path[:at], path[at + 1 :]) for at in range(1, len(path)) if path[at] == "/"]
        if any(directory in self._tokens and rest in self._tokens for directory, rest in apart):
            return True
        return self._names(path) or any(
            self._names(rest) and self._names(directory) for directory, rest in apart
        )


def _has_enough_words(reference: Critical, present: set[str]) -> bool:
    return sum(word in present for word in reference.words) >= _ENOUGH * len(reference.words)


def _is_word_character(character: str) -> bool:
    return character.isalnum() or character == "_"
