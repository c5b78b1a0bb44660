"""Grounding: whether what a summary names was ever said, read or run in what it summarises.

A summary may put things in its own words, but it cannot know a path, an identifier, a number or a quotation that occurs
nowhere in its sources: the messages, an earlier summary, the rest of the view and the system prompt.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Literal

from msgspec import Struct

from lowwater.core.messages import Message, Text, ToolCall, texts_of
from lowwater.core.references import NAME, quotes, reference_kind
from lowwater.core.summary.activity import own_words
from lowwater.core.summary.request import SummaryRequest
from lowwater.core.summary.text import flat, key_words

_HANDLES = re.compile(r"\blw:\s?\d+(?:[-–—,]\s?(?:lw:)?\d+)*", re.IGNORECASE)
_ESCAPES = (("\\n", "\n"), ("\\t", " "), ('\\"', '"'), ("\\\\", "\\"))
_ALTERNATIVE = re.compile(r"[A-Za-z]+(?:/[A-Za-z]+)+")
"""Words with a slash between them: prose, not a path."""
_COMPOUND = re.compile(r"[a-z]+(?:-[a-z]+)+")
"""Words with hyphens between them: prose, not a name."""
_REDACTED = re.compile(r"\[redacted: [^\]]*\]", re.IGNORECASE)
_ELLIPSIS = re.compile(rf"\s*(?:…|\.{{3}}|{_REDACTED.pattern})\s*", re.IGNORECASE)
_DIGITS = re.compile(r"\d+(?:[.,:-]\d+)*")
_SHORTEST_PIECE = 4
LONG_LINE = 40
"""Characters of a line from which on it is hardly written twice by chance."""

ClaimKind = Literal["path", "identifier", "number", "quote"]


class Claim(Struct, frozen=True, kw_only=True):
    """Something that a summary names exactly, so that it can be looked up."""

    kind: ClaimKind
    text: str


class Grounding(Struct, frozen=True, kw_only=True):
    """What a summary names, and what of it occurs in none of its sources."""

    named: int
    invented: tuple[Claim, ...] = ()

    @property
    def share(self) -> float:
        """The share that is grounded; a single slip in a text that names little does not make it 0."""
        return (self.named - len(self.invented) + 1) / (self.named + 1)

    @property
    def invented_paths(self) -> int:
        """How many of the paths occur nowhere."""
        return sum(claim.kind == "path" for claim in self.invented)


class Sources:
    """Everything that a summary may draw on; worked out when it is first asked for."""

    def __init__(self, request: SummaryRequest, background: Iterable[str] = ()) -> None:
        self._request = request
        self._background = tuple(background)

    @cached_property
    def user_texts(self) -> tuple[str, ...]:
        """What the user said, message by message."""
        newest = self._request.newest_user
        messages = [*self._request.messages, *([newest] if newest is not None else [])]
        return tuple(words for message in messages if message.role == "user" if (words := own_words(message)))

    @cached_property
    def trusted_words(self) -> tuple[frozenset[str], ...]:
        """The key words of each text that is not the output of a tool: what somebody may have laid down."""
        told = [*self.user_texts, self._request.previous, self._request.focus, *self._background]
        told += self._answers
        return tuple(frozenset(key_words(text)) for text in told if text)

    @cached_property
    def prose(self) -> str:
        """What user and assistant wrote, and the summary before: the text by which the language is told."""
        told = [*self.user_texts, self._request.previous]
        return "\n".join([*told, *self._answers])

    @cached_property
    def lines(self) -> frozenset[str]:
        """The longer lines of the messages, for finding copies."""
        return frozenset(
            stripped
            for message in self._request.messages
            for text in texts_of(message)
            for line in text.splitlines()
            if len(stripped := line.strip()) >= LONG_LINE
        )

    def grounding(self, summary: str) -> Grounding:
        """Return what a summary names, and what of it occurs nowhere."""
        claims = tuple(dict.fromkeys(claims_in(summary)))
        invented = tuple(claim for claim in claims if not self._has(claim))
        return Grounding(named=len(claims), invented=invented)

    def said_by_user(self, sentence: str, share: float) -> bool:
        """Return whether one message of the user has this share of a sentence's key words."""
        return _is_within(sentence, self._user_words, share)

    def laid_down(self, sentence: str, share: float) -> bool:
        """Return whether a text that is no tool's output has this share of a sentence's key words."""
        return _is_within(sentence, self.trusted_words, share)

    def says(self, text: str) -> bool:
        """Return whether a text occurs word for word."""
        return flat(text).casefold() in self._flat

    @cached_property
    def _answers(self) -> tuple[str, ...]:
        return tuple(
            part.text
            for message in self._request.messages
            if message.role == "assistant"
            for part in message.parts
            if isinstance(part, Text)
        )

    @cached_property
    def _user_words(self) -> tuple[frozenset[str], ...]:
        return tuple(frozenset(key_words(text)) for text in self.user_texts)

    def _texts(self) -> Iterator[str]:
        request = self._request
        for message in (*request.messages, *([request.newest_user] if request.newest_user else [])):
            yield from _texts_in(message)
        yield from (request.previous, request.focus, *self._background)

    @cached_property
    def _flat(self) -> str:
        return flat("\n".join(self._texts())).casefold()

    @cached_property
    def _numbers(self) -> frozenset[str]:
        return frozenset(_plain_number(number) for number in _DIGITS.findall(self._flat))

    def _has(self, claim: Claim) -> bool:
        text = flat(claim.text).casefold()
        match claim.kind:
            case "number":
                return _plain_number(text.lstrip("v")) in self._numbers or text in self._flat
            case "path":
                return text in self._flat or self._has_path(text)
            case "identifier":
                pieces = [piece for piece in text.split(".") if piece]
                return text in self._flat or all(piece in self._flat for piece in pieces)
            case "quote":
                pieces = [piece.strip(" .,:;!?") for piece in _ELLIPSIS.split(text)]
                return all(piece in self._flat for piece in pieces)

    def _has_path(self, path: str) -> bool:
        """Return whether the last two parts of a path occur, apart or together: directories are named once and files often."""
        *directories, name = path.strip("/").split("/")
        parts = [name, *directories[-1:]]
        return len(name) >= _SHORTEST_PIECE and all(part in self._flat for part in parts)


def claims_in(summary: str) -> Iterator[Claim]:
    """Yield the paths, identifiers, numbers and quotations in a summary, with repetitions; handles are none of them."""
    text = _HANDLES.sub(" ", summary)
    for name in NAME.findall(_REDACTED.sub(" ", text)):
        kind = reference_kind(name)
        is_prose = _COMPOUND.fullmatch(name) if kind == "identifier" else _ALTERNATIVE.fullmatch(name)
        if not is_prose and len(name) >= 3 and kind in {"path", "identifier", "number"}:
            yield Claim(kind=kind, text=name)
    yield from (Claim(kind="quote", text=quote) for quote in quotes(text) if " " in quote)


def _texts_in(message: Message) -> Iterator[str]:
    yield from texts_of(message)
    for part in message.parts:
        if isinstance(part, ToolCall) and "\\" in part.arguments:
            text = part.arguments
            for escaped, character in _ESCAPES:
                text = text.replace(escaped, character)
            yield text


def _plain_number(number: str) -> str:
    return number.replace(",", "")


def _is_within(sentence: str, texts: Iterable[frozenset[str]], share: float) -> bool:
    words = key_words(sentence)
    return not words or any(sum(word in text for word in words) >= share * len(words) for text in texts)
