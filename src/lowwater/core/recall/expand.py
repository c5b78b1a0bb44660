"""Expanding a handle: the original messages it names, passages in them, and what a summary was made of.

Everything that is shown has to fit a number of tokens; what is left out is named, with the way to ask for it.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct

from lowwater.core.entries import Compacted, Numbers, Rewound, SummarizedSpan
from lowwater.core.ledger import Ledger, Numbered
from lowwater.core.messages import Span
from lowwater.core.recall.recalled import Expansion, ExpansionLine, RecalledMessage, clipped, handle_of
from lowwater.core.recall.search import (
    calls_answered_by,
    count_messages,
    first_line,
    is_inside,
    named_numbers,
    overlaps,
    passages,
    recalled_messages,
    subtract,
    take_first,
)
from lowwater.core.summary.frame import unframe
from lowwater.errors import BadInput

T = TypeVar("T")
CountTokens: TypeAlias = Callable[[str], int]


# What a handle names

_FETCHED_TOGETHER = 64
"""Messages that are fetched together."""


class OpenedHandle(Struct, frozen=True, kw_only=True):
    """The messages a handle names; and, if there is one summary of them, that summary and those it was made of."""

    numbers: tuple[Numbers, ...]
    summary: SummarizedSpan | None = None
    made_of: tuple[SummarizedSpan, ...] = ()

    @property
    def text(self) -> str:
        """The summary's text, without its framing."""
        return unframe(self.summary.text) if self.summary else ""


def expand(ledger: Ledger, handle: str) -> Expansion:
    """Return what a handle names, one level down, or raise BadInput.

    A summary expands to the summaries it was made of and to its messages that none of these covers; a range of messages
    to the messages; a message to itself.
    """
    opened = open_handle(ledger, handle)
    return Expansion(
        handle=handle_of(opened.numbers), text=opened.text, children=tuple(children_of(ledger, opened))
    )


def open_handle(ledger: Ledger, handle: str) -> OpenedHandle:
    """Return what a handle names, or raise BadInput; no message is fetched."""
    numbers = named_numbers(ledger, handle)
    place = None if count_messages(numbers) == 1 else find_summary(ledger, numbers)
    if place is None:
        return OpenedHandle(numbers=numbers)
    return OpenedHandle(
        numbers=numbers,
        summary=place.summary,
        made_of=tuple(one.summary for one in made_of(ledger, place)),
    )


def children_of(ledger: Ledger, opened: OpenedHandle) -> Iterator[ExpansionLine]:
    """Yield what a handle expands to, ordered by the first message; messages are fetched as the reader goes on."""
    covered = (span for summary in opened.made_of for span in summary.sources)
    pieces: list[SummarizedSpan | Numbers] = [*opened.made_of, *subtract(opened.numbers, covered)]
    for piece in sorted(pieces, key=_first):
        if isinstance(piece, SummarizedSpan):
            yield _summary(piece)
        else:
            yield from _messages(ledger, piece)


def recalled_by_number(ledger: Ledger, numbers: Sequence[Numbers]) -> Iterator[RecalledMessage]:
    """Yield the messages with these numbers, fetched a few at a time."""
    for span in numbers:
        for first in range(span.first, span.last + 1, _FETCHED_TOGETHER):
            last = min(span.last, first + _FETCHED_TOGETHER - 1)
            yield from recalled_messages(ledger.messages, Numbers(first=first, last=last))


def _first(piece: SummarizedSpan | Numbers) -> int:
    return piece.first if isinstance(piece, Numbers) else piece.sources[0].first


def _messages(ledger: Ledger, numbers: Numbers) -> Iterator[ExpansionLine]:
    for one in recalled_by_number(ledger, (numbers,)):
        yield ExpansionLine(
            kind="message",
            handle=one.handle,
            who=one.who,
            tokens=one.tokens,
            messages=1,
            first_line=first_line(one.text),
            sources=(Numbers(first=one.number, last=one.number),),
        )


def _summary(summary: SummarizedSpan) -> ExpansionLine:
    return ExpansionLine(
        kind="summary",
        handle=handle_of(summary.sources),
        who="summary",
        tokens=summary.tokens,
        messages=count_messages(summary.sources),
        first_line=first_line(unframe(summary.text)),
        sources=summary.sources,
    )


# Summaries, and what they were made of


class SummaryPlace(Struct, frozen=True, kw_only=True):
    """A summary, and the ledger position of a compaction whose view has it."""

    summary: SummarizedSpan
    position: int


def summaries_in_view(ledger: Ledger) -> tuple[SummaryPlace, ...]:
    """Return the summaries in the current view."""
    return next(_lineage(ledger, len(ledger.entries)), ())


def find_summary(ledger: Ledger, numbers: Sequence[Numbers]) -> SummaryPlace | None:
    """Return the newest summary of exactly these messages, or else of messages with the same first and last one.

    Summaries that a rewind has undone are not considered.
    """
    ends: SummaryPlace | None = None
    for places in _lineage(ledger, len(ledger.entries)):
        # Messages that no summary covers here were covered by none before, either.
        near = [one for one in places if overlaps(one.summary.sources, numbers)]
        if not near:
            break
        for one in near:
            if one.summary.sources == tuple(numbers):
                return one
            if ends is None and len(numbers) == 1 and _ends(one.summary.sources) == numbers[0]:
                ends = one
    return ends


def made_of(ledger: Ledger, place: SummaryPlace) -> tuple[SummaryPlace, ...]:
    """Return the summaries that this one was made of; the rest of its messages went into it directly.

    A summary that only rewrites another one of the same messages is made of what that one was made of.
    """
    summary = place.summary
    for places in _lineage(ledger, place.position):
        if any(_same(one.summary, summary) for one in places):
            continue
        parts = [
            one for one in places if one.summary.sources and is_inside(one.summary.sources, summary.sources)
        ]
        if len(parts) != 1 or parts[0].summary.sources != summary.sources:
            return tuple(parts)
        summary = parts[0].summary
    return ()


def _lineage(ledger: Ledger, position: int) -> Iterator[tuple[SummaryPlace, ...]]:
    """Yield the summaries of each compaction that the view at `position` is based on, newest first."""
    while (found := _in_force(ledger, position)) is not None:
        position = found
        entry = ledger.entries[position]
        assert isinstance(entry, Compacted)
        yield tuple(
            SummaryPlace(summary=stand, position=position)
            for stand in entry.items
            if isinstance(stand, SummarizedSpan)
        )


def _in_force(ledger: Ledger, position: int) -> int | None:
    """Return the position of the compaction that the view is based on when the ledger has `position` entries."""
    at = _before(ledger, position)
    while at >= 0:
        saved = ledger.saved[at]
        if saved.kind == "compacted":
            return saved.position
        at -= 1
        if saved.kind == "rewound":
            entry = ledger.entries[saved.position]
            assert isinstance(entry, Rewound)
            at = _before(ledger, entry.to)
    return None


def _before(ledger: Ledger, position: int) -> int:
    return bisect_left(ledger.saved, position, key=lambda saved: saved.position) - 1


def _same(one: SummarizedSpan, other: SummarizedSpan) -> bool:
    return one.sources == other.sources and one.text == other.text


def _ends(sources: Sequence[Numbers]) -> Numbers | None:
    return Numbers(first=sources[0].first, last=sources[-1].last) if sources else None


# One message, or a part of it


def caption(messages: Sequence[Numbered], recalled: RecalledMessage) -> str:
    """Return a message's caption: its handle, who speaks, which tool answered, its size."""
    by = ", ".join(dict.fromkeys(call.name for call in calls_answered_by(messages, recalled.number)))
    who = f"{recalled.who} of {by}" if by and recalled.who == "tool result" else recalled.who
    return f"{recalled.handle} · {who} · {recalled.tokens:,} tokens"


def part_of(recalled: RecalledMessage, *, lines: Numbers | None, characters: Numbers | None) -> Span:
    """Return the wanted part of a message's text, or raise BadInput if the text is not that long."""
    text = recalled.text
    if characters is not None:
        if characters.first > len(text):
            raise BadInput(f"{recalled.handle} has only {len(text):,} characters: ask for some of these")
        return Span(start=characters.first - 1, stop=min(characters.last, len(text)))
    if lines is not None:
        count = text.count("\n") + 1
        if lines.first > count:
            raise BadInput(f"{recalled.handle} has only {count:,} lines: ask for some of these")
        return Span(start=_line_start(text, lines.first), stop=_line_start(text, lines.last + 1))
    return Span(start=0, stop=len(text))


def show(recalled: RecalledMessage, heading: str, part: Span, tokens: int, count: CountTokens) -> str | None:
    """Return a part of a message under its caption, within `tokens`; None if there is no room for any of it.

    Raise BadInput if the message has no text at all.
    """
    text = recalled.text
    if not text:
        raise BadInput(f"{recalled.handle} has no text: look at the messages around it")

    def tell(room: int) -> str:
        end = end_within(text, part.start, part.stop, room, count)
        shown = Span(start=part.start, stop=end)
        body = text[part.start : end]
        if end < part.stop:
            body = f"{body.removesuffix(chr(10))}\n[{_rest(text, end, part.stop, recalled.tokens)}]"
        return f"[{heading}{place_of(text, shown)}]\n{body}"

    return fit_within(tokens, count, tell)


def place_of(text: str, part: Span) -> str:
    """Return which part of a text this is, for its caption; empty if it is all of it."""
    if part.start == 0 and part.stop == len(text):
        return ""
    if _starts_line(text, part.start) and _ends_line(text, part.stop):
        last = _line_at(text, max(part.start, part.stop - 1))
        return f" · lines {_line_at(text, part.start):,}–{last:,} of {text.count(chr(10)) + 1:,}"
    return f" · characters {part.start + 1:,}–{part.stop:,} of {len(text):,}"


def _rest(text: str, end: int, stop: int, tokens: int) -> str:
    """Return how much of the wanted text is left, and how to ask for it."""
    about = max(1, round(tokens * (stop - end) / len(text)))
    if _starts_line(text, end) and _ends_line(text, stop):
        first, last = _line_at(text, end), _line_at(text, stop - 1)
        return f"cut here: {last - first + 1:,} lines, about {about:,} tokens, are left; go on with lines [{first}, {last}]"
    return (
        f"cut here: {stop - end:,} characters, about {about:,} tokens, are left; "
        f"go on with characters [{end + 1}, {stop}]"
    )


def _starts_line(text: str, place: int) -> bool:
    return place == 0 or text[place - 1] == "\n"


def _ends_line(text: str, place: int) -> bool:
    return place == len(text) or text[place] == "\n" or _starts_line(text, place)


def _line_at(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _line_start(text: str, line: int) -> int:
    """Return where a line begins; the end of the text if it has fewer lines."""
    place = 0
    for _ in range(line - 1):
        place = text.find("\n", place) + 1
        if not place:
            return len(text)
    return place


# Passages around words

_MOST_SEARCHED = 1_000
"""Messages that one call searches."""


class AnswerBlock(Struct, Generic[T], frozen=True, kw_only=True):
    """A piece of an answer that is shown as a whole or not at all, and what it is about."""

    text: str
    about: T


class _Place(Struct, frozen=True, kw_only=True):
    number: int
    start: int
    """The character of its text, from 0."""
    length: int


def show_around(
    ledger: Ledger, numbers: Sequence[Numbers], words: str, tokens: int, count: CountTokens
) -> str | None:
    """Return the passages that contain the words, or most of them, within `tokens`; None if there is no room for one.

    Raises BadInput if no message contains any of the words. What is left out, and what was not searched, is named.
    """
    searched = take_first(numbers, _MOST_SEARCHED)
    unread = tuple(subtract(numbers, searched))
    blocks = list(_until(_passages(ledger, searched, words), tokens, count))
    if not blocks:
        further = f"go on with {handle_of(unread)}" if unread else "try fewer or other words"
        raise BadInput(f"{clipped(words)} does not stand in {handle_of(searched)}: {further}")

    def frame(text: str, _: int, left: _Place | None) -> str:
        return f"{text}{_note(numbers, unread, left)}"

    filled = fill(blocks, tokens, count, frame)
    if filled is not None:
        return filled
    first = blocks[0]

    def cut(room: int) -> str:
        end = end_within(first.text, 0, len(first.text), room, count)
        return f"{first.text[:end]}{_note(numbers, unread, first.about)}"

    return fit_within(tokens, count, cut)


def _passages(ledger: Ledger, numbers: Sequence[Numbers], words: str) -> Iterator[AnswerBlock[_Place]]:
    for found in recalled_by_number(ledger, numbers):
        text = found.text
        for part in passages(text, words):
            heading = f"[{caption(ledger.messages, found)}{place_of(text, part)}]"
            place = _Place(number=found.number, start=part.start, length=len(text))
            yield AnswerBlock(text=f"{heading}\n{text[part.start : part.stop]}", about=place)


def _until(
    blocks: Iterator[AnswerBlock[_Place]], tokens: int, count: CountTokens
) -> Iterator[AnswerBlock[_Place]]:
    """Yield blocks up to the first that no longer fits, so that no further message is fetched."""
    for block in blocks:
        yield block
        tokens -= count(block.text)
        if tokens < 0:
            return


def _note(numbers: Sequence[Numbers], unread: Sequence[Numbers], left: _Place | None) -> str:
    if left is not None and count_messages(numbers) == 1:
        return f"\n[more follows: go on with characters [{left.start + 1}, {left.length}]]"
    if left is not None:
        rest = tuple(subtract(numbers, (Numbers(first=1, last=left.number - 1),)))
        if left.number > numbers[0].first:
            return f"\n[more follows: ask around the same words in {handle_of(rest)}]"
        # Asking again about the same messages would only give the same answer.
        further = handle_of(tuple(subtract(numbers, (Numbers(first=1, last=left.number),))))
        return (
            f"\n[more follows: go on with lw:{left.number} and characters [{left.start + 1}, {left.length}], "
            f"then ask around the same words in {further}]"
        )
    return f"\n[not searched yet: {handle_of(unread)}]" if unread else ""


# Fitting into a number of tokens

_CHARACTERS_PER_TOKEN, _TOKENS_PER_CHARACTER = 4, 4
"""Of ordinary text, for a first guess; and at worst, since a character has at most four bytes."""
_TRIES = 6
"""How often the end of a text is estimated anew."""
_FULL = 0.95
"""The share of the tokens that is close enough."""
_MARGIN = 0.98
"""An estimate that was too long is shortened by a little more than its proportion."""


def end_within(text: str, start: int, stop: int, tokens: int, count: CountTokens) -> int:
    """Return the end of the longest text from `start` on that has at most `tokens`: `stop`, or the end of a line before it.

    If lines are too long for that, the text ends within one. It is not empty if `tokens` allows one character.
    """
    best, reach = start, min(stop, start + tokens * _CHARACTERS_PER_TOKEN)
    for _ in range(_TRIES):
        if reach <= best:
            break
        used = count(text[start:reach])
        if used > tokens:
            reach = start + int((reach - start) * tokens / used * _MARGIN)
            continue
        best = reach
        if used >= _FULL * tokens:
            break
        reach = min(stop, start + int((reach - start) * tokens / max(used, 1)))
    best = max(best, min(stop, start + tokens // _TOKENS_PER_CHARACTER))
    if best >= stop:
        return stop
    line = text.rfind("\n", start, best) + 1
    return line if line - start >= (best - start) / 2 else best


def fit_within(tokens: int, count: CountTokens, tell: Callable[[int], str]) -> str | None:
    """Return `tell(room)` for the largest room for which the result stays within `tokens`; None if there is none."""
    room = tokens
    while room >= _TOKENS_PER_CHARACTER:
        text = tell(room)
        over = count(text) - tokens
        if over <= 0:
            return text
        room -= over
    return None


def fill(
    blocks: Iterable[AnswerBlock[T]],
    tokens: int,
    count: CountTokens,
    frame: Callable[[str, int, T | None], str],
) -> str | None:
    """Return as many blocks as fit, in order, framed; None if not even one does.

    `frame` is given the text of the blocks, how many they are, and what the first one left out is about.
    """
    taken: list[AnswerBlock[T]] = []
    room, left = tokens - count(frame("", 0, None)), None
    for block in blocks:
        room -= count(f"{block.text}\n")
        if room < 0:
            left = block
            break
        taken.append(block)
    while taken:
        about = None if left is None else left.about
        text = frame("\n".join(block.text for block in taken), len(taken), about)
        if count(text) <= tokens:
            return text
        left = taken.pop()
    return None
