"""Where the words that somebody looks for stand in a text."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice

from msgspec import Struct

from lowwater.values.groups import Span

_WORD = re.compile(r"[\w./-]*\w")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002fa1f]{3,}")
_WIDTH = 240
"""Characters of an excerpt."""
_REACH = 400
"""Characters of a passage before and after a match, more where a line ends soon."""
_LONGEST = 4_000
"""Characters to which neighbouring passages are joined, and of what is looked for."""
_MOST = 5_000
"""Matches of single words that are compared in one text."""
_WORTH = 0.6
"""A place is as good as the best if the words around it are worth this share of the words there."""


class _Match(Struct, frozen=True, kw_only=True):
    start: int
    stop: int
    word: str


def words_in(wanted: str) -> list[str]:
    """Return the words to look for, each once, in small letters."""
    return list(dict.fromkeys(word.lower() for word in _WORD.findall(wanted[:_LONGEST])))


def excerpt(text: str, wanted: str = "") -> str:
    """Return one line of a text: around the place that has most of the words, or else its first."""
    matches = _matches(text, wanted)
    if not matches:
        return first_line(text)
    worth = _worth(matches, _WIDTH)
    best = matches[max(range(len(matches)), key=lambda at: (worth[at], -at))]
    start = _word_start(text, max(0, best.start - _WIDTH // 4), best.start)
    return _one_line(text, start, start + _WIDTH)


def first_line(text: str, width: int = 120) -> str:
    """Return the first line that says something; a heading only says what the next line is about."""
    lines = [line.strip() for line in text.lstrip()[:_LONGEST].split("\n")]
    said = [line for line in lines if len(line) > 2 and not line.startswith("#")]
    return _one_line((said or lines)[0], 0, width)


def passages(text: str, wanted: str) -> Iterator[Span]:
    """Yield the stretches of a text that have the words: the phrase itself, or else most of its words."""
    phrase = _phrase(text, wanted)
    first = next(phrase, None)
    matches = iter(_best(text, wanted)) if first is None else chain((first,), phrase)
    last: Span | None = None
    for match in matches:
        span = _passage(text, match)
        if last is None:
            last = span
        elif span.start <= last.stop and span.stop - last.start <= _LONGEST:
            last = Span(start=last.start, stop=max(last.stop, span.stop))
        elif span.stop > last.stop:
            yield last
            last = Span(start=max(span.start, last.stop), stop=span.stop)
    if last is not None:
        yield last


def _phrase(text: str, wanted: str) -> Iterator[_Match]:
    words = wanted[:_LONGEST].split()
    pattern = re.compile(r"\s+".join(re.escape(word) for word in words), re.IGNORECASE)
    return _found(text, pattern) if words else iter(())


def _best(text: str, wanted: str) -> list[_Match]:
    """Return the matches with most of the words within reach."""
    matches = _matches(text, wanted)
    worth = _worth(matches, _REACH)
    least = _WORTH * max(worth, default=0)
    return [match for match, weight in zip(matches, worth, strict=True) if weight >= least]


def _matches(text: str, wanted: str) -> list[_Match]:
    """Return where the words stand; of a long word without spaces inside, its pairs of characters will do."""
    words = words_in(wanted)
    matches = list(islice(_found(text, _any_of(words)), _MOST)) if words else []
    if matches:
        return matches
    pairs = [run[at : at + 2] for run in _UNSPACED.findall(wanted[:_LONGEST]) for at in range(len(run) - 1)]
    return list(islice(_found(text, _any_of(pairs)), _MOST)) if pairs else []


def _any_of(words: Sequence[str]) -> re.Pattern[str]:
    longest_first = sorted(words, key=len, reverse=True)
    return re.compile("|".join(re.escape(word) for word in longest_first), re.IGNORECASE)


def _found(text: str, pattern: re.Pattern[str]) -> Iterator[_Match]:
    for found in pattern.finditer(text):
        yield _Match(start=found.start(), stop=found.end(), word=found[0].lower())


def _worth(matches: Sequence[_Match], reach: int) -> list[int]:
    """Return for each match what the words from it on, within reach, are worth: each once, the long ones most."""
    worth: list[int] = []
    stop = 0
    inside: dict[str, int] = {}
    for match in matches:
        while stop < len(matches) and matches[stop].stop <= match.start + max(reach, len(match.word)):
            inside[matches[stop].word] = inside.get(matches[stop].word, 0) + 1
            stop += 1
        worth.append(sum(len(word) for word in inside))
        inside[match.word] -= 1
        if not inside[match.word]:
            del inside[match.word]
    return worth


def _passage(text: str, match: _Match) -> Span:
    """Return what stands around a match, from the start of a line to the end of one where they are not far."""
    start, stop = max(0, match.start - _REACH), min(len(text), match.stop + _REACH)
    begins = text.rfind("\n", max(0, start - _REACH), start)
    ends = text.find("\n", stop, stop + _REACH)
    if begins >= 0:
        start = begins + 1
    elif start <= _REACH:
        start = 0
    return Span(start=start, stop=stop if ends < 0 else ends)


def _word_start(text: str, start: int, before: int) -> int:
    """Return where the first whole word at or after `start` begins, if that is not behind `before`."""
    blank = next((at for at in range(start, before) if text[at].isspace()), None) if start else None
    return start if blank is None else blank + 1


def _one_line(text: str, start: int, stop: int) -> str:
    """Return a stretch of a text on one line, with dots where something is left out."""
    flat = " ".join(text[start:stop].split())
    return f"{'…' if start > 0 else ''}{flat}{'…' if stop < len(text) else ''}"
