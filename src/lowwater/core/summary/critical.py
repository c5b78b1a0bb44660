"""The critical references of messages, and whether a text still has them."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from lowwater.core.secrets.redaction import conceal
from lowwater.core.summary.activity import Step, Story, compared, errors_in, story_of
from lowwater.core.summary.request import Critical, SummaryRequest
from lowwater.core.summary.template import Section, parse
from lowwater.core.summary.text import (
    Named,
    Naming,
    clip,
    constraints_in,
    flat,
    is_prohibition,
    key_words,
    words,
)

_ASK_READ = 300
"""Characters of a user message that say what is asked; what follows is detail or pasted."""
_ASK_NAMED = 1_500
"""Characters of a user message in which names count."""
_ARGUMENT_READ = 400
"""Characters of an argument that name things; what follows is usually content."""
_CONTENT = frozenset(
    "content contents new_string old_string newtext oldtext new_str old_str file_text text body prompt plan todos edits "
    "patch input insert_text code explanation description activeform status output_mode mode type format subagent_type "
    "model".split()
)
_ENOUGH = 0.6
"""Share of an ask's key words that must be there."""
_CONSTRAINT = 200
"""Characters of a constraint that are quoted; a prohibition is quoted whole."""


def critical_references(request: SummaryRequest) -> tuple[Critical, ...]:
    """Return what a summary for `request` should still say, the most important first.

    That is what the user asked and forbade, error lines, and the paths, ids and values the assistant itself named; of a
    previous summary, what it says of constraints and files. Whatever holds a secret need not be said, except for a
    prohibition, which is quoted without it.
    """
    every = references_of(story_of(request), request.previous)
    together = "\n".join(reference.text for reference in every)
    if not request.redact or conceal(together) is together:
        return every
    return tuple(filter(None, map(_without_secrets, every)))


def _without_secrets(reference: Critical) -> Critical | None:
    told = conceal(reference.text)
    if told is reference.text:
        return reference
    return _forbidden(told) if is_forbidden(reference) else None


def is_forbidden(reference: Critical) -> bool:
    """Tell whether a reference is something that the user forbade, rather than asked for or preferred."""
    return reference.kind == "forbidden" and is_prohibition(reference.text)


def _forbidden(sentence: str) -> Critical:
    """Return what a user said must, must not or should be done; of a long wish the beginning, of a prohibition all."""
    text = flat(sentence) if is_prohibition(sentence) else clip(sentence, _CONSTRAINT)
    return Critical(kind="forbidden", text=text, words=key_words(sentence[:_ASK_READ]))


def references_of(story: Story, previous: str = "") -> tuple[Critical, ...]:
    """Return the critical references of a story and of the summary before it."""
    naming = Naming()
    found: dict[tuple[str, str], Critical] = {}
    for reference in (
        *_of_the_user(story, naming),
        *_of_errors(story),
        *_of_previous(previous, naming),
        *_named(story, naming),
    ):
        found.setdefault((reference.kind, reference.text), reference)
    return tuple(found.values())


def _of_the_user(story: Story, naming: Naming) -> Iterator[Critical]:
    for episode in story.episodes:
        asked = episode.ask[:_ASK_READ]
        carried = key_words(asked)
        if len(carried) >= 3:
            yield Critical(kind="ask", text=clip(asked, 100) or carried[0], words=carried)
    for episode in story.episodes:
        for sentence in constraints_in(episode.ask):
            yield _forbidden(sentence)
    for episode in story.episodes:
        for kind, text in naming.named_in(episode.ask[:_ASK_NAMED]):
            if kind != "value":
                yield Critical(kind=kind, text=text)


def _of_errors(story: Story) -> Iterator[Critical]:
    lines: dict[str, str] = {}
    for step in story.steps:
        lines |= errors_in(step)
    return (Critical(kind="error", text=compared(line)) for line in lines.values())


def _of_previous(previous: str, naming: Naming) -> Iterator[Critical]:
    if not previous:
        return
    before = parse(previous)
    for section in (Section.CONSTRAINTS, Section.GOAL, Section.PENDING):
        for item in before.of(section):
            said = _unquoted(flat(item))
            if key_words(said) and (section is Section.CONSTRAINTS or is_prohibition(said)):
                yield _forbidden(said)
    for item in before.of(Section.FILES):
        yield from (
            Critical(kind="path", text=text) for kind, text in naming.named_in(item) if kind == "path"
        )


def _unquoted(item: str) -> str:
    """Return an item that is one quotation without its marks."""
    inner = item[1:-1]
    return inner if item[:1] == item[-1:] == '"' and '"' not in inner else item


def _named(story: Story, naming: Naming) -> Iterator[Critical]:
    """Yield what the assistant named, most often named first."""
    named: list[Named] = []
    for statement in story.statements:
        named += naming.named_in(statement.text)
    told: dict[str, list[Named]] = {}
    for step in story.steps:
        for text in _told_by(step):
            if text not in told:
                told[text] = [pair for pair in naming.named_in(text) if pair[0] != "value"]
            named += told[text]
    for (kind, text), _ in sorted(Counter(named).items(), key=lambda pair: -pair[1]):
        yield Critical(kind=kind, text=text)


def _told_by(step: Step) -> Iterator[str]:
    """Yield the arguments of a call that name things; the content it writes is no name."""
    for name, value in step.arguments.items():
        if isinstance(value, str) and name.lower() not in _CONTENT:
            yield value[:_ARGUMENT_READ]


class KeptReferences:
    """A text in which critical references are looked for."""

    def __init__(self, text: str) -> None:
        self._text = flat(text)
        self._words = words(text)
        self._forbidding = [words(line) for line in text.splitlines() if is_prohibition(line)]
        self._pieces = set(_PIECE.findall(self._text))
        self._runs = set(_RUN.findall(self._text))
        self._looked_for: dict[str, bool] = {}

    def has(self, reference: Critical) -> bool:
        """Tell whether the text still says what the reference stands for."""
        match reference.kind:
            case "forbidden" if is_forbidden(reference):
                return self._forbids(reference)
            case "ask" | "forbidden":
                return _is_told(reference, self._words)
            case "path":
                return self._has_path(reference.text)
            case "error":
                return self._says(flat(reference.text))
            case _:
                return self._names(reference.text)

    def _forbids(self, reference: Critical) -> bool:
        """A prohibition counts where one line forbids the same; its words spread over a text may say the opposite."""
        if flat(reference.text) in self._text:
            return True
        return bool(reference.words) and any(_is_told(reference, line) for line in self._forbidding)

    def _says(self, text: str) -> bool:
        """A sentence counts wherever it stands; its first and last word may be parts of longer ones."""
        return self._runs.issuperset(_RUN.findall(text)[1:-1]) and text in self._text

    def _names(self, text: str) -> bool:
        """A name counts where it stands by itself, not as part of a longer one."""
        if text in self._pieces:
            return True
        known = self._looked_for.get(text)
        if known is None:
            known = self._looked_for[text] = self._stands_alone(text)
        return known

    def _stands_alone(self, text: str) -> bool:
        if not self._runs.issuperset(_RUN.findall(text)):
            return False
        at = self._text.find(text)
        while at >= 0:
            before, after = self._text[at - 1 : at], self._text[at + len(text) : at + len(text) + 1]
            if not (_is_wordy(before) or _is_wordy(after)):
                return True
            at = self._text.find(text, at + 1)
        return False

    def _has_path(self, path: str) -> bool:
        """A path counts in one piece, or as a directory and the rest that stand apart."""
        if path in self._pieces:
            return True
        apart = [(path[:at], path[at + 1 :]) for at in range(1, len(path)) if path[at] == "/"]
        if any(directory in self._pieces and rest in self._pieces for directory, rest in apart):
            return True
        return self._names(path) or any(
            self._names(rest) and self._names(directory) for directory, rest in apart
        )


_PIECE = re.compile(r"[\w@./+-]{0,200}\w")
_RUN = re.compile(r"\w+")
"""Where a name stands by itself, so do the words it is made of."""


def _is_told(reference: Critical, there: set[str]) -> bool:
    return sum(word in there for word in reference.words) >= _ENOUGH * len(reference.words)


def _is_wordy(character: str) -> bool:
    return character.isalnum() or character == "_"


def missing_from(text: str, wanted: Iterable[Critical]) -> tuple[Critical, ...]:
    """Return the references a text no longer has, in the order given."""
    kept = KeptReferences(text)
    return tuple(reference for reference in wanted if not kept.has(reference))
